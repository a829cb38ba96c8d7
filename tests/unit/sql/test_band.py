"""Bands are supersets: what a condition accepts, a search by the band's bounds finds."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.expr.evaluate import evaluate, holds
from midstream.logical.query import BandPredicate
from tests.unit.sql.schemas import COLUMNS, parsed

VALUES = {
    "k": [0, 1, -1, 5, 2**62, -(2**62), 2**63 - 1, None],
    "i": [0, 1, -1, 3, 2**31 - 1, -(2**31), 7, None],
    "v": [0.0, 0.1, 0.2, 0.30000000000000004, 1e17, -1e17, math.nan, math.inf, -math.inf, 1e9, None],
    "m": ["0.00", "0.10", "0.20", "0.30", "99999999.99", "-0.01", None],
    "ts": [0, 1, 999_999, 1_000_000, 1_000_001, 10**15, -1, None],
    "nano": [0, 1, 999, 1000, 1001, 999_999_999, 10**18, -1, None],
    "d": [0, 1, 2, 3, 20_000, -1, None],
}


def column(name: str) -> pa.Array:
    type = COLUMNS.field(name).type
    if name == "m":
        return pa.array(VALUES[name]).cast(type)
    return pa.array(VALUES[name], type)


def check(condition: str) -> BandPredicate:
    """The condition is a band, and the band covers it for every pair of the values."""
    (found,) = parsed(f"SELECT A.k FROM A [ROWS 1], B [ROWS 1] WHERE {condition}").predicates
    assert isinstance(found, BandPredicate), condition
    read = {alias: next(c.name for c in found.expression.columns() if c.alias == alias) for alias in "AB"}
    pairs = list(product(range(len(VALUES[read["A"]])), range(len(VALUES[read["B"]]))))
    sides = {a: column(read[a]).take(pa.array([p[n] for p in pairs])) for n, a in enumerate("AB")}
    accepted = holds(found.expression, lambda c: sides[c.alias], len(pairs))
    left, right = (evaluate(e, lambda c: sides[c.alias], len(pairs)).to_pylist() for e in (found.left, found.right))
    for n in np.flatnonzero(accepted):
        assert left[n] is not None and right[n] is not None
        assert _covers(found, left[n], right[n]), (condition, left[n], right[n], found.low, found.high)
    return found


def _covers(band: BandPredicate, left: float, right: float) -> bool:
    """What a search must give: NaN is greatest, and an open band takes every pair with a NaN."""
    if math.isnan(left) or math.isnan(right):
        return band.low is None or band.high is None or (math.isnan(left) and math.isnan(right))
    if isinstance(left, int):
        return (band.low is None or left - right >= band.low) and (band.high is None or left - right <= band.high)
    slack = (abs(left) + abs(right)) * 1e-15
    least = -math.inf if band.low is None else right + band.low - slack
    most = math.inf if band.high is None else right + band.high + slack
    return (not least > left) and (not most < left)


FORMS = [
    "{a} {o} {b}",
    "{a} {o} {b} + {c}",
    "{a} {o} {b} - {c}",
    "{a} + {c} {o} {b}",
    "{a} - {c} {o} {b}",
    "{c} + {a} {o} {b} - {c}",
    "{a} - {b} {o} {c}",
    "{c} {o} {b} - {a}",
    "-{a} {o} {c} - {b}",
    "{a} + {b} {o} {c}",
    "{a} - {b} BETWEEN -({c}) AND {c}",
    "{a} BETWEEN {b} - {c} AND {b} + {c}",
    "{b} NOT BETWEEN {a} AND {a} OR {a} = {b}",
    "abs({a} - {b}) < {c}",
    "abs({b} - {a}) <= {c}",
    "{c} > abs({a} - {b})",
    "abs({a} - {b} + {c}) <= {c}",
]
CONSTANTS = {
    "k": ["0", "1", "-3", "4611686018427387904"],
    "v": ["0.1", "0.2e0", "1e9", "-0.3", "0"],
    "m": ["0.10", "1", "-0.3"],
}


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_numbers(data: st.DataObject) -> None:
    a, b = data.draw(
        st.sampled_from([("k", "k"), ("k", "i"), ("i", "i"), ("v", "v"), ("v", "i"), ("m", "m"), ("m", "v")])
    )
    form = data.draw(st.sampled_from([f for f in FORMS if "NOT" not in f]))
    kind = "v" if "v" in (a, b) else "m" if "m" in (a, b) else "k"
    operator = data.draw(st.sampled_from(["<", "<=", ">", ">="]))
    constant = data.draw(st.sampled_from(CONSTANTS[kind]))
    check(form.format(a=f"A.{a}", b=f"B.{b}", c=f"({constant})", o=operator))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_times(data: st.DataObject) -> None:
    a, b = data.draw(st.sampled_from([("ts", "ts"), ("nano", "nano"), ("ts", "nano"), ("d", "ts")]))
    form = data.draw(
        st.sampled_from([f for f in FORMS[:11] if "-{a}" not in f and "{a} + {b}" not in f] + FORMS[13:16])
    )
    operator = data.draw(st.sampled_from(["<", "<=", ">", ">="]))
    size = data.draw(st.sampled_from(["INTERVAL 1 SECOND", "INTERVAL 1 MICROSECOND", "INTERVAL '2 days'"]))
    check(form.format(a=f"A.{a}", b=f"B.{b}", c=size, o=operator))


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_a_cast_that_cuts_something_off(operator: str) -> None:
    check(f"CAST(A.ts AS TIMESTAMP_S) {operator} B.ts")


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("A.k < B.k", None, -1),
        ("A.k <= B.k + 3", None, 3),
        ("A.k - 2 > B.k", 3, None),
        ("abs(A.k - B.k) < 5", -4, 4),
        ("A.ts > B.ts", 1, None),
        ("A.ts BETWEEN B.ts - INTERVAL 5 SECONDS AND B.ts + INTERVAL 7 SECONDS", -5_000_000, 7_000_000),
        ("A.ts - B.ts < INTERVAL 1 SECOND", None, 999_999),
        ("abs(A.ts - B.ts) <= INTERVAL 1 SECOND", -1_000_000, 1_000_000),
        ("A.d BETWEEN B.d - 1 AND B.d + 2", -86_400_000_000, 172_800_000_000),
        ("A.d - B.d <= 1", None, 86_400_000_000),
        ("A.nano <= B.nano + INTERVAL 1 MILLISECOND", None, 1001),
        ("A.v < B.v", None, 0.0),
    ],
)
def test_bounds(condition: str, low: float | None, high: float | None) -> None:
    found = check(condition)
    assert (found.low, found.high) == (low, high)


def test_bounds_of_doubles_are_a_little_wider() -> None:
    found = check("abs(A.v - B.v) < 0.0005")
    assert found.low is not None and found.high is not None
    assert 0.0005 < found.high < 0.0005 * (1 + 1e-14) and found.low == -found.high
