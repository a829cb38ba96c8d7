"""Rows on their way into a step: read as declared, and classified as in time, late or dead.

In: tables as they were pushed, or what Spark shuffled. Out: the rows that lanes take in, late rows with the watermark
that they missed, and dead letters with the reason. Both hosts read and judge rows here, so that a row means the same in
each.
"""
