"""Watermarks: lateness, streams that have not spoken, idle streams."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midstream.model.manifest import StreamProgress
from midstream.model.schema import StreamSchema
from midstream.runtime.watermark import BEGINNING, Seen, advance, watermark, watermarks
from tests.unit.building import COLUMNS

Times = dict[str, int | None]


def stream(name: str, lateness: int = 0, idle: int | None = None) -> StreamSchema:
    return StreamSchema(name, COLUMNS, "ts", lateness, idle)


class Clock:
    """Streams that steps are done on."""

    def __init__(self, *streams: StreamSchema, queries: tuple[str, ...] = ("AB",)) -> None:
        self.streams = {s.name: s for s in streams}
        self.queries = [frozenset(q) for q in queries]
        self.progress: dict[str, StreamProgress] = {}

    def step(self, **greatest: int | None) -> Times:
        """A step that brings a row of this time in each stream (None: only a late row); the watermarks after it."""
        seen = {n: Seen(None, 0, 1) if t is None else Seen(t, 1) for n, t in greatest.items()}
        self.progress = advance(self.streams, self.progress, seen, self.queries)
        return {name: watermark(s, self.progress[name]) for name, s in self.streams.items()}


def test_the_watermark_is_the_greatest_time_less_the_lateness() -> None:
    clock = Clock(stream("A", 5), stream("B"))
    assert clock.step(A=100) == {"A": 95, "B": None}
    assert clock.step(A=90, B=7) == {"A": 95, "B": 7}
    assert clock.step(A=101) == {"A": 96, "B": 7}


def test_a_stream_that_has_not_spoken_has_none() -> None:
    assert watermark(stream("A"), StreamProgress()) is None
    assert watermarks({"A": stream("A"), "B": stream("B")}, {"A": StreamProgress(3)}) == {"A": 3, "B": BEGINNING}


def test_without_a_timeout_a_silent_stream_holds_on() -> None:
    clock = Clock(stream("A"), stream("B"))
    clock.step(A=1, B=1)
    assert clock.step(A=10**9)["B"] == 1


def test_an_idle_stream_is_lifted_to_the_others_watermark() -> None:
    clock = Clock(stream("A", 3), stream("B", 0, idle=10))
    clock.step(A=100, B=100)
    assert clock.step(A=110)["B"] == 100, "silent for 10, not longer"
    assert clock.step(A=111)["B"] == 108
    assert clock.step(A=120)["B"] == 117
    assert clock.step(B=117)["B"] == 117, "it speaks again"
    assert clock.step(A=125)["B"] == 117, "and counts as awake"
    assert clock.step(A=131)["B"] == 128


def test_the_timeout_runs_from_the_events_clock_not_from_the_streams_own_time() -> None:
    clock = Clock(stream("A"), stream("B", 0, idle=10))
    clock.step(A=100, B=50)  # B is 50 behind, but it spoke when the clock stood at 100
    assert clock.step(A=110)["B"] == 50
    assert clock.step(A=111)["B"] == 111


def test_a_stream_that_never_spoke_is_idle_from_the_first_event_on() -> None:
    clock = Clock(stream("A"), stream("B", 0, idle=10))
    assert clock.step()["B"] is None
    assert clock.step(A=100)["B"] is None
    assert clock.step(A=110)["B"] is None
    assert clock.step(A=111)["B"] == 111


def test_late_rows_do_not_wake_a_stream() -> None:
    clock = Clock(stream("A"), stream("B", 0, idle=10))
    clock.step(A=100, B=100)
    assert clock.step(A=111, B=None)["B"] == 111
    assert clock.progress["B"].late == 1


def test_a_stream_of_several_queries_is_lifted_to_the_least_of_them() -> None:
    clock = Clock(stream("A"), stream("B", 0, idle=10), stream("C"), queries=("AB", "BC"))
    clock.step(A=100, B=100, C=100)
    assert clock.step(A=130, C=105)["B"] == 105
    assert clock.step(C=140)["B"] == 130


def test_an_idle_stream_waits_for_one_that_has_not_spoken() -> None:
    clock = Clock(stream("A"), stream("B", 0, idle=10), stream("C"), queries=("ABC",))
    clock.step(A=100, B=100)
    assert clock.step(A=200)["B"] == 100
    assert clock.step(C=150)["B"] == 150


def test_idle_streams_do_not_wait_for_each_other() -> None:
    clock = Clock(stream("A"), stream("B", 0, idle=10), stream("C", 0, idle=10), queries=("ABC",))
    clock.step(A=100, B=100, C=90)
    assert clock.step(A=200) == {"A": 200, "B": 200, "C": 200}


def test_a_stream_that_no_query_reads_is_not_lifted() -> None:
    clock = Clock(stream("A"), stream("B", 0, idle=10), queries=("A",))
    clock.step(A=100, B=100)
    assert clock.step(A=200)["B"] == 100


def test_all_streams_of_a_query_idle_beside_a_busier_one() -> None:
    clock = Clock(stream("A", 0, idle=5), stream("B", 0, idle=5), stream("C"), queries=("AB", "C"))
    clock.step(A=100, B=90, C=100)
    assert clock.step(C=500) == {"A": 100, "B": 90, "C": 500}


def test_a_watermark_never_falls() -> None:
    clock = Clock(stream("A"), stream("B", 0, idle=10), stream("C"), queries=("AB",))
    clock.step(A=100, B=100)
    clock.step(A=200)
    clock.queries = [frozenset("BC")]
    assert clock.step(C=150)["B"] == 200


def test_a_partition_holds_back_until_it_is_idle_and_a_watermark_never_falls() -> None:
    streams, progress = {"A": stream("A", 5, idle=50)}, dict[str, StreamProgress]()

    def reached(**parts: int) -> int | None:
        nonlocal progress
        progress = advance(streams, progress, {"A": Seen(max(parts.values()), len(parts), parts=parts)}, [])
        return watermark(streams["A"], progress["A"])

    assert reached(p=100, q=40) == 35
    assert reached(p=140) == 35
    assert reached(p=160) == 155, "q last spoke at 100"
    assert reached(p=161, q=50) == 155, "it is behind, and back"
    assert reached(p=170, q=168) == 163
    assert Seen(9, 1, parts={"p": 9}) + Seen(7, 1, parts={"p": 7, "q": 3}) == Seen(9, 2, parts={"p": 9, "q": 3})


def test_rows_are_counted_by_kind() -> None:
    seen = Seen(7, 3, 2, 1) + Seen(5, 10, 20, 30)
    assert seen == Seen(7, 13, 22, 31)
    assert Seen() + Seen(5) == Seen(5)
    progress = advance({"A": stream("A")}, {}, {"A": seen}, [])["A"]
    assert replace(progress, spoke_at=None) == StreamProgress(7, None, None, 13, 22, 31)


@pytest.mark.parametrize("greatest", [-(2**62), 0, 2**62])
def test_far_times(greatest: int) -> None:
    assert Clock(stream("A", 5)).step(A=greatest)["A"] == greatest - 5
