"""Checkpoints that earlier code wrote, kept as files: the present code takes them up and goes on exact.

Each is in the folder of its format; a name that ends in `at_` and a commit says which code wrote it.
"""
