"""What runs in a lane in a step: units, each of them a query, a chain of queries or a ring.

In: the draft that commands have changed, the state of a lane and the rows that reached it. Out: its next state, its
results and its counters.
"""
