"""What JISC remembers, and the order in which it asks."""

from __future__ import annotations

import numpy as np
import pytest

from midstream.migration.just_in_time.attempts import Attempts
from midstream.migration.just_in_time.distinct_keys import Keys, among, united
from midstream.migration.just_in_time.probed_state import Fork
from midstream.operators.window_join import WindowJoin
from midstream.state.combinations import Words
from tests.unit.migration.rides import Ride
from tests.unit.migration.test_transitions import root


def words(*values: int) -> Words:
    return np.array(values, np.int64)


def keys(codes: tuple[int, ...], ends: tuple[int, ...], rows: tuple[int, ...] | None = None) -> Keys:
    return Keys.of(words(*codes), {"event": words(*ends), "rows:A": words(*(rows or ends))})


def test_a_key_lives_as_long_as_its_last_row() -> None:
    found = keys((4, 2, 4, -9, 2), (10, 20, 5, 7, 30))
    assert (found.codes.tolist(), found.ends["event"].tolist()) == ([-9, 2, 4], [7, 30, 10])
    assert found.newest().tolist() == [2, 4, -9]
    assert len(keys((), ())) == 0
    assert keys((), ()).newest().tolist() == []


def test_both_sides_of_a_join_have_a_key_only_while_both_live() -> None:
    found = keys((1, 2, 4), (10, 20, 30)).both(keys((4, 3, 2), (5, 50, 50)))
    assert (found.codes.tolist(), found.ends["event"].tolist()) == ([2, 4], [20, 5])


def test_a_key_is_dead_once_it_is_so_on_one_clock() -> None:
    found = keys((1, 2, 3), (10, 20, 30), (30, 20, 10))
    assert found.alive({"event": 11}).codes.tolist() == [2, 3]
    assert found.alive({"event": 11, "rows:A": 11}).codes.tolist() == [2]
    assert found.alive({"event": 10, "another": 99}) is found


def test_codes_among_others() -> None:
    assert among(words(5, 1, 9, 5), words(1, 5)).tolist() == [True, True, False, True]
    assert among(words(5), words()).tolist() == [False]
    assert united([words(3, 1), words(), words(1)]).tolist() == [1, 3]
    assert united([]).tolist() == []


@pytest.mark.parametrize("start", [None, {"A": 3, "B": 0}])
@pytest.mark.parametrize("whole", [False, True])
def test_attempts_are_read_as_they_were_written(start: dict[str, int] | None, whole: bool) -> None:
    clocks = ("event", "rows:A")
    left = {"A.k": keys((1, 2), (10, 20)), "A.j": keys((), ()), "B.j": keys((2**63 - 1, -(2**63)), (4, 5))}
    read = Attempts.from_batch(Attempts(start, left, whole).to_batch(clocks), clocks)
    assert (read.start, read.whole, list(read.left)) == (start, whole, list(left))
    for column, written in left.items():
        assert read.left[column].codes.tolist() == written.codes.tolist()
        assert {c: e.tolist() for c, e in read.left[column].ends.items()} == {
            c: e.tolist() for c, e in written.ends.items()
        }
    assert read.counter("A.k") == (0 if whole else 2)
    assert read.counter("A.j") == 0
    assert read.counter(None) == (0 if whole else None)
    assert read.counter("C.k") == (0 if whole else None)


def test_codes_of_a_band_may_be_fractions_and_nan() -> None:
    """NaN is one code, the greatest; -0.0 is 0.0."""
    codes = np.array([np.nan, 0.5, -0.0, 0.0, np.nan, -np.inf])
    found = Keys.of(codes, {"event": words(1, 2, 3, 4, 5, 6)})
    assert (found.codes[:-1].tolist(), np.isnan(found.codes[-1])) == ([-np.inf, 0.0, 0.5], True)
    assert found.ends["event"].tolist() == [6, 4, 2, 5]
    assert among(np.array([np.nan, 1.0, 0.5]), found.codes).tolist() == [True, False, True]
    assert len(found.without(np.array([0.0, np.nan]))) == 2
    read = Attempts.from_batch(
        Attempts(left={"band A.f": found, "A.k": keys((3,), (4,))}).to_batch(("event",)), ("event",)
    )
    assert read.left["band A.f"].codes.dtype == np.float64
    assert np.array_equal(read.left["band A.f"].codes, found.codes, equal_nan=True)
    assert read.left["A.k"].codes.tolist() == [3]


def test_what_is_attempted_is_no_longer_left() -> None:
    attempts = Attempts(left={"A.k": keys((1, 2, 3), (10, 20, 30)), "A.j": keys((7,), (70,))})
    assert attempts.attempted("A.k", words(1, 3)).left["A.k"].codes.tolist() == [2]
    assert attempts.attempted("A.k", words(1, 3)).left["A.j"].codes.tolist() == [7]
    assert attempts.alive({"event": 25}).left["A.k"].codes.tolist() == [3]


class TestOrder:
    """Keys go down by the side that owns them; a unit answers first where it can (Procedures 2-3)."""

    def fork(self, plan: str, levels: bool = False) -> Fork:
        join = root(Ride(plan, levels=levels).go(1), plan)
        assert isinstance(join, WindowJoin)
        return Fork.of(join, frozenset(map(frozenset, "ABCD")))

    def test_the_deepest_states_come_first(self) -> None:
        assert ["".join(sorted(s.labels)) for s in self.fork("(A ((C D) B))").probed_states()] == ["CD", "BCD"]
        assert ["".join(sorted(s.labels)) for s in self.fork("((A C) (B D))").probed_states()] == ["AC", "BD"]

    def test_a_unit_answers_first_for_a_key_that_both_sides_have(self) -> None:
        below = self.fork("(((A B) C) D)").left.below
        assert below is not None
        order = below.order(below.left.primary)
        assert [sorted(side.labels) for side in (order.first, order.second)] == [["C"], ["A", "B"]]
        assert [e.name for e in (order.ask, order.link, order.other) if e] == ["C.k", "C.k", "A.k"]

    def test_another_key_goes_to_the_side_that_owns_it(self) -> None:
        """A.k = B.k, B.j = C.j, C.k = D.k: BC is asked for D's k by way of C, and B for the j that yields."""
        below = self.fork("(A ((B C) D))", levels=True).right.below
        assert below is not None
        assert below.left.below is not None
        assert below.left.primary is not None
        assert below.left.primary.name == "C.k"
        order = below.left.below.order(below.left.primary)
        assert [sorted(side.labels) for side in (order.first, order.second)] == [["C"], ["B"]]
        assert [e.name for e in (order.ask, order.link, order.other) if e] == ["C.k", "C.j", "B.j"]

    def test_all_of_a_state_is_read_from_a_unit_on(self) -> None:
        below = self.fork("(((A B) C) D)").left.below
        assert below is not None
        order = below.order(None)
        assert (sorted(order.first.labels), order.ask) == (["C"], None)
        assert order.other is not None
