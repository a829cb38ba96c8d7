"""Side-by-side measurements of midstream, Spark's own stream-stream join, and DuckDB."""
