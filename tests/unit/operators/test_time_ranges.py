"""Pairs of runs cut by the time of their results: every pair once, in order, and few at a time."""

from __future__ import annotations

import numpy as np
import pytest

from midstream.model.window import EVENT_TIME, FOREVER
from midstream.operators.join_condition import JoinCondition
from midstream.operators.match import count_candidates
from midstream.operators.window_join import RunPair, is_beyond, pieces, time_ranges
from midstream.state.combinations import Combinations, pair
from midstream.state.sorted_run import SortedRun, sort_run
from midstream.state.specs import Index

INDEXES: tuple[Index, ...] = ("hash", "band", "scan")


def on(index: Index) -> JoinCondition:
    return JoinCondition(index, (), (), -1.0, 1.0, (), ())


def run_of(label: str, times: np.ndarray, keys: np.ndarray, index: Index) -> SortedRun:
    words = times.astype(np.int64)
    ends = np.full(len(words), FOREVER, np.int64)
    found = Combinations({label: np.arange(len(words))}, {EVENT_TIME: words}, {EVENT_TIME: ends})
    return sort_run(None if index == "scan" else keys.astype(np.int64), found)


def pairs_of(index: Index, seed: int, *, times: int, rows: int = 60) -> list[RunPair]:
    """Old and new runs of two sides, all of whose times overlap; one is empty."""
    random = np.random.default_rng(seed)

    def some(label: str, count: int) -> SortedRun:
        return run_of(label, random.integers(0, times, count), random.integers(0, 5, count), index)

    new_left, new_right = some("A", rows), some("B", rows)
    return [
        (new_left, some("B", rows // 2)),
        (some("A", 0), new_right),
        (some("A", 9), new_right),
        (new_left, new_right),
    ]


def joined(index: Index, part: RunPair) -> Combinations:
    left, right = part
    at = [(i, j) for i in range(len(left)) for j in range(len(right)) if _meet(index, left, i, right, j)]
    places = np.array(at, np.int64).reshape(-1, 2)
    return pair(left.combinations, places[:, 0], right.combinations, places[:, 1])


def _meet(index: Index, left: SortedRun, i: int, right: SortedRun, j: int) -> bool:
    if left.codes is None or right.codes is None:
        return True
    return abs(int(left.codes[i]) - int(right.codes[j])) <= (0 if index == "hash" else 1)


def rows_of(found: Combinations, place: int) -> list[tuple[int, int, int]]:
    return [(place, int(a), int(b)) for a, b in zip(found.refs["A"], found.refs["B"], strict=True)]


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("times", [1, 2, 7, 10_000])
@pytest.mark.parametrize("most", [1, 10, 200, 100_000])
def test_every_pair_comes_once_in_order_of_time(index: Index, times: int, most: int) -> None:
    pairs = pairs_of(index, 7 * times + most, times=times)
    whole = [row for place, part in enumerate(pairs) for row in rows_of(joined(index, part), place)]
    found, last = list[tuple[int, int, int]](), -1

    for piece in pieces(on(index), pairs, lambda _, part: joined(index, part), most):
        assert piece and (sum(len(one) for _, one in piece) <= most)
        now = np.concatenate([one.valid_from[EVENT_TIME] for _, one in piece])
        assert last <= now.min()
        last = int(now.max())
        found += [row for place, one in piece for row in rows_of(one, place)]
    assert sorted(found) == sorted(whole) and whole


@pytest.mark.parametrize("index", INDEXES)
def test_a_range_compares_no_more_than_allowed_and_all_together_what_the_whole_does(index: Index) -> None:
    pairs = pairs_of(index, 3, times=10_000)
    whole = sum(count_candidates(on(index), *part) for part in pairs)
    counts = [
        sum(count_candidates(on(index), *one) for part in within for one in part)
        for within in time_ranges(on(index), pairs, 200)
    ]
    assert sum(counts) == whole and max(counts) <= 200
    assert len(counts) < 1 + 4 * whole / 200, "and not in many more ranges than it takes"
    assert is_beyond(on(index), pairs, whole - 1) and not is_beyond(on(index), pairs, whole)


def test_what_is_of_one_time_comes_in_parts() -> None:
    pairs = pairs_of("scan", 1, times=1, rows=10)
    found = list(pieces(on("scan"), pairs, lambda _, part: joined("scan", part), 8))
    sizes = [sum(len(one) for _, one in piece) for piece in found]
    assert max(sizes) <= 8 and sum(sizes) == sum(len(a) * len(b) for a, b in pairs)
