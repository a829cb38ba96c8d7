"""The optimizer benchmark: what it saves when data drift, and what it costs when they do not.

Every policy looks after the same query over the same rows, beside every plan that could have been kept all the time,
and beside the best schedule of plans, which only somebody who knows the future can follow.
"""
