"""What HybMig is made of: the table of what the new plan lacks, and its completion (HybMig §3.3, §3.4).

In: an old and a new plan over the same base states. Out: which results are still the old plan's to give.
"""
