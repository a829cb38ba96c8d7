"""A migration under way: its tasks, its transitions, the plan they stand in, and what strategies share.

In: an old and a new operator over the same sources. Out: one operator in their place that gives each combination once,
and its snapshot as JSON values.
"""
