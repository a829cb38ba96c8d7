"""W2: three streams joined in a chain over two keys; no key is common to all of them."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scenarios.base import WINDOW, Scenario

W2A = Scenario(
    name="w2a",
    title="A.x = B.x AND B.y = C.y, 20,000 rows a stream and batch over 20,000 keys each",
    streams={"A": ("x",), "B": ("x", "y"), "C": ("y",)},
    rows=20_000,
    keys=20_000,
    midstream="""
        SELECT A.x, B.y, A.v, C.v AS cv
        FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS], C [RANGE 20 SECONDS]
        WHERE A.x = B.x AND B.y = C.y""",
    duckdb=f"""
        SELECT A.x, B.y, A.v, C.v AS cv
        FROM A JOIN B ON A.x = B.x JOIN C ON B.y = C.y
        WHERE abs(A.ts - B.ts) <= {WINDOW} AND abs(A.ts - C.ts) <= {WINDOW} AND abs(B.ts - C.ts) <= {WINDOW}""",
    # As in W1: B's event time is turned into a plain column, or Spark refuses the second join.
    spark="""
        WITH AB AS (
            SELECT A.x, B.y, A.ts AS a_ts, A.v, timestamp_micros(unix_micros(B.ts)) AS b_ts
            FROM A JOIN B ON A.x = B.x
                AND A.ts BETWEEN B.ts - INTERVAL 20 SECONDS AND B.ts + INTERVAL 20 SECONDS)
        SELECT AB.x, AB.y, AB.v, C.v AS cv
        FROM AB JOIN C ON AB.y = C.y
            AND C.ts BETWEEN a_ts - INTERVAL 20 SECONDS AND a_ts + INTERVAL 20 SECONDS
            AND C.ts BETWEEN b_ts - INTERVAL 20 SECONDS AND b_ts + INTERVAL 20 SECONDS""",
)

W2B = replace(
    W2A,
    name="w2b",
    title="A.x = B.x AND B.y = C.y, 200,000 rows a stream and batch over 200,000 keys each",
    rows=200_000,
    keys=200_000,
    left_out=("spark_tuned",),
)
