"""Candidate pairs against a loop over all pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from midstream.operators import candidates
from midstream.operators.candidates import all_pairs, band_pairs, equal_pairs

Pairs = list[tuple[int, int]]
LEAST, MOST = -(2**63), 2**63 - 1
few = settings(max_examples=150, deadline=None)


def gathered(blocks: Iterable[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]) -> Pairs:
    """The pairs of all blocks; fails where one comes twice."""
    found = [pair for left, right in blocks for pair in zip(left.tolist(), right.tolist(), strict=True)]
    assert len(set(found)) == len(found)
    return sorted(found)


def greater_or_equal(one: float, other: float) -> bool:
    """SQL's order: NaN is the greatest number and equal to itself."""
    return math.isnan(one) or (not math.isnan(other) and one >= other)


integers = st.one_of(st.integers(-4, 4), st.sampled_from([LEAST, LEAST + 1, LEAST + 5, MOST - 5, MOST - 1, MOST]))
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 1.7e308, 5e-324]),
    st.floats(-3, 3),
    st.floats(),
)


@few
@given(st.lists(integers, max_size=12), st.lists(integers, max_size=12))
def test_equal_pairs(left: list[int], right: list[int]) -> None:
    left, right = sorted(left), sorted(right)
    found = gathered(equal_pairs(np.array(left, np.int64), np.array(right, np.int64)))
    assert found == [(i, j) for i in range(len(left)) for j in range(len(right)) if left[i] == right[j]]


@few
@given(
    st.lists(integers, max_size=8),
    st.lists(integers, max_size=8),
    st.one_of(st.none(), st.integers(-3, 3), st.integers(LEAST + 1, MOST)),
    st.one_of(st.none(), st.integers(-3, 3), st.integers(LEAST + 1, MOST)),
)
@example([MOST], [LEAST], None, 0)
@example([LEAST], [MOST], 0, None)
@example([2**53 + 1], [0], 2**53 + 1, 2**53 + 1)
@example([MOST], [MOST - 2**60 - 1], None, 2**60 + 1)
def test_integer_bands_miss_nothing_and_bring_nothing_else(
    left: list[int], right: list[int], low: int | None, high: int | None
) -> None:
    left, right = sorted(left), sorted(right)
    found = gathered(band_pairs(np.array(left, np.int64), np.array(right, np.int64), low, high))
    wanted = [
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if (low is None or a - b >= low) and (high is None or a - b <= high)
    ]
    assert set(wanted) <= set(found)
    inside = all(abs(bound) < 2**62 for bound in (low, high) if bound is not None)
    if inside and all(abs(value) < 2**62 for value in left + right):
        assert found == wanted


@few
@given(
    st.lists(numbers, max_size=8),
    st.lists(numbers, max_size=8),
    st.one_of(st.none(), st.sampled_from([-1.7e308, -0.5, 0.0, 1.0, 1.7e308]), st.floats(-2, 2)),
    st.one_of(st.none(), st.sampled_from([-1.7e308, -0.5, 0.0, 1.0, 1.7e308]), st.floats(-2, 2)),
)
@example([1.7e308], [math.inf], None, -1.7e308)
@example([-1.7e308], [-math.inf], 1.7e308, None)
@example([math.nan, 1.0], [math.nan, 1.0], None, 0.0)
def test_bands_of_doubles_miss_no_pair_that_the_predicate_accepts(
    left: list[float], right: list[float], low: float | None, high: float | None
) -> None:
    a, b = np.sort(np.array(left, np.float64)), np.sort(np.array(right, np.float64))
    found = set(gathered(band_pairs(a, b, low, high)))
    with np.errstate(all="ignore"):
        for i in range(len(a)):
            for j in range(len(b)):
                difference = float(a[i] - b[j])
                accepted = (low is None or greater_or_equal(difference, low)) and (
                    high is None or greater_or_equal(high, difference)
                )
                assert not accepted or (i, j) in found, (a[i], b[j])


@pytest.mark.parametrize(
    ("a", "b", "high"),
    [
        (0.4045518398215282, -0.5954481601784719, 1.0),
        (1.4169010102500343, 0.41690101025003423, 1.0),
        (0.22122304019341776, -0.07877695980658224, 0.3),
    ],
)
def test_a_difference_rounded_to_the_bound_is_found(a: float, b: float, high: float) -> None:
    """The predicate rounds `a - b`, the search rounds `a - high`: here only the former reaches the bound."""
    assert a - b <= high
    assert b < a - high
    assert gathered(band_pairs(np.array([a]), np.array([b]), -9.0, high)) == [(0, 0)]
    assert gathered(band_pairs(np.array([b]), np.array([a]), -high, 9.0)) == [(0, 0)]


@few
@given(st.lists(numbers, max_size=8), st.lists(numbers, max_size=8))
def test_comparisons_of_doubles_are_bands_open_on_one_side(left: list[float], right: list[float]) -> None:
    """`a >= b` is searched as `a - b >= 0`; infinite and NaN values compare although their difference is NaN."""
    a, b = np.sort(np.array(left, np.float64)), np.sort(np.array(right, np.float64))
    at_least = set(gathered(band_pairs(a, b, 0.0, None)))
    at_most = set(gathered(band_pairs(a, b, None, 0.0)))
    for i in range(len(a)):
        for j in range(len(b)):
            assert not greater_or_equal(a[i], b[j]) or (i, j) in at_least
            assert not greater_or_equal(b[j], a[i]) or (i, j) in at_most


@few
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_bands_of_doubles_bring_little_else(left: list[float], right: list[float]) -> None:
    a, b = np.sort(np.array(left)), np.sort(np.array(right))
    for i, j in gathered(band_pairs(a, b, -1.0, 1.0)):
        assert abs(a[i] - b[j]) <= 1.0 + 1e-8


def test_integers_against_doubles() -> None:
    """Where one side has no rows it may have the other dtype."""
    assert gathered(band_pairs(np.zeros(0, np.int64), np.array([1.5]), 0, 1)) == []
    assert gathered(band_pairs(np.array([2]), np.array([1.5, 2.0]), 0.0, 0.25)) == [(0, 1)]


def test_all_pairs() -> None:
    assert gathered(all_pairs(2, 3)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert gathered(all_pairs(0, 3)) == gathered(all_pairs(3, 0)) == []


@pytest.mark.parametrize("block", [1, 2, 7])
def test_blocks_bound_the_memory_and_change_no_pair(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = np.array([1, 1, 2, 3, 5]), np.array([1, 1, 1, 2, 5, 5])
    whole = gathered(equal_pairs(left, right))
    monkeypatch.setattr(candidates, "BLOCK", block)
    blocks = [(len(a), len(set(a.tolist()))) for a, _ in equal_pairs(left, right)]
    assert gathered(equal_pairs(left, right)) == whole
    assert all(size <= block or needles == 1 for size, needles in blocks), "larger only where one needle needs it"
    assert len(blocks) > 1
    assert gathered(all_pairs(5, 6)) == [(i, j) for i in range(5) for j in range(6)]
