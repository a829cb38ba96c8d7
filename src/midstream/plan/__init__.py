"""Plans as values: trees, probing orders and eddies; their notation, their signatures, what two of them have in common.

In: a `Query` and a plan in notation. Out: the plan parsed, canonical labels and the `Signature` of every state, key
classes, the pieces of a migration, all plans of a query.
"""
