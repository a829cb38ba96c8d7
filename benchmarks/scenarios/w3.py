"""W3: two streams joined where their values are close; no equality at all."""

from __future__ import annotations

from benchmarks.scenarios.base import WINDOW, Scenario

BETWEEN = "BETWEEN B.ts - INTERVAL 20 SECONDS AND B.ts + INTERVAL 20 SECONDS"

W3 = Scenario(
    name="w3",
    title="|A.v - B.v| < 0.0005, 2,000 rows a stream and batch",
    streams={"A": (), "B": ()},
    rows=2_000,
    keys=0,
    midstream="""
        SELECT A.v, B.v AS bv
        FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS]
        WHERE ABS(A.v - B.v) < 0.0005""",
    # The two plain inequalities let DuckDB use its range join; they are a hair wider, the third condition decides.
    duckdb=f"""
        SELECT A.v, B.v AS bv
        FROM A JOIN B ON B.v > A.v - 0.000501 AND B.v < A.v + 0.000501
        WHERE abs(A.v - B.v) < 0.0005 AND abs(A.ts - B.ts) <= {WINDOW}""",
    spark_as_written=f"""
        SELECT A.v, B.v AS bv
        FROM A JOIN B ON abs(A.v - B.v) < 0.0005
            AND A.ts {BETWEEN}""",
    # Buckets as wide as the band: a match lies in the same bucket or in one of its neighbours.
    spark=f"""
        WITH A_buckets AS (
            SELECT ts, v, floor(v / 0.0005D) AS bucket FROM A),
        B_buckets AS (
            SELECT ts, v, explode(sequence(floor(v / 0.0005D) - 1, floor(v / 0.0005D) + 1)) AS bucket FROM B)
        SELECT A.v, B.v AS bv
        FROM A_buckets A JOIN B_buckets B ON A.bucket = B.bucket
            AND abs(A.v - B.v) < 0.0005
            AND A.ts {BETWEEN}""",
)
