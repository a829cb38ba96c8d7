"""Combinations: windows decided per pair, purging, putting together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from midstream.state import combinations as module
from midstream.state.combinations import Candidates, Combinations, concatenate, empty, pair, pair_few

Row = tuple[int, int, int, int]
"""now and until on the clock of event time, now and until on a clock of arrivals."""


def combinations(label: str, rows: list[Row]) -> Combinations:
    words = np.array(rows, np.int64).reshape(-1, 4)
    return Combinations(
        {label: np.arange(len(rows)) + 100},
        {"ts": words[:, 0], "rows:A": words[:, 2]},
        {"ts": words[:, 1], "rows:A": words[:, 3]},
    )


row = st.tuples(st.integers(0, 9), st.integers(0, 12), st.integers(0, 9), st.integers(0, 12))


@settings(max_examples=100, deadline=None)
@given(st.lists(row, max_size=6), st.lists(row, max_size=6))
@example([(0, 5, 0, 9)], [(5, 8, 0, 9)])
def test_a_pair_is_within_its_windows_on_every_clock(left: list[Row], right: list[Row]) -> None:
    indices = [(i, j) for i in range(len(left)) for j in range(len(right))]
    at = np.array(indices, np.int64).reshape(-1, 2)
    found = pair(combinations("A", left), at[:, 0], combinations("B", right), at[:, 1])
    expected = []
    for i, j in indices:
        now = max(left[i][0], right[j][0]), max(left[i][2], right[j][2])
        until = min(left[i][1], right[j][1]), min(left[i][3], right[j][3])
        if now[0] <= until[0] and now[1] <= until[1]:
            expected.append((i + 100, j + 100, *now, *until))
    columns = (*found.refs.values(), *found.valid_from.values(), *found.valid_to.values())
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == expected
    assert found.labels == ("A", "B")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.lists(row, min_size=1, max_size=4), st.lists(row, min_size=1, max_size=4)), min_size=1))
@example([([(0, 5, 0, 9)], [(5, 8, 0, 9)])])
def test_few_candidates_of_several_blocks_are_paired_as_one_block_after_the_other(
    blocks: list[tuple[list[Row], list[Row]]],
) -> None:
    pieces = []
    for left, right in blocks:
        at = np.indices((len(left), len(right))).reshape(2, -1)
        pieces.append(Candidates(combinations("A", left), at[0], combinations("B", right), at[1]))
    found, kept = pair_few(pieces)
    expected = [pair(*piece) for piece in pieces]
    assert found.words.tolist() == concatenate(expected).words.tolist()
    everything = np.arange(sum(len(piece.left_at) for piece in pieces))
    assert len(everything if kept is None else kept) == sum(map(len, expected))


def test_columns_of_a_block_and_of_pieces_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY", 2)
    rows = combinations("A", [(1, 4, 2, 9), (3, 5, 4, 9)])
    for held in (rows, rows.take(np.arange(2)), concatenate([rows.take(slice(0, 1)), rows.take(slice(1, 2))])):
        assert held.numbers_of("A").tolist() == [100, 101]
        assert held.begins_on("ts").tolist() == [1, 3]
        assert held.begins_on("rows:A").tolist() == [2, 4]


def test_the_end_of_a_window_counts() -> None:
    left, right = combinations("A", [(1, 5, 0, 99)]), combinations("B", [(5, 9, 0, 99), (6, 9, 0, 99)])
    found = pair(left, np.array([0, 0]), right, np.array([0, 1]))
    assert found.refs["B"].tolist() == [100]
    assert found.valid_from["ts"].tolist() == [5]
    assert found.valid_to["ts"].tolist() == [5]


def test_purge_keeps_what_ends_at_the_bound() -> None:
    rows = combinations("A", [(0, 4, 0, 9), (0, 5, 0, 9), (0, 6, 0, 1), (0, 7, 0, 2)])
    assert rows.purge({"ts": 5}).refs["A"].tolist() == [101, 102, 103]
    assert rows.purge({"ts": 5, "rows:A": 2}).refs["A"].tolist() == [101, 103]
    assert rows.purge({"rows:B": 99, "ts": -1}) is rows
    assert rows.alive({"ts": 4}) is None
    assert rows.purge({}) is rows


def test_lifetimes_are_the_least_and_greatest_ends() -> None:
    rows = combinations("A", [(0, 4, 0, 9), (0, 7, 0, 1)])
    assert rows.lifetimes() == {"ts": (4, 7), "rows:A": (1, 9)}
    assert rows.take(np.zeros(0, np.int64)).lifetimes() == {}


def test_nothing_is_a_combination_too() -> None:
    none = empty(("A", "B"), ("ts",))
    assert len(none) == 0
    assert none.labels == ("A", "B")
    assert none.alive({"ts": 5}) is None
    assert len(pair(none, np.zeros(0, np.int64), none, np.zeros(0, np.int64))) == 0


def test_concatenation_goes_by_name() -> None:
    one = Combinations({"A": np.array([1]), "B": np.array([2])}, {"ts": np.array([3])}, {"ts": np.array([4])})
    other = Combinations({"B": np.array([6]), "A": np.array([5])}, {"ts": np.array([7])}, {"ts": np.array([8])})
    whole = concatenate([one, other])
    assert {label: refs.tolist() for label, refs in whole.refs.items()} == {"A": [1, 5], "B": [2, 6]}
    assert whole.valid_from["ts"].tolist() == [3, 7]
    assert whole.valid_to["ts"].tolist() == [4, 8]
    assert concatenate([one]) is one


def test_take_by_mask_index_and_slice() -> None:
    rows = combinations("A", [(i, i, i, i) for i in range(4)])
    for which in (np.array([False, True, True, False]), np.array([1, 2]), slice(1, 3)):
        taken = rows.take(which)
        assert taken.refs["A"].tolist() == [101, 102]
        assert taken.valid_from["ts"].tolist() == taken.valid_to["rows:A"].tolist() == [1, 2]


def test_slices_of_columns_copy_nothing() -> None:
    rows = combinations("A", [(i, i, i, i) for i in range(4)])
    columns = Combinations(rows.refs, rows.valid_from, rows.valid_to)
    taken = columns.take(slice(1, 3))
    assert taken.refs["A"].tolist() == [101, 102]
    assert np.shares_memory(taken.refs["A"], columns.refs["A"])
    assert taken.words.tolist() == rows.take(slice(1, 3)).words.tolist()


def test_many_joined_of_pieces_are_what_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [combinations("A", [(1, 5, 0, 9), (2, 6, 1, 8)]), combinations("A", [(3, 7, 2, 7)])]
    few = concatenate(pieces)
    monkeypatch.setattr(module, "MANY", 1)
    at = np.array([2, 0])
    for many in (concatenate(pieces), concatenate([concatenate(pieces[:1]), pieces[1]])):
        assert len(many) == 3
        assert many.labels == few.labels
        assert many.refs["A"].tolist() == few.refs["A"].tolist()
        assert many.valid_from["ts"].tolist() == few.valid_from["ts"].tolist()
        assert many.valid_to["rows:A"].tolist() == few.valid_to["rows:A"].tolist()
        assert not many.is_block
        assert many.at(at).words.tolist() == few.at(at).words.tolist()
        assert concatenate([many, pieces[0]]).at(at).words.tolist() == few.at(at).words.tolist()
        assert many.words.tolist() == few.words.tolist()
        assert many.at(at).words.tolist() == few.at(at).words.tolist()
        assert many.valid_to["ts"].tolist() == few.valid_to["ts"].tolist()
