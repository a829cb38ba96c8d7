"""The embedded host: queries over tables pushed in this process, in memory or on a checkpoint.

In: Arrow tables, queries, commands. Out: each query's results of each step and, on a checkpoint, in its sink.
"""

from midstream.embedded.engine import Engine

__all__ = ["Engine"]
