"""The sharing benchmark: many queries over one pair of streams, on the wall clock, by every way to share or not.

Windows are distributed as in Wang §8.3, Table 8.2, and streams come at the rates and the join selectivity of Wang's
experiments; with filters, as in Wang §8.2. Contestants work side by side in one process, step by step, so that
whatever disturbs the machine disturbs them alike.
"""
