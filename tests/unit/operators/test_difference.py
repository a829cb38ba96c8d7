"""The change log of EXCEPT against the relation at every instant."""

from __future__ import annotations

from datetime import datetime

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from midstream.model.window import FOREVER
from midstream.operators.difference import Lifetimes, changes
from tests.unit.building import engine, table

Lifetime = tuple[int, int, int]
"""Row, first and last moment."""

Change = tuple[int, int, bool]
"""Moment, row, whether it enters."""

HORIZON = 14


def log(rows: list[Lifetime], blocks: list[Lifetime], span: tuple[int, int]) -> list[Change]:
    refs, times, entering = changes(columns(rows), columns(blocks), span)
    assert times.tolist() == sorted(times.tolist())
    return sorted(zip(times.tolist(), refs.tolist(), entering.tolist(), strict=True))


def columns(lifetimes: list[Lifetime]) -> Lifetimes:
    words = np.array(lifetimes, np.int64).reshape(-1, 3)
    return words[:, 0], words[:, 1], words[:, 2]


def brute(rows: list[Lifetime], blocks: list[Lifetime], span: tuple[int, int]) -> list[Change]:
    def inside(row: Lifetime, moment: int) -> bool:
        alive = row[1] <= moment <= row[2]
        return alive and not any(b[0] == row[0] and b[1] <= moment <= b[2] for b in blocks)

    found = []
    for moment in range(span[0], span[1]):
        for row in rows:
            now = inside(row, moment)
            if now != inside(row, moment - 1):
                found.append((moment, row[0], now))
    return sorted(found)


@st.composite
def relations(draw: st.DrawFn) -> tuple[list[Lifetime], list[Lifetime]]:
    """Rows, and blocks that lie within the lifetimes of their rows as those of pairs do; an end may be open."""
    rows, blocks = [], []
    for row in range(draw(st.integers(0, 4))):
        begin = draw(st.integers(0, 8))
        end = draw(st.one_of(st.integers(begin, 10), st.just(FOREVER)))
        rows.append((row, begin, end))
        for _ in range(draw(st.integers(0, 4))):
            first = draw(st.integers(begin, min(end, 11)))
            # A pair evicted by a ROWS window at the moment it is made ends just before it begins.
            last = draw(st.one_of(st.integers(first - 1, max(min(end, 11), first)), st.just(end)))
            blocks.append((row, first, min(last, end)))
    return draw(st.permutations(rows)), draw(st.permutations(blocks))


@settings(max_examples=200, deadline=None)
@given(relations(), st.integers(0, HORIZON))
@example(([(7, 10, 12)], [(7, 10, 12)]), 0)
@example(([(0, 0, 4)], [(0, 0, 2), (0, 3, 4)]), 2)
@example(([(0, 0, 9)], [(0, 3, 2)]), 3)
@example(([(7, 1, 3)], []), 4)
def test_the_log_is_what_changes(relation: tuple[list[Lifetime], list[Lifetime]], cut: int) -> None:
    rows, blocks = relation
    whole = (-1, HORIZON)
    assert log(rows, blocks, whole) == brute(rows, blocks, whole)
    assert log(rows, blocks, (-1, cut)) + log(rows, blocks, (cut, HORIZON)) == brute(rows, blocks, whole)


def test_blocks_that_meet_leave_no_gap() -> None:
    assert log([(1, 0, 9)], [(1, 2, 4), (1, 5, 6)], (0, 20)) == [
        (0, 1, True),
        (2, 1, False),
        (7, 1, True),
        (10, 1, False),
    ]


def test_a_row_blocked_from_the_beginning_never_shows() -> None:
    assert log([(1, 3, 9)], [(1, 3, 9)], (0, 20)) == []


def test_what_never_ends_never_leaves() -> None:
    assert log([(1, 3, FOREVER)], [(1, 5, FOREVER)], (0, 2**62)) == [(3, 1, True), (5, 1, False)]


def test_an_empty_span_has_no_changes() -> None:
    assert log([(1, 3, 9)], [], (5, 5)) == []


def test_through_the_engine_a_row_leaves_a_moment_after_its_window() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.j, _ts FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [RANGE 2 SECONDS]")
    found = made.push({"A": table([1, 2], k=[1, None], j=[10, 20]), "B": table([3], k=[1])})["q"].to_pylist()
    found += made.push({"A": table([20]), "B": table([20])})["q"].to_pylist()
    log = [(row["_op"], row["j"], (row["_ts"] - datetime(1970, 1, 1)).total_seconds()) for row in found]
    tick = 0.000001
    assert log == [
        ("+", 10, 1),
        ("+", 20, 2),
        ("-", 10, 3),
        ("+", 10, 5 + tick),
        ("-", 10, 6 + tick),
        ("-", 20, 7 + tick),
    ]


def test_what_ended_at_the_watermark_is_still_seen_ending() -> None:
    """A row that leaves at the very watermark of a step leaves in the next step, when the watermark has passed it."""
    made = engine("AB")
    made.add_query("q", "SELECT A.j, _ts FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [RANGE 5 SECONDS]")
    left = 6.000001
    made.push({"A": table([1], k=[1], j=[10]), "B": table([1], k=[2])})
    log = [row["_op"] for row in made.push({"A": table([left]), "B": table([left])})["q"].to_pylist()]
    assert log == ["+"], "it leaves a moment after its window, and that moment is not over"
    log = [row["_op"] for row in made.push({"A": table([9]), "B": table([9])})["q"].to_pylist() if row["j"] == 10]
    assert log == ["-"]
