"""What is known of running queries, and what a plan or a migration would cost by it.

In: a manifest, whose counters and listings are the observations. Out: live statistics, estimates of a plan's states
and work, predictions for each strategy, and the strategy that `auto` takes.
"""
