"""Charts: the best plan of every region of what a stream can be like, found beforehand (OM §4.4 and §4.5).

In: ranges of rates and selectivities, the plans and what they cost there. Out: a chart to look plans up in, and the
course of a stream over it.
"""
