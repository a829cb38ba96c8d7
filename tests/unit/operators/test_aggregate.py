"""Aggregates of groups against plain Python, and the instants they are taken at."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.expr.expression import Column
from midstream.logical.query import AggregateCall
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


JUDGE = duckdb.connect(config={"threads": 1})
DIGITS = st.integers(-(10**18), 10**18)
EXACT = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.one_of(st.integers(-9, 9), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)])),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.decimal128(4, 2): st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-2)),
    pa.decimal128(18, 3): DIGITS.map(lambda n: Decimal(n % 10**18).scaleb(-3)),
    pa.decimal128(30, 9): st.one_of(DIGITS, st.sampled_from([10**29, -(10**29)])).map(lambda n: Decimal(n).scaleb(-9)),
}


@pytest.mark.parametrize("kind", EXACT, ids=str)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_mean_of_exact_numbers_is_that_of_duckdb_in_any_order(kind: pa.DataType, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), EXACT[kind])), min_size=1))
    expected = dict(duckdb_over("avg(x)", kind, rows))
    for order in (rows, data.draw(st.permutations(rows))):
        found = over("avg", pa.array([value for _, value in order], kind), [group for group, _ in order], 4)
        assert found == [expected.get(group) for group in range(4)]


def duckdb_over(call: str, kind: pa.DataType, rows: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
    given = pa.table({"g": [group for group, _ in rows], "x": pa.array([value for _, value in rows], kind)})
    JUDGE.register("given", given)
    return JUDGE.execute(f"SELECT g, {call} FROM given GROUP BY g").fetchall()


def test_a_mean_of_64_bits_does_not_lose_the_small_beside_the_great() -> None:
    for values in ([7, 7, 2**62, -(2**62)], [2**62, -(2**62), 7, 7]):
        assert over("avg", pa.array(values), [0] * 4, 1) == [3.5]
    assert over("avg", pa.array([Decimal(9) * 10**37] * 2, pa.decimal128(38, 0)), [0, 0], 1) == [9e37]


GREATEST = 1.7976931348623157e308


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "middle"),
    [
        ([1e308, 1e308], 1e308),
        ([1e308, GREATEST], 1.3988465674311578e308),
        ([-1e308, 1e308], 0.0),
        ([-GREATEST, GREATEST], 0.0),
        ([math.inf, 1.0], math.inf),
        ([-math.inf, -math.inf], -math.inf),
        ([-math.inf, math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
    ],
)
def test_the_middle_of_two_doubles_is_never_too_great(values: list[float], middle: float) -> None:
    call = AggregateCall("quantile_cont", Column(pa.float64(), "A", "x"), share=0.5)
    given = pa.array(values)
    ((_, theirs),) = duckdb_over("median(x)", pa.float64(), [(0, value) for value in values])
    for found in (over("median", given, [0, 0], 1), aggregate(call, given, np.zeros(2, np.int64), 1).to_pylist()):
        assert found == pytest.approx([middle], rel=1e-15, nan_ok=True)
        assert found == pytest.approx([theirs], rel=0, nan_ok=True)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.77, 0.9])
def test_a_quantile_between_two_values_is_that_of_duckdb(share: float) -> None:
    """But for one in thousands, where DuckDB rounds once what has two roundings here."""
    values = np.random.default_rng(0).normal(size=4000)
    owner = np.arange(4000) // 4
    call = AggregateCall("quantile_cont", Column(pa.float64(), "A", "x"), share=share)
    found = aggregate(call, pa.array(values), owner, 1000).to_numpy()
    rows = list(zip(owner.tolist(), values.tolist(), strict=True))
    theirs = [value for _, value in sorted(duckdb_over(f"quantile_cont(x, {share})", pa.float64(), rows))]
    assert np.count_nonzero(found != theirs) <= 2
    assert np.allclose(found, theirs, rtol=1e-14, atol=0)


@pytest.mark.parametrize(("function", "call"), [("median", "median(x::DOUBLE)"), ("avg", "avg(x)")])
def test_decimals_are_rounded_once(function: str, call: str) -> None:
    rows = [(number, Decimal(number).scaleb(-2)) for number in range(10_000)]
    kind = pa.decimal128(4, 2)
    found = over(function, pa.array([value for _, value in rows], kind), [group for group, _ in rows], len(rows))
    assert found == [value for _, value in sorted(duckdb_over(call, kind, rows))]


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
