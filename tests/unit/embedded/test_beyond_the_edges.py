"""A row with a value beyond the edge of a type is a dead letter, wherever it stands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.parse import parse_query

NOW = "WINDOW 0 SECONDS"
TUMBLE = "TUMBLE(ts, INTERVAL 1 SECOND)"
NARROWED = "CAST(v AS UTINYINT)"


def table(unit: str, years: Sequence[int], numbers: Sequence[int]) -> pa.Table:
    """Rows of one event time, with these years in a timestamp, and these numbers."""
    moments = pa.array([datetime(year, 1, 1) for year in years], pa.timestamp("us")).cast(pa.timestamp(unit))
    times = pa.array([0] * len(years), pa.timestamp("us"))
    small = pa.array(numbers, pa.int8())
    return pa.table(
        {"v": small, "b": pa.array([n * 1000 if n < 0 else n for n in numbers], pa.int64()), "w": moments, "ts": times}
    )


def answered(sql: str) -> tuple[list[tuple[object, ...]], int]:
    """The answer over a row beyond all edges and one within, and how many dead letters there are."""
    engine = ms.Engine()
    for name, unit in (("A", "TIMESTAMP"), ("B", "TIMESTAMP_NS")):
        engine.create_stream(name, f"v TINYINT, b BIGINT, w {unit}, ts TIMESTAMP", timestamp="ts")
    engine.table("T", pa.table({"x": pa.array([1], pa.uint8()), "w": table("ns", [2020], [1])["w"]}))
    engine.add_query("q", sql)
    first = engine.push({"A": table("us", [2300, 2020], [-1, 1]), "B": table("ns", [2020, 2021], [1, 2])})["q"]
    last = engine.push({name: later(60) for name in "AB"})["q"]
    dead = sum(rows.num_rows for rows in engine.dead_letters.values())
    found = [row for part in (first, last) for row in part.to_pylist()]
    return [tuple(row.values()) for row in found if 5 not in row.values()], dead


def later(seconds: int) -> pa.Table:
    rows = table("us", [2020], [5])
    return rows.set_column(3, "ts", pa.array([seconds * 1_000_000], pa.timestamp("us")))


QUERIES: dict[str, list[tuple[object, ...]]] = {
    f"SELECT A.v, B.v AS x FROM A, B WHERE CAST(A.v AS UTINYINT) = B.v {NOW}": [(1, 1)],
    f"SELECT A.v, B.v AS x FROM A, B WHERE CAST(A.v AS UTINYINT) < B.v {NOW}": [(1, 2)],
    f"SELECT A.v, B.v AS x FROM A, B WHERE CAST(A.v AS UTINYINT) + 1 < B.b + 1 {NOW}": [(1, 2)],
    f"SELECT A.v, B.v AS x FROM A, B WHERE A.w > B.w {NOW}": [],
    f"SELECT A.v, B.v AS x FROM A, B WHERE A.w + INTERVAL 1 DAY > B.w {NOW}": [(1, 1)],
    f"SELECT A.v, B.v AS x FROM A, B WHERE A.w = B.w {NOW}": [(1, 1)],
    f"SELECT A.v, B.v AS x FROM A LEFT JOIN B ON A.w = B.w {NOW}": [(1, 1)],
    f"SELECT A.v FROM A WHERE {NARROWED} IS NULL": [],
    f"SELECT A.v FROM A WHERE CASE WHEN v < 0 THEN TRUE ELSE {NARROWED} > 1 END": [(-1,)],
    f"SELECT {NARROWED} AS x FROM A": [(1,)],
    f"SELECT {NARROWED} AS x, COUNT(*) AS n FROM A GROUP BY {NARROWED}, {TUMBLE}": [(1, 1)],
    f"SELECT SUM({NARROWED}) AS x FROM A GROUP BY {TUMBLE}": [(1,)],
    "SELECT A.v, T.x FROM A JOIN T ON CAST(A.v AS UTINYINT) = T.x": [(1, 1)],
    "SELECT A.v, T.x FROM A JOIN T ON A.w >= T.w": [(1, 1)],
    "SELECT s.x FROM (SELECT CAST(v AS UTINYINT) AS x FROM A) AS s": [(1,)],
    "SELECT v FROM A [RANGE 0 SECONDS] EXCEPT ON (w) B [RANGE 0 SECONDS]": [],
}


@pytest.mark.parametrize("sql", QUERIES)
def test_such_a_row_is_a_dead_letter(sql: str) -> None:
    rows, dead = answered(sql)
    assert rows == QUERIES[sql] and dead == (0 if "CASE" in sql else 1)


def test_a_number_that_a_range_needs_narrower_is_a_dead_letter_too() -> None:
    """It was in an equality, and vanished from a range."""
    sql = f"SELECT A.v, B.v AS x FROM A, B WHERE CAST(A.b AS TINYINT) < B.b {NOW}"
    assert answered(sql) == ([(1, 2)], 1)


def test_a_condition_on_a_static_table_that_cannot_be_evaluated_is_refused() -> None:
    for condition in (
        "CAST(CAST(T.x AS SMALLINT) AS USMALLINT) = A.v",
        "CAST(CAST(T.x AS INT) AS UBIGINT) < A.v",
        "A.v < CAST(CAST(T.x AS BIGINT) AS TINYINT)",
    ):
        with pytest.raises(LanguageError, match=r"cannot be evaluated for every row: cast\(cast\((cast\()?T.x\)"):
            answered(f"SELECT A.v, T.x FROM A JOIN T ON {condition}")


@pytest.mark.parametrize(
    ("condition", "rejects"),
    [
        ("A.ts BETWEEN B.ts - INTERVAL 5 SECONDS AND B.ts", False),
        ("A.ts = B.ts", False),
        ("A.ts + INTERVAL 5 SECONDS >= A2.z", False),
        ("A.ts BETWEEN A2.ts - INTERVAL 5 SECONDS AND A2.ts", False),
        ("A.u BETWEEN B.ts - INTERVAL 5 SECONDS AND B.ts", True),
        ("A.ts >= B.u", True),
        ("CAST(A.ts AS TIMESTAMP_NS) = B.ts", False),
        ("A.ts = CAST(B.us AS TIMESTAMP_NS)", True),
    ],
)
def test_event_times_of_streams_are_compared_as_they_were(condition: str, rejects: bool) -> None:
    """Where nanoseconds do not reach, a window over event times in these has no rows: such joins go on to share."""
    columns = {"k": pa.int64(), "us": pa.timestamp("us"), "z": pa.timestamp("us", "UTC")}
    streams = {
        name: StreamSchema(name, pa.schema({**columns, "u": pa.timestamp(unit), "ts": pa.timestamp(unit)}), "ts")
        for name, unit in (("A", "us"), ("B", "ns"))
    }
    query = f"SELECT A.k FROM A, A A2, B WHERE A.k = B.k AND {condition}"
    assert parse_query(f"{query} WINDOW 5 SECONDS", streams).rejects == rejects
    assert parse_query(query.replace("A, A A2, B", "A [ROWS 5] A, A [ROWS 5] A2, B [ROWS 5]"), streams).rejects == (
        "A2" not in condition
    )
