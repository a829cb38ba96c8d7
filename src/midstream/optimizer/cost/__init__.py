"""What a plan costs: nanoseconds of work a second and bytes of state, and the cost functions of the OM paper.

In: an `Estimate` of what a plan's joins do, unit costs that were measured, weights. Out: the `PlanCost` of any plan.
"""
