"""Seeded faults that `make test` must kill: the faults, and what applies them one by one to a copy of the tree."""
