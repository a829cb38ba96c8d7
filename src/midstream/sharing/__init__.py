"""State shared among queries of the same join: chains of slices, and each query's answer from them (Wang Part I).

In: the queries of a manifest and what each asks of its sources. Out: who shares which chain, how long rows are kept for
whom, where a chain is cut, and every query's part of the chain's results.
"""
