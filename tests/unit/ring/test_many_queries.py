"""Many queries over one ring, row by row and pair by pair: Theorems 10 to 13, Lemma 9, the bitmaps of chapter 20."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from midstream.model.errors import PlanError
from midstream.ring.logical_slices import (
    Bitmaps,
    LogicalSlices,
    bitmaps,
    entries,
    queries,
    query_orders,
    routed,
    serving,
)

Bools = npt.NDArray[np.bool_]

cases = settings(max_examples=60, deadline=None, derandomize=True)
seeds = given(seed=st.integers(0, 2**32))


@dataclass(frozen=True)
class Shared:
    """Queries over streams A, B, C: windows and selections of each, rows by age when a row of A comes, matches."""

    windows: dict[str, list[int]]
    ages: dict[str, npt.NDArray[np.int64]]
    passed: dict[str, Bools]
    comes: Bools
    matches: Bools

    @property
    def count(self) -> int:
        return len(self.comes)

    def slices(self, label: str) -> LogicalSlices:
        return LogicalSlices.by_windows(self.windows[label])

    def reached(self, label: str) -> Bools:
        """Whether each row (down) lies in each query's window (across), by definition."""
        return self.ages[label][:, None] <= np.array(self.windows[label])

    def due(self) -> dict[int, set[tuple[int, int]]]:
        """The results of each query alone, by definition: rows of B and C within its windows, all by its selections."""
        found: dict[int, set[tuple[int, int]]] = {}
        for query in range(self.count):
            fits = {label: self.reached(label)[:, query] & self.passed[label][:, query] for label in "BC"}
            found[query] = {
                (b, c)
                for b, c in product(range(len(self.ages["B"])), range(len(self.ages["C"])))
                if self.comes[query] and self.matches[b, c] and fits["B"][b] and fits["C"][c]
            }
        return found


def drawn(seed: int) -> Shared:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 12))
    ages = {label: np.sort(rng.integers(0, 25, rng.integers(0, 12))) for label in "BC"}
    return Shared(
        {label: rng.integers(0, 20, count).tolist() for label in "ABC"},
        ages,
        {label: rng.random((len(found), count)) < 0.6 for label, found in ages.items()},
        rng.random(count) < 0.8,
        rng.random((len(ages["B"]), len(ages["C"]))) < 0.7,
    )


def probed(case: Shared) -> tuple[Bitmaps, Bools]:
    """A row of A visits B, then C: the partial results by B row as what they serve, and the pairs compared with C."""
    partials = bitmaps(case.comes[None, :]) & case.slices("B").reached(case.ages["B"]) & bitmaps(case.passed["B"])
    return partials, case.slices("C").compared(partials, case.ages["C"], bitmaps(case.passed["C"]))


@cases
@seeds
def test_slices_by_windows_hold_the_widest_window_s_rows_once(seed: int) -> None:
    """Theorem 10; and a slice ends at every window, where another set of queries begins."""
    case = drawn(seed)
    for label in "BC":
        slices = case.slices(label)
        place = slices.place(case.ages[label])
        assert int((place < len(slices.ends)).sum()) == int((case.ages[label] <= max(case.windows[label])).sum())
        assert slices.ends.tolist() == sorted(set(case.windows[label]))
        assert len(set(map(bytes, slices.serves))) == len(slices.ends) + 1


@cases
@seeds
def test_a_row_is_kept_as_long_as_any_query_needs_it_and_no_longer(seed: int) -> None:
    """Theorem 12, and Lemma 9 for rows."""
    case = drawn(seed)
    for label in "BC":
        served = case.reached(label) & case.passed[label]
        kept = case.slices(label).kept(case.ages[label], bitmaps(case.passed[label]))
        assert kept.tolist() == served.any(axis=1).tolist()
        assert (queries(case.slices(label).reached(case.ages[label]), case.count) == case.reached(label)).all()


@cases
@seeds
def test_every_query_gets_what_it_would_alone_and_no_pair_is_compared_in_vain(seed: int) -> None:
    """Theorems 11 and 13: selections inside lose nothing; a pair is compared if and only if some query needs it."""
    case = drawn(seed)
    partials, compared = probed(case)
    needed = (
        (case.comes & case.reached("B") & case.passed["B"])[:, None, :]
        & (case.reached("C") & case.passed["C"])[None, :, :]
    ).any(axis=2)
    assert (compared == needed).all()
    assert (serving(partials) >= compared.any(axis=1)).all()
    b, c = np.nonzero(compared & case.matches)
    served = case.slices("C").reached(case.ages["C"][c]) & bitmaps(case.passed["C"])[c] & partials[b]
    found = queries(served, case.count)
    for query, due in case.due().items():
        assert {(int(x), int(y)) for x, y in zip(b[found[:, query]], c[found[:, query]], strict=True)} == due


def test_by_slices_alone_pairs_are_compared_in_vain() -> None:
    """§19.2 as printed: a partial result of the first query meets a row of the second, for both have the slice."""
    slices = LogicalSlices.by_windows([10, 10])
    first, second = bitmaps(np.eye(2, dtype=np.bool_))
    ages = np.array([5])
    assert serving(first[None, :] & slices.reached(ages)).all()
    assert not slices.compared(first[None, :], ages, second[None, :]).any()


@cases
@seeds
def test_bitmaps_route_as_windows_do(seed: int) -> None:
    """Chapter 20: slices by rank of the queries, one AND for each result; equal windows included."""
    case = drawn(seed)
    orders = query_orders(case.windows)
    for b, c in product(range(len(case.ages["B"])), range(len(case.ages["C"]))):
        vector = [bitmaps(np.ones((1, case.count), np.bool_))]
        for stream, label, row in ((1, "B", b), (2, "C", c)):
            rank = np.searchsorted(np.sort(case.windows[label]), case.ages[label][[row]], "left")
            vector.append(entries(orders, stream, rank))
        expected = case.reached("B")[b] & case.reached("C")[c]
        assert queries(routed(vector), case.count)[0].tolist() == expected.tolist()


def test_a_window_of_no_length_is_refused() -> None:
    for windows in ([], [5, -1]):
        with pytest.raises(PlanError, match="window"):
            LogicalSlices.by_windows(windows)
