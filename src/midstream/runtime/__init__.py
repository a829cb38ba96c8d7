"""What a step runs on: the lane with its states, the contracts of operators and of results, watermarks, lane keys.

In: the state that a lane had after the last step, and its share of this step's rows. Out: the state it has after it. A
lane is one partition of the job's keys; embedded, there is one by default.
"""
