"""W5: a left join of two streams on one key."""

from __future__ import annotations

from benchmarks.scenarios.base import WINDOW, Scenario

NEAR = f"A.k = B.k AND abs(A.ts - B.ts) <= {WINDOW}"
EARLY = "A.ts % 10000000 < 9000000"

W5 = Scenario(
    name="w5",
    title="A LEFT JOIN B on A.k = B.k, 200,000 rows a stream and batch over 200,000 keys",
    streams={"A": ("k",), "B": ("k",)},
    rows=200_000,
    keys=200_000,
    midstream="""
        SELECT A.k, A.v, B.v AS bv
        FROM A [RANGE 20 SECONDS] LEFT JOIN B [RANGE 20 SECONDS] ON A.k = B.k
        WHERE EXTRACT(SECOND FROM A.ts) % 10 < 9""",
    # Spark's watermark counts whole milliseconds, so that the last row is answered or not by chance: a second before
    # the end of each batch there is none. A row that no other matches is answered once none can come any more.
    duckdb=f"""
        SELECT A.k, A.v, B.v AS bv FROM A JOIN B ON {NEAR} WHERE {EARLY}
        UNION ALL
        SELECT A.k, A.v, NULL FROM A
        WHERE {EARLY} AND NOT EXISTS (SELECT 1 FROM B WHERE {NEAR})
            AND A.ts + {WINDOW} < least((SELECT max(ts) FROM A), (SELECT max(ts) FROM B))""",
    spark="""
        SELECT A.k, A.v, B.v AS bv
        FROM A LEFT JOIN B ON A.k = B.k
            AND A.ts BETWEEN B.ts - INTERVAL 20 SECONDS AND B.ts + INTERVAL 20 SECONDS
        WHERE second(A.ts) % 10 < 9""",
    left_out=("spark_tuned", "midstream_s3"),
)
