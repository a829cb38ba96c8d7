"""Joins of which others read the results, beside what random cases ask of them: how they are written, and what they
keep.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import QueryError
from midstream.units.lane_load import state_rows

STEPS = (
    {"A": [(1, 0), (2, 1), (3, 2)], "B": [(1, 3)], "C": [(2, 4)], "T": [(2, 3)], "I": [(1, 2)]},
    {stream: [(8, 40)] for stream in "ABCTI"},
)
"""Rows of streams as (k, second); those of the second step are alone in theirs."""

LAST = 8


def engine() -> ms.Engine:
    found = ms.Engine()
    for stream in "ABC":
        found.create_stream(stream, "k BIGINT, ts TIMESTAMP, info STRUCT<ip: BIGINT>", timestamp="ts")
    found.create_stream("T", "k BIGINT, ts VARCHAR", timestamp="ts")
    found.create_stream("I", "k BIGINT, ts BIGINT", timestamp="ts", unit="s")
    found.table("rates", [{"k": 1, "rate": 0.5}, {"k": 2, "rate": 2.0}])
    return found


def table(stream: str, rows: list[tuple[int, int]]) -> pa.Table:
    keys = pa.array([k for k, _ in rows], pa.int64())
    if stream in "TI":
        times = [f"1970-01-01T00:00:{second:02}" if stream == "T" else second for _, second in rows]
        return pa.table({"k": keys, "ts": times})
    times = pa.array([second * 1_000_000 for _, second in rows], pa.timestamp("us"))
    return pa.table({"k": keys, "ts": times, "info": [{"ip": k} for k, _ in rows]})


def answers(asked: str) -> list[list[Any]]:
    """The answers without those of the last keys; of times the seconds."""
    running, found = engine(), list[dict[str, Any]]()
    running.add_query("q", f"{asked} WINDOW 5 SECONDS")
    for step in STEPS:
        found += running.push({name: table(name, rows) for name, rows in step.items()})["q"].to_pylist()
    values = [[getattr(value, "second", value) for value in row.values()] for row in found]
    return [row for row in values if row[0] != LAST]


WHOLE = [[1, 3, None], [2, None, 4], [3, None, None]]
"""A's keys with the times of B and C, in order of the time at which each is known."""


@pytest.mark.parametrize(
    "joined",
    [
        "A LEFT JOIN B ON A.k = B.k LEFT JOIN C ON A.k = C.k",
        "A LEFT JOIN B ON A.k = B.k LEFT OUTER JOIN C ON C.k = A.k AND C._ts >= A._ts",
        "(SELECT k, k + 1 AS n FROM A WHERE k > 0) AS A LEFT JOIN B ON B.k + 1 = A.n LEFT JOIN C ON C.k = A.n - 1",
        "A LEFT JOIN (SELECT * FROM B) AS B ON A.k = B.k LEFT JOIN (SELECT k, ts FROM C) AS C ON A.k = C.k",
        "A LEFT JOIN B ON A.info.ip = B.info.ip LEFT JOIN C ON A.info.ip = C.info.ip",
        "B RIGHT JOIN A ON A.k = B.k LEFT JOIN C ON A.k = C.k",
        "B RIGHT JOIN A ON A.k = B.k FULL JOIN C ON A.k = C.k",
    ],
)
def test_a_row_without_a_partner_meets_the_next_stream_by_its_own_time(joined: str) -> None:
    assert answers(f"SELECT A.k, B.ts AS b, C.ts AS c FROM {joined}") == WHOLE


def test_with_and_using_name_what_is_joined() -> None:
    assert answers("SELECT k, B.ts AS b, C.ts AS c FROM A LEFT JOIN B USING (k) LEFT JOIN C USING (k)") == WHOLE
    named = "WITH a AS (SELECT k FROM A WHERE k < 9), c AS (SELECT k, ts FROM C)"
    joined = "FROM a LEFT JOIN B ON B.k = a.k LEFT JOIN c ON c.k = a.k"
    assert answers(f"{named} SELECT a.k, B.ts AS b, c.ts AS c {joined}") == WHOLE


def test_times_of_every_kind_decide_who_meets() -> None:
    asked = "SELECT A.k, T.ts AS t, I.ts AS i, _ts FROM A LEFT JOIN T ON A.k = T.k LEFT JOIN I ON A.k = I.k"
    assert answers(asked) == [[1, None, 2, 5], [2, "1970-01-01T00:00:03", None, 6], [3, None, None, 7]]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("FROM A JOIN rates r ON r.k = A.k LEFT JOIN B ON B.k = A.k LEFT JOIN C ON C.k = r.k", [[1, 0.5], [2, 2.0]]),
        ("FROM A LEFT JOIN B ON B.k = A.k JOIN C ON C.k = A.k LEFT JOIN rates r ON r.k = C.k", [[2, 2.0]]),
        ("FROM A JOIN rates r ON r.k = A.k LEFT JOIN B ON B.k = r.k WHERE r.k IN (SELECT k FROM C)", [[2, 2.0]]),
    ],
)  # fmt: skip
def test_static_tables_are_looked_up_before(asked: str, found: list[list[Any]]) -> None:
    assert answers(f"SELECT A.k, r.rate {asked}") == found


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("EXISTS (SELECT 1 FROM B WHERE k = A.k) AND NOT EXISTS (SELECT 1 FROM B WHERE k = A.k + 1)", [[1]]),
        ("NOT EXISTS (SELECT 1 FROM B WHERE B.k = A.k) AND k NOT IN (SELECT k FROM C)", [[3]]),
        ("NOT EXISTS (SELECT 1 FROM A WHERE A.k > 2) AND A.k > 0", []),
        ("k IN (SELECT k FROM B) AND k IN (SELECT k FROM B b) AND k IN (SELECT k FROM B AS c WHERE c.k = A.k)", [[1]]),
    ],
)
def test_several_subqueries_of_where(where: str, found: list[list[Any]]) -> None:
    assert answers(f"SELECT A.k FROM A WHERE {where}") == found


@pytest.mark.parametrize(
    ("window", "found"),
    [
        ("TUMBLE(A.ts, '2 seconds')", [[2, 1, 2], [1, 0, 4]]),
        ("TUMBLE(A._ts, '2 seconds')", [[2, 1, 2], [1, 0, 4]]),
        ("window(_ts, '4 seconds')", [[1, 1, 4], [2, 0, 8]]),
        ("SESSION(A.ts, '2 seconds')", [[3, 1, 4]]),
        ("SESSION(_ts, '2 seconds')", [[1, 1, 5], [2, 0, 9]]),
    ],
)
def test_windows_to_group_by_over_a_join(window: str, found: list[list[Any]]) -> None:
    joined = f"FROM A LEFT JOIN B ON A.k = B.k GROUP BY {window}"
    assert answers(f"SELECT COUNT(*) AS n, COUNT(B.k) AS b, window_end {joined}")[: len(found)] == found


def test_state_is_bounded_by_the_windows() -> None:
    running, sizes = engine(), []
    joins = " LEFT JOIN ".join(f"A AS a{n} ON a{n}.k = a0.k + {n}" for n in (1, 2, 3))
    running.add_query("q", f"SELECT a0.k FROM A AS a0 LEFT JOIN {joins} WINDOW 5 SECONDS")
    for second in range(120):
        running.push({"A": table("A", [(second, second)])})
        sizes.append(state_rows(running.manifest))
    assert max(sizes[90:]) <= max(sizes[30:60])


def test_a_query_that_goes_takes_its_joins_along_and_none_other_may_change_them() -> None:
    running, asked = engine(), "SELECT A.k, C.ts FROM A LEFT JOIN B ON A.k = B.k LEFT JOIN C ON A.k = C.k"
    running.add_query("q", f"{asked} WINDOW 5 SECONDS")
    running.add_query("r", f"{asked} WHERE C.k IS NULL WINDOW 5 SECONDS")
    running.push({})
    (part,) = running.manifest.queries.keys() - {"q", "r"}
    assert part.startswith("a_b-"), "both read the same part"
    with pytest.raises(QueryError, match="a nested join"):
        running.change_query("q", f"{asked} WINDOW 6 SECONDS")
    running.drop_query("q")
    running.drop_query("r")
    running.push({})
    assert not running.manifest.queries


def test_answers_timed_by_a_source_are_read_as_late_as_they_come() -> None:
    running = engine()
    running.add_query("pairs", "SELECT A.k, A._ts FROM A JOIN B ON A.k = B.k WINDOW 5 SECONDS")
    running.add_query("n", "SELECT COUNT(*) AS n, window_end FROM pairs GROUP BY TUMBLE(_ts, '2 seconds')")
    first = running.push({"A": table("A", [(1, 0), (2, 1)]), "B": table("B", [(2, 2), (1, 5)])})
    assert (first["pairs"].num_rows, first["n"].num_rows) == (2, 0)
    later = running.push({"A": table("A", [(3, 7)]), "B": table("B", [(4, 7)])})["n"].to_pylist()
    assert [(row["n"], row["window_end"].second) for row in later] == [(2, 2)]


@pytest.mark.parametrize(("second", "met"), [(7, 7), (8, None)])
def test_a_row_that_is_known_late_meets_nobody_out_of_its_own_window(second: int, met: int | None) -> None:
    running = engine()
    joined = "A LEFT JOIN B ON A.k = B.k LEFT JOIN C ON A.k = C.k"
    running.add_query("q", f"SELECT C.ts AS c, _ts FROM {joined} WHERE A.k = 3 WINDOW 5 SECONDS")
    running.push({"A": table("A", [(3, 2)]), "C": table("C", [(3, second)])})
    (row,) = running.push({stream: table(stream, [(8, 40)]) for stream in "ABC"})["q"].to_pylist()
    assert (row["c"] and row["c"].second, row["_ts"].second) == (met, 7)
