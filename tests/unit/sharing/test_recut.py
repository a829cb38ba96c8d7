"""Chains are cut anew when queries change, and at times by the statistics; the scheme says where."""

from __future__ import annotations

from dataclasses import replace

from midstream.model.events import ChainChanged, Event
from midstream.sharing.recut import STEPS_BETWEEN, figures, recut
from tests.unit.sharing.manifests import at, begun, text, with_queries

ROWS = "SELECT A.k FROM A [ROWS {0}], B [ROWS {0}] WHERE A.k = B.k"


def test_a_change_of_queries_cuts_at_their_windows_and_says_so() -> None:
    events: list[Event] = []
    cut = recut(with_queries(begun(), q=text(5), r=text(9), s=text(9)), events, changed=True)
    assert cut.chains["q"].cuts == (5, 9)
    assert events == [ChainChanged(0, "q", (5, 9), (), "queries", 3)]
    again: list[Event] = []
    assert recut(cut, again, changed=True).chains == cut.chains and not again


def test_one_window_or_windows_that_count_rows_are_one_slice() -> None:
    events: list[Event] = []
    assert recut(with_queries(begun(), q=text(9), r=text(9)), events, changed=True).chains["q"].cuts == ()
    rows = with_queries(begun(), q=ROWS.format(5), r=ROWS.format(9))
    assert recut(rows, events, changed=True).chains["q"].cuts == ()
    assert not events


def test_without_a_change_chains_are_looked_at_every_so_many_steps() -> None:
    both = with_queries(begun(), q=text(5), r=text(9))
    for step in range(1, STEPS_BETWEEN):
        assert recut(replace(both, step=step), [], changed=False).chains["q"].cuts == ()
    events: list[Event] = []
    assert recut(replace(both, step=STEPS_BETWEEN), events, changed=False).chains["q"].cuts == (5, 9)
    assert [e.why for e in events if isinstance(e, ChainChanged)] == ["statistics"]


def test_there_are_no_figures_while_nothing_has_flowed() -> None:
    assert figures(at(with_queries(begun(), q=text(5), r=text(9)), 8, 100), "q", [5, 9]) is None
