"""Queries that are spread over nodes: what they are asked for, where their rows are listed, how a step goes round them.

In: a manifest, a query that has `nodes`, the step's admitted rows. Out: what each node, which is a lane, gives back.
"""
