"""The ways of sharing, one file each; a scheme says where a chain is cut and how results reach the queries.

In: the windows of a chain's queries and, once known, its figures. Out: the cuts.
"""
