"""The operators of a plan, one file each: sources, window joins, probing orders, eddies, aggregates, differences.

In: a lane and the deltas of the operators below. Out: the step's delta, every combination with at least one new row,
exactly once; and the states that must be kept for it. `compile` makes operators of a plan.
"""
