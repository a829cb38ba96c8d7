"""W4: one stream grouped by key and tumbling windows."""

from __future__ import annotations

from benchmarks.scenarios.base import BATCH_SPAN, Scenario

W4 = Scenario(
    name="w4",
    title="GROUP BY k and windows of 10 seconds, 600,000 rows a batch over 20,000 keys",
    streams={"A": ("k",)},
    rows=600_000,
    keys=20_000,
    midstream="""
        SELECT k, COUNT(*) AS n, MIN(v) AS low, MAX(v) AS high
        FROM A
        GROUP BY k, TUMBLE(ts, INTERVAL 10 SECONDS)""",
    # A window is answered once it is over: the last one, which ends after the last row, is not.
    duckdb=f"""
        SELECT k, count(*) AS n, min(v) AS low, max(v) AS high
        FROM A
        GROUP BY k, ts // {BATCH_SPAN}
        HAVING (ts // {BATCH_SPAN} + 1) * {BATCH_SPAN} <= (SELECT max(ts) FROM A)""",
    spark="""
        SELECT k, count(*) AS n, min(v) AS low, max(v) AS high
        FROM A
        GROUP BY k, window(ts, '10 seconds')""",
    left_out=("spark_tuned", "midstream_s3"),
)
