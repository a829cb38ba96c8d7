"""The way of rows into a step: read as declared, classified as in time, late or dead, numbered, spread over lanes.

Its input is tables as they were pushed, or what Spark shuffled; its output the rows that lanes take in, late rows with
the watermark they missed, and dead letters with the reason. Both hosts read and judge rows here, so that a row
means the same in each.
"""
