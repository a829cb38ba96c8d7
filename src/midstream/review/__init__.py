"""Reviews: at the beginning of a step some plans are looked at, and what is decided becomes a command of that step.

In: the manifest before the step, and its chunks. Out: events, proposals, migrations. Pure, and without a clock: a step
that is done again reviews the same queries and decides the same.
"""
