"""The words that all rooms speak: frozen values, with no behaviour beyond reading and writing themselves.

In: plain values, and JSON that a manifest, a command log or an event file holds. Out: manifests, schemas, windows,
commands, events, counters and errors, which every other room takes and gives.
"""
