"""W1: three streams joined on one key."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.scenarios.base import WINDOW, Scenario

W1A = Scenario(
    name="w1a",
    title="A.k = B.k AND B.k = C.k, 20,000 rows a stream and batch over 20,000 keys",
    streams={"A": ("k",), "B": ("k",), "C": ("k",)},
    rows=20_000,
    keys=20_000,
    midstream="""
        SELECT A.k, A.v, B.v AS bv, C.v AS cv
        FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS], C [RANGE 20 SECONDS]
        WHERE A.k = B.k AND B.k = C.k""",
    duckdb=f"""
        SELECT A.k, A.v, B.v AS bv, C.v AS cv
        FROM A JOIN B ON A.k = B.k JOIN C ON B.k = C.k
        WHERE abs(A.ts - B.ts) <= {WINDOW} AND abs(A.ts - C.ts) <= {WINDOW} AND abs(B.ts - C.ts) <= {WINDOW}""",
    # Spark allows a second join only where a single event-time column is left: B's is turned into a plain one.
    spark="""
        WITH AB AS (
            SELECT A.k, A.ts AS a_ts, A.v, timestamp_micros(unix_micros(B.ts)) AS b_ts, B.v AS bv
            FROM A JOIN B ON A.k = B.k
                AND A.ts BETWEEN B.ts - INTERVAL 20 SECONDS AND B.ts + INTERVAL 20 SECONDS)
        SELECT AB.k, AB.v, AB.bv, C.v AS cv
        FROM AB JOIN C ON AB.k = C.k
            AND C.ts BETWEEN a_ts - INTERVAL 20 SECONDS AND a_ts + INTERVAL 20 SECONDS
            AND C.ts BETWEEN b_ts - INTERVAL 20 SECONDS AND b_ts + INTERVAL 20 SECONDS""",
)

W1B = replace(
    W1A,
    name="w1b",
    title="A.k = B.k AND B.k = C.k, 200,000 rows a stream and batch over 200,000 keys",
    rows=200_000,
    keys=200_000,
    left_out=("spark_tuned",),
)
