"""Aggregates of groups against plain Python, and the instants they are taken at."""

from __future__ import annotations

import datetime
import math
import statistics
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.language.expression import Column
from midstream.language.query import AggregateCall
from midstream.operators.aggregate import aggregate
from tests.unit.building import engine, table


def over(function: str, values: pa.Array, owner: list[int], groups: int, *, distinct: bool = False) -> list[Any]:
    call = AggregateCall(function, Column(values.type, "A", "x"), distinct)
    found = aggregate(call, values, np.array(owner, np.int64), groups)
    assert len(found) == groups
    return list(found.to_pylist())


def wanted(function: str, values: list[int], distinct: bool) -> int | float | None:
    """The aggregate of the values that are not NULL."""
    kept = list(dict.fromkeys(values)) if distinct else values
    if function == "count":
        return len(kept)
    if not kept:
        return None
    if function == "sum":
        return sum(kept) if -(2**63) <= sum(kept) < 2**63 else None
    if function == "median":
        return statistics.median(kept)
    return {"avg": statistics.fmean(kept), "min": min(kept), "max": max(kept)}[function]


@pytest.mark.parametrize("function", ["count", "sum", "avg", "min", "max", "median"])
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(-5, 5), st.integers(-(2**52), 2**52)))),
    st.booleans(),
)
def test_integers_by_group(function: str, rows: list[tuple[int, int | None]], distinct: bool) -> None:
    values = pa.array([value for _, value in rows], pa.int64())
    found = over(function, values, [group for group, _ in rows], 6, distinct=distinct)
    for group in range(6):
        kept = [value for owner, value in rows if owner == group and value is not None]
        expected = wanted(function, kept, distinct)
        if function == "avg" and expected is not None:
            assert found[group] == pytest.approx(expected, rel=1e-12, abs=1e-9)
        else:
            assert found[group] == expected


def test_counting_rows() -> None:
    assert aggregate(AggregateCall("count", None), None, np.array([2, 2, 0]), 4).to_pylist() == [1, 0, 2, 0]


def test_types_of_the_results() -> None:
    owner = [0, 0]
    small, exact = pa.array([1, 2], pa.int8()), pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal128(5, 2))
    assert over("sum", small, owner, 1) == [3]
    assert over("sum", exact, owner, 1) == [Decimal("3.75")]
    assert over("avg", small, owner, 1) == over("median", small, owner, 1) == [1.5]
    assert over("avg", exact, owner, 1) == over("median", exact, owner, 1) == [1.875]
    assert over("max", exact, owner, 1) == [Decimal("2.25")]
    assert over("min", pa.array(["b", "a"]), owner, 1) == ["a"]
    days = pa.array([datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)])
    assert over("max", days, owner, 1) == [datetime.date(2024, 3, 1)]
    lasts = pa.array([datetime.timedelta(seconds=2), datetime.timedelta(seconds=-1)], pa.duration("us"))
    assert over("min", lasts, owner, 1) == [datetime.timedelta(seconds=-1)]


def test_nan_is_the_greatest_number() -> None:
    values, owner = pa.array([math.nan, 1.0, math.nan, None]), [0, 0, 1, 2]
    assert over("min", values, owner, 3)[0] == 1.0
    assert math.isnan(over("max", values, owner, 3)[0])
    assert math.isnan(over("min", values, owner, 3)[1])
    assert over("max", values, owner, 3)[2] is None


def test_equal_values_are_counted_once() -> None:
    assert over("count", pa.array([0.0, -0.0, math.nan, -math.nan, None]), [0] * 5, 1, distinct=True) == [2]
    assert over("count", pa.array(["a", "A", "a", None]), [0] * 4, 1, distinct=True) == [2]
    assert over("count", pa.array([1, 1, 2, 1]), [0, 0, 0, 1], 2, distinct=True) == [2, 1]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [2**62] * 3),
        (pa.int64(), [-(2**63), -1]),
        (pa.int64(), [-(2**63)] * 5),
        (pa.int64(), [-1, -1]),
        (pa.uint64(), [2**63 + 5, 2**63]),
        (pa.uint64(), [2**64 - 1] * 3),
        (pa.int32(), [2**31 - 1] * 9),
    ],
)
def test_a_sum_of_integers_always_fits(kind: pa.DataType, values: list[Any]) -> None:
    assert over("sum", pa.array(values, kind), [0] * len(values), 1) == [sum(values)]


def test_a_sum_of_decimals_that_does_not_fit_is_null() -> None:
    assert over("sum", pa.array([Decimal(9) * 10**37] * 2, pa.decimal128(38, 0)), [0, 0], 1) == [None]


@pytest.mark.parametrize("values", [[2**63 - 1, 1, -1], [-(2**63), 5], [2**62, 2**62 - 1], [2**62, 2**62, -(2**62)]])
def test_a_sum_that_fits_is_exact_whatever_lies_between(values: list[int]) -> None:
    assert over("sum", pa.array(values), [0] * len(values), 1) == [sum(values)]


@pytest.mark.parametrize("function", ["avg", "median"])
def test_large_integers_have_a_mean(function: str) -> None:
    assert over(function, pa.array([2**53 + 1, 2**53 + 1]), [0, 0], 1) == [float(2**53)]
    assert over(function, pa.array([2**64 - 1], pa.uint64()), [0], 1) == [float(2**64)]


def counts(every: str, window: str, rows: list[list[float]]) -> list[list[tuple[int, int]]]:
    """(instant in seconds, count) of each step."""
    made = engine("A")
    made.add_query("q", f"SELECT _ts, COUNT(*) AS n FROM A [{window}] EVERY {every}")
    answers = [made.push({"A": table(step)})["q"].to_pylist() for step in rows]
    return [
        [(int((row["_ts"] - datetime.datetime(1970, 1, 1)).total_seconds()), row["n"]) for row in answer]
        for answer in answers
    ]


def test_instants_are_multiples_of_every_that_the_watermark_has_passed() -> None:
    steps: list[list[float]] = [[1, 2, 3], [9], [10], [10.5], [31]]
    assert counts("5 SECONDS", "RANGE 4 SECONDS", steps) == [[], [(5, 3)], [], [(10, 2)], []]


def test_a_row_of_age_exactly_the_window_still_counts() -> None:
    assert counts("5 SECONDS", "RANGE 5 SECONDS", [[0, 5], [5.1], [10.1], [15.1]]) == [
        [(0, 1)],
        [(5, 2)],
        [(10, 2)],
        [(15, 1)],
    ]


def test_before_the_epoch() -> None:
    assert counts("5 SECONDS", "RANGE 3 SECONDS", [[-12, -7], [-4], [1]]) == [[(-10, 1)], [(-5, 1)], []]


def test_a_gap_of_years_costs_nothing_and_groups_that_are_empty_give_no_row() -> None:
    assert counts("1 SECOND", "RANGE 1 SECOND", [[0], [10**9], [10**9 + 1]]) == [
        [],
        [(0, 1), (1, 1)],
        [(10**9, 1)],
    ]


def test_nothing_is_said_twice_and_nothing_left_out_however_steps_fall() -> None:
    times = [0, 0.5, 3, 7, 7.5, 8, 15, 22, 30]
    whole = [found for answer in counts("2 SECONDS", "RANGE 5 SECONDS", [list(times)]) for found in answer]
    for cut in range(1, len(times)):
        parts = counts("2 SECONDS", "RANGE 5 SECONDS", [list(times[:cut]), list(times[cut:])])
        assert [found for answer in parts for found in answer] == whole


def test_rows_windows_are_by_event_time_whatever_the_order_of_arrival() -> None:
    """The last two rows by time at each instant; rows wait for the watermark, the later pushed may be the earlier."""
    made = engine("A", lateness=10_000_000)
    made.add_query("q", "SELECT _ts, MIN(A.k) AS lo, MAX(A.k) AS hi FROM A [ROWS 2] EVERY 1 SECOND")
    made.push({"A": table([3, 1], k=[3, 1])})
    made.push({"A": table([2, 0], k=[2, 0])})
    answer = made.push({"A": table([14], k=[14])})["q"].to_pylist()
    assert [(row["_ts"].second, row["lo"], row["hi"]) for row in answer] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 1, 2),
        (3, 2, 3),
    ]
