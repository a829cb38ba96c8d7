"""Files: on disks and in object stores. A chunk is written once, whole, under its name, and never changed.

In: record batches to put under a name. Out: the same batches, checked against their checksums.
"""
