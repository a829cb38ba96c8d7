"""What outer, semi and anti joins do beside what random cases ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import QueryError
from midstream.units.lane_load import state_rows

Rows = dict[str, list[tuple[int | None, int]]]
"""Rows of streams as (k, second)."""

STEPS: tuple[Rows, ...] = ({"A": [(1, 0), (2, 1), (None, 2)], "B": [(1, 3)]}, {"A": [(9, 20)], "B": [(8, 20)]})


def engine() -> ms.Engine:
    found = ms.Engine()
    for stream in "AB":
        found.create_stream(stream, "k BIGINT, ts TIMESTAMP, v BIGINT", timestamp="ts")
    return found


def answers(asked: str, steps: Sequence[Rows] = STEPS) -> list[dict[str, Any]]:
    running = engine()
    running.add_query("q", f"{asked} WINDOW 5 SECONDS")
    found = []
    for step in steps:
        tables = {
            name: pa.table({
                "k": pa.array([k for k, _ in rows], pa.int64()),
                "ts": pa.array([second * 1_000_000 for _, second in rows], pa.timestamp("us")),
                "v": pa.nulls(len(rows), pa.int64()),
            })
            for name, rows in step.items()
        }  # fmt: skip
        found += running.push(tables)["q"].to_pylist()
    return found


def test_what_a_subquery_makes_of_columns_is_null_in_padded_rows() -> None:
    inner = "(SELECT k, COALESCE(v, 7) AS w, 1 AS one FROM B) AS b"
    joined = f"SELECT A.k, b.w, b.one FROM A LEFT JOIN {inner} ON A.k = b.k"
    assert answers(joined) == [
        {"k": 1, "w": 7, "one": 1},
        {"k": 2, "w": None, "one": None},
        {"k": None, "w": None, "one": None},
    ]
    assert answers(f"{joined} WHERE b.one IS NULL") == answers(joined)[1:]


def test_a_row_whose_window_ends_where_a_step_ends_is_padded_once() -> None:
    steps: list[Rows] = [{"A": [(1, 0)]}, *({"A": [(None, second)], "B": [(None, second)]} for second in (5, 6, 7))]
    assert answers("SELECT A.k, B.k AS other FROM A LEFT JOIN B ON A.k = B.k", steps) == [{"k": 1, "other": None}]


def test_a_filter_of_a_subquery_keeps_rows_of_a_preserved_stream_out() -> None:
    inner = "(SELECT * FROM A WHERE k > 1) AS a"
    assert answers(f"SELECT a.k, B.k AS other FROM {inner} LEFT JOIN B ON a.k = B.k") == [{"k": 2, "other": None}]


def test_a_stream_is_joined_with_itself() -> None:
    found = answers("SELECT a.k, b.k AS other FROM A a LEFT JOIN A b ON a.k + 1 = b.k")
    assert found == [{"k": 1, "other": 2}, {"k": 2, "other": None}, {"k": None, "other": None}]


def test_a_column_of_using_is_that_of_the_preserved_stream() -> None:
    assert answers("SELECT k, B.ts IS NULL AS alone FROM A LEFT JOIN B USING (k)") == [
        {"k": 1, "alone": False},
        {"k": 2, "alone": True},
        {"k": None, "alone": True},
    ]


@pytest.mark.parametrize(
    "condition",
    ["EXISTS (SELECT 1 FROM B WHERE k = A.k)", "k IN (SELECT k FROM B)", "NOT (k NOT IN (SELECT k FROM B))"],
)
def test_bare_columns_of_a_subquery_are_those_of_its_stream(condition: str) -> None:
    assert answers(f"SELECT * FROM A WHERE {condition}") == answers("SELECT * FROM A SEMI JOIN B ON A.k = B.k")


@pytest.mark.parametrize(
    ("beside", "inside", "found"),
    [
        ("TRUE", "b.k IS NULL OR b.k > 1", []),
        ("A.k IS NOT NULL", "b.k IS NULL OR b.k > 1", []),
        ("A.k IS NOT NULL", "b.k > 1 AND b.k IS NOT NULL", [1]),
    ],
)
def test_not_in_meets_nulls_unless_they_are_excluded(beside: str, inside: str, found: list[int]) -> None:
    """The row of NULL stands in the windows of both others."""
    asked = f"SELECT A.k FROM A WHERE {beside} AND k < 9 AND k NOT IN (SELECT k FROM A AS b WHERE {inside})"
    assert [row["k"] for row in answers(asked)] == found


def test_conditions_and_constants_on_are_no_filters_of_preserved_rows() -> None:
    for condition in ("FALSE", "A.k = 77", "A.k = B.k AND FALSE"):
        assert [row["k"] for row in answers(f"SELECT A.k FROM A LEFT JOIN B ON {condition}")] == [1, 2, None]


@pytest.mark.parametrize("kind", ["FULL", "SEMI", "ANTI"])
def test_state_is_bounded_by_the_rows_of_twice_the_window(kind: str) -> None:
    """However many results each of them is in: here every row joins all that are near."""
    running, sizes = engine(), []
    running.add_query("q", f"SELECT A.k FROM A {kind} JOIN B ON A.k = B.k WINDOW 20 SECONDS")
    for second in range(200):
        times = pa.array([second * 1_000_000], pa.timestamp("us"))
        rows = pa.table({"k": pa.array([1]), "ts": times, "v": pa.array([1])})
        running.push({"A": rows, "B": rows})
        sizes.append(state_rows(running.manifest))
    assert max(sizes[100:]) <= 4 * 2 * 21
    assert max(sizes[150:]) <= max(sizes[50:100])


def test_it_is_refused_where_it_cannot_run() -> None:
    running, asked = engine(), "SELECT A.k FROM A LEFT JOIN B ON A.k = B.k WINDOW 5 SECONDS"
    with pytest.raises(QueryError, match="none of them knows of all partners"):
        running.add_query("q", asked, spread="psp")


@pytest.mark.parametrize(
    ("join", "line"),
    [
        ("A LEFT JOIN B ON A.k = B.k", "answer their results, and the rows of A that have none"),
        ("A FULL JOIN B ON A.k = B.k", "the rows of A and of B that have none"),
        ("A SEMI JOIN B ON A.k = B.k", "answer the rows of A that have one"),
        ("A ANTI JOIN B ON A.k = B.k", "answer the rows of A that have none"),
    ],
)
def test_explain_says_what_is_answered_of_the_join_below(join: str, line: str) -> None:
    engine = ms.Engine()
    for stream in "AB":
        engine.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", f"SELECT A.k FROM {join} WINDOW 5 SECONDS")
    assert line in engine.explain("q").replace("\n       ", " ")
    assert engine.explain("q", format="json")["outer_join"]["preserved"]
