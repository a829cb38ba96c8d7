"""State shared among queries of the same join: chains of slices, and each query's answer from them (Wang Part I).

In: the queries of a manifest and what each reads of its sources. Out: which queries share a chain, how long rows are
kept for each filter, where a chain is cut, and every query's part of the chain's results.
"""
