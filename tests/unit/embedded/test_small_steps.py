"""What a small step costs, in counts that no machine changes: it must not grow again unnoticed."""

from __future__ import annotations

import cProfile
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from types import FrameType
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import midstream as ms
from midstream.runtime import checks
from tests.unit.building import table

if TYPE_CHECKING:
    from sys import TraceFunction


@pytest.fixture(autouse=True)
def without_checks() -> Iterator[None]:
    """Count what production does: contracts are checked in tests alone."""
    with checks.turned_on(False):
        yield


PUSHES = 9
"""Of so many the one in the middle counts: states are compacted, and plans reviewed, now and then."""


def engine(streams: int, checkpoint: Path | None = None) -> ms.Engine:
    """An engine with a join of so many streams, whose windows hold 20 pushes."""
    made, names = ms.Engine(checkpoint=checkpoint), [f"S{number}" for number in range(streams)]
    for name in names:
        made.create_stream(name, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts")
    tied = " AND ".join(f"S0.k = {name}.k" for name in names[1:])
    made.add_query("join", f"SELECT S0.k FROM {', '.join(names)} WHERE {tied} WINDOW 20 SECONDS")
    for number in range(24):
        made.push(rows(streams, number))
    return made


def rows(streams: int, number: int, count: int = 10) -> dict[str, pa.Table]:
    """The push of this number: so many rows of each stream, each of which joins with one of every other."""
    keys = [10 * number + row for row in range(count)]
    given = table([number] * count, k=keys, v=[0.5] * count)
    return {f"S{stream}": given.select(["k", "ts", "v"]) for stream in range(streams)}


def calls(made: ms.Engine, streams: int, count: int = 10) -> float:
    """How many Python calls a push makes."""
    found = []
    for given in [rows(streams, number, count) for number in range(24, 24 + PUSHES)]:
        profile = cProfile.Profile()
        profile.enable()
        made.push(given)
        profile.disable()
        found.append(sum(entry.callcount for entry in profile.getstats()))
    return median(found)


def test_a_push_of_30_rows_makes_few_calls() -> None:
    assert calls(engine(3), 3) < 2_010


def test_a_push_that_brings_nothing_makes_next_to_none() -> None:
    assert calls(engine(3), 3, count=0) < 220


def test_the_calls_of_a_push_grow_with_the_joins_and_not_with_their_square() -> None:
    assert calls(engine(12), 12, count=1) < 2 * calls(engine(6), 6, count=1)


def lines(queries: int) -> int:
    """How many lines of Python a push runs through where so many queries share nothing; each round of a loop is one."""
    made, found = ms.Engine(sharing="off"), [0]
    for stream in ("S0", "S1"):
        made.create_stream(stream, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts")
    for number in range(queries):
        made.add_query(f"q{number}", f"SELECT S0.k FROM S0, S1 WHERE S0.k = S1.k WINDOW {number + 5} SECONDS")
    for number in range(3):
        made.push(rows(2, number, 1))

    def counting(_: FrameType, what: str, __: object) -> TraceFunction:
        found[0] += what == "line"
        return counting

    given, before = rows(2, 3, 1), sys.gettrace()
    sys.settrace(counting)
    try:
        made.push(given)
    finally:
        sys.settrace(before)
    return found[0]


def test_a_step_grows_with_the_queries_and_not_with_their_square() -> None:
    """Four times the queries were 4.9 times the work once: not in calls, but in what comprehensions go through."""
    assert lines(200) < 4.2 * lines(50)


def test_a_push_waits_for_the_disk_a_handful_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file and its folder each for results, chunks and manifest, the folders of the staging and of the sink; now and
    then for events.
    """
    with engine(2, tmp_path / "checkpoint") as made:
        waited, fsync = list[int](), os.fsync
        monkeypatch.setattr(os, "fsync", lambda handle: waited.append(handle) or fsync(handle))
        for number in range(24, 24 + PUSHES):
            waited.clear()
            assert made.push(rows(2, number))["join"].num_rows
            assert len(waited) <= (10 if number % 8 == 0 else 8)


def test_a_push_to_disk_makes_few_calls_more(tmp_path: Path) -> None:
    with engine(3, tmp_path / "checkpoint") as made:
        assert calls(made, 3) < 3_830


def test_columns_of_a_stream_that_has_never_spoken_are_of_its_types() -> None:
    made = ms.Engine(sharing="off")
    made.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    made.create_stream("B", "k BIGINT, day DATE, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", "SELECT A.k, B.day FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS")
    for number in range(3):
        found = made.push({"A": table([number], k=[1])})["q"]
        assert (found.num_rows, found.schema.field("day").type) == (0, pa.date32())
