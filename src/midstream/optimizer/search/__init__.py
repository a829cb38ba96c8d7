"""The best plans of a query by an estimate and a cost model: trees, probing orders, eddies; all of it pure.

In: the query's sources and what ties them, an `Estimate`, a `CostModel`. Out: plans in order of cost.
"""
