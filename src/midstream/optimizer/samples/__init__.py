"""Samples of the rows that are alive, and what they say of the joins that no plan runs.

State is a table, so samples need no store of their own: they are read from the chunks that a manifest lists.
"""
