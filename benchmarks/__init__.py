"""Side-by-side measurements of midstream, Spark's own stream-stream join, and DuckDB."""

import midstream as midstream  # Before numpy: see `midstream.pipeline.processor`.
