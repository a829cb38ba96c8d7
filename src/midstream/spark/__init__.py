"""Jobs on Spark: sources, the exchange of rows to lanes, tasks, sinks, commits. The only room that imports pyspark.

In: streaming DataFrames, queries, and the commands of the checkpoint's log. Out: results in sinks and a manifest each
micro-batch, exactly once. Driver and tasks run the code of `step`.
"""

import pyspark  # noqa: F401  # Where Spark is missing this is the name to report, not that of a library it brings.
