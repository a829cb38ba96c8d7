"""The ways of spreading a join, one file each.

In: a deployment, and rows or partial results. Out: the nodes that keep them, or that they visit.
"""
