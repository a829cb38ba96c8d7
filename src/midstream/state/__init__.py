"""What operators remember: rows and combinations in columns, sorted runs with their keys, and the chunks they lie in.

In: listings of chunks from a manifest, and a step's rows. Out: states that can be searched by hash or range, purged by
watermark and compacted, and the new listings at the end of the step. Nothing is changed in place on disk.
"""
