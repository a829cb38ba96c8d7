"""Forms of SQL that are written as others answer on Spark, in two lanes, what the embedded engine does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import midstream as ms
from tests.oracle.spec import SECOND, StreamSpec
from tests.spark.drive import Place, finish, job, read_all

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("info", pa.struct({"a": pa.int64(), "b": pa.string()})),
        ("u", pa.int64()),
        ("ts", pa.timestamp("us")),
    ]
)
STREAMS = tuple(StreamSpec(name, SCHEMA) for name in "AB")
RATES = pa.table({"k": [0, 0, 1], "rate": [1, 2, 3], "since": pa.array([0, 5 * SECOND, 0], pa.timestamp("us"))})
HOP = "(SELECT * FROM TABLE(HOP(TABLE {}, DESCRIPTOR(ts), INTERVAL '2' SECONDS, INTERVAL '4' SECONDS)))"
CUMULATE = "TABLE(CUMULATE(TABLE {}, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '3' SECONDS))"
SESSIONS = "(SELECT k, COUNT(*) AS n, window_end FROM {} GROUP BY k, SESSION(ts, INTERVAL 1 SECOND))"
QUERIES = {
    "lists": "SELECT A.u, B.u AS w FROM A JOIN B ON A.tags = B.tags WINDOW 3 SECONDS",
    "structs": "SELECT A.u, B.u AS w FROM A LEFT JOIN B ON A.info = B.info WINDOW 3 SECONDS",
    "groups": "SELECT tags, COUNT(*) AS n FROM A GROUP BY tags, TUMBLE(ts, INTERVAL 5 SECONDS)",
    "windows": "SELECT L.u, R.u AS w, L.window_start "
    "FROM TABLE(TUMBLE(TABLE A, DESCRIPTOR(ts), INTERVAL '5' SECOND)) L "
    "JOIN TUMBLE(B, ts, INTERVAL 5 SECONDS) R ON L.k = R.k AND L.window_start = R.window_start",
    "sliding": f"SELECT L.u, R.u AS w, L.window_end FROM {HOP.format('A')} L FULL JOIN {HOP.format('B')} R "
    "ON L.k = R.k AND L.window_start = R.window_start AND L.window_end = R.window_end",
    "cumulated": f"SELECT L.u, L.window_start FROM {CUMULATE.format('A')} L WHERE EXISTS (SELECT 1 FROM "
    f"{CUMULATE.format('B')} R WHERE L.k = R.k AND L.u < R.u AND L.window_end = R.window_end)",
    "sessions": f"SELECT L.k, L.n, R.n AS m FROM {SESSIONS.format('A')} L LEFT JOIN {SESSIONS.format('B')} R "
    "ON L.k = R.k AND L.window_end = R.window_end",
    "known": "SELECT u, LAG(tags[2] IGNORE NULLS) OVER (PARTITION BY k ORDER BY ts) AS t FROM A [RANGE 4 SECONDS]",
    "first": "SELECT u FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS rn FROM A [RANGE 2 SECONDS]) "
    "WHERE rn = 1",
    "lateral": "SELECT A.u, x.u AS w FROM A LEFT JOIN LATERAL (SELECT u FROM B WHERE B.k = A.k AND B.ts < A.ts "
    "ORDER BY B.ts DESC LIMIT 1) AS x ON TRUE WINDOW 4 SECONDS",
    "versions": "SELECT A.u, r.rate FROM A ASOF JOIN rates AS r ON r.k = A.k AND A.ts >= r.since",
    "days": "SELECT DATE_TRUNC('day', A.ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin') AS d, COUNT(*) AS n "
    "FROM A JOIN B ON A.k = B.k GROUP BY d WINDOW 2 SECONDS",
}


def steps() -> list[dict[str, pa.Table]]:
    tags, infos = [["x"], ["x", None], [], None], [{"a": 1, "b": None}, {"a": 1, "b": "x"}, None]
    found = []
    for begin in (0, 10, 20):
        rows = [
            {"k": at % 3, "tags": tags[at % 4], "info": infos[at % 3], "u": at, "ts": at * SECOND // 2}
            for at in range(begin, begin + 10)
        ]
        found.append({name: pa.Table.from_pylist(rows, SCHEMA) for name in "AB"})
    for days in (100, 200):
        end = {"k": 9, "tags": ["end"], "info": None, "u": -1, "ts": days * 86_400 * SECOND}
        found.append({name: pa.Table.from_pylist([end], SCHEMA) for name in "AB"})
    return found


def test_forms_answer_as_embedded(spark: SparkSession, tmp_path: Path) -> None:
    engine, expected = ms.Engine(), {name: Counter[Any]() for name in QUERIES}
    for spec in STREAMS:
        engine.create_stream(spec.name, spec.schema, timestamp="ts")
    engine.table("rates", RATES)
    for name, sql in QUERIES.items():
        engine.add_query(name, sql)
    place = Place(tmp_path)
    for number, step in enumerate(steps()):
        place.feed_together(number, step)
        for name, answers in engine.push(step).items():
            expected[name].update(map(repr, answers.to_pylist()))
    finish(job(spark, place, STREAMS, QUERIES, lanes=2, tables={"rates": RATES}))
    for name in QUERIES:
        assert expected[name], name
        assert Counter(map(repr, read_all(place.answers(name)).to_pylist())) == expected[name], name
