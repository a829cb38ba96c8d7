"""Which rows of each step are dead, late or admitted, and in which order they arrive: step by step, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa

from tests.oracle.spec import QuerySpec, StreamSpec

Step = Mapping[str, pa.Table]
"""What is pushed in one step."""


@dataclass(frozen=True)
class Lifetime:
    """A query that sees the rows of the steps `since` up to but not including `until` (None: to the end)."""

    name: str
    spec: QuerySpec
    since: int = 0
    until: int | None = None

    def runs(self, step: int) -> bool:
        """Whether it is there in a step."""
        return self.since <= step and (self.until is None or step < self.until)


@dataclass
class Progress:
    """How far a stream has come."""

    greatest: int | None = None
    spoke_at: int | None = None
    floor: int | None = None

    def watermark(self, lateness: int) -> int | None:
        """The watermark of the stream."""
        return greater(None if self.greatest is None else self.greatest - lateness, self.floor)


@dataclass(frozen=True)
class Arrivals:
    """All rows of a run, sorted out.

    `admitted` has for each stream its columns and `__ts`, `__step`, `__arrival` (number among all rows), `__number`
    (among those of the stream) and `__count_<stream>` for every stream (rows of it arrived so far). `late` has
    `_watermark`, the one missed. `watermarks` are those after each step, by stream.
    """

    admitted: dict[str, pa.Table]
    late: dict[str, pa.Table]
    dead: dict[str, pa.Table]
    watermarks: list[dict[str, int | None]] = field(default_factory=list)

    def query_watermark(self, streams: frozenset[str], step: int) -> int | None:
        """The watermark of a query over these streams after a step (-1: before the first)."""
        if step < 0:
            return None
        found = [self.watermarks[step][stream] for stream in streams]
        return None if None in found else min(w for w in found if w is not None)


def arrive(streams: Sequence[StreamSpec], steps: Sequence[Step], queries: Sequence[Lifetime]) -> Arrivals:
    """Sort out the rows of a run; the queries matter for the watermarks of idle streams only."""
    progress = {stream.name: Progress() for stream in streams}
    pushed = {stream.name: _pushed(stream, steps) for stream in streams}
    found = {stream.name: _Sorted() for stream in streams}
    counts = {stream.name: 0 for stream in streams}
    arrived = 0
    first_clock: int | None = None
    watermarks: list[dict[str, int | None]] = []
    for number in range(len(steps)):
        order: list[tuple[int, int, int]] = []
        greatest: dict[str, int] = {}
        for index, stream in enumerate(streams):
            given, sorted_out = pushed[stream.name], found[stream.name]
            watermark = progress[stream.name].watermark(stream.lateness)
            for place in range(given.ends[number - 1] if number else 0, given.ends[number]):
                ts = given.times[place]
                if ts is None:
                    sorted_out.dead.append(place)
                elif watermark is not None and ts < watermark:
                    sorted_out.late.append(place)
                    sorted_out.missed.append(watermark)
                else:
                    order.append((ts, index, place))
                    greatest[stream.name] = max(ts, greatest.get(stream.name, ts))
        for ts, index, place in sorted(order):
            name = streams[index].name
            arrived += 1
            counts[name] += 1
            found[name].admitted.append(place)
            found[name].tags.append((ts, number, arrived, counts[name], *counts.values()))
        first_clock = _advance(progress, greatest, first_clock)
        _lift_idle(streams, progress, first_clock, [q for q in queries if q.runs(number)])
        watermarks.append({s.name: progress[s.name].watermark(s.lateness) for s in streams})
    labels = ["__ts", "__step", "__arrival", "__number", *(f"__count_{name}" for name in counts)]
    admitted: dict[str, pa.Table] = {}
    late: dict[str, pa.Table] = {}
    dead: dict[str, pa.Table] = {}
    for name, given in pushed.items():
        sorted_out = found[name]
        admitted[name] = given.at(sorted_out.admitted, zip(labels, _columns(sorted_out.tags, len(labels)), strict=True))
        late[name] = given.at(sorted_out.late, [("_watermark", sorted_out.missed)])
        dead[name] = given.at(sorted_out.dead)
    return Arrivals(admitted, late, dead, watermarks)


@dataclass(frozen=True)
class _Pushed:
    """All rows of a stream with their times (None: dead), and where those of each step end."""

    rows: pa.Table
    times: list[int | None]
    ends: list[int]

    def at(self, places: list[int], more: Iterable[tuple[str, Sequence[int]]] = ()) -> pa.Table:
        """Some of the rows, with more columns."""
        table = self.rows.take(pa.array(places, pa.int64()))
        for label, values in more:
            table = table.append_column(label, pa.array(values, pa.int64()))
        return table


@dataclass
class _Sorted:
    """Where the rows of a stream are of each sort, and what is told of them."""

    admitted: list[int] = field(default_factory=list)
    tags: list[tuple[int, ...]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    missed: list[int] = field(default_factory=list)
    dead: list[int] = field(default_factory=list)


def _pushed(stream: StreamSpec, steps: Sequence[Step]) -> _Pushed:
    tables = [step.get(stream.name, stream.schema.empty_table()) for step in steps]
    whole = pa.concat_tables(tables) if tables else stream.schema.empty_table()
    ends = [*accumulate(table.num_rows for table in tables)]
    return _Pushed(whole, microseconds(whole[stream.timestamp]).to_pylist(), ends)


def _columns(tags: list[tuple[int, ...]], count: int) -> list[Sequence[int]]:
    return [*zip(*tags, strict=True)] if tags else [()] * count


def _advance(progress: dict[str, Progress], greatest: Mapping[str, int], first_clock: int | None) -> int | None:
    """Note the greatest times of the step's rows; returns the first event clock of the job."""
    for name, time in greatest.items():
        progress[name].greatest = greater(progress[name].greatest, time)
    clock = event_clock(progress)
    for name in greatest:
        progress[name].spoke_at = clock
    return clock if first_clock is None else first_clock


def _lift_idle(
    streams: Sequence[StreamSpec], progress: dict[str, Progress], first_clock: int | None, queries: Sequence[Lifetime]
) -> None:
    """Lift the floor of idle streams to the least watermark over those streams of their queries that are not idle."""
    clock = event_clock(progress)
    if clock is None or first_clock is None:
        return
    idle = set()
    for stream in streams:
        spoke_at = progress[stream.name].spoke_at
        silence = clock - (first_clock if spoke_at is None else spoke_at)
        if stream.idle_timeout is not None and silence > stream.idle_timeout:
            idle.add(stream.name)
    lateness = {stream.name: stream.lateness for stream in streams}
    lifts: dict[str, int] = {}
    for name in idle:
        awake = {other for q in queries if name in q.spec.streams for other in q.spec.streams} - idle
        found = [progress[other].watermark(lateness[other]) for other in awake]
        if found and None not in found:
            lifts[name] = min(w for w in found if w is not None)
    for name, floor in lifts.items():
        progress[name].floor = greater(progress[name].floor, floor)


def event_clock(progress: Mapping[str, Progress]) -> int | None:
    """The greatest time over all streams."""
    return max((p.greatest for p in progress.values() if p.greatest is not None), default=None)


def greater(one: int | None, other: int | None) -> int | None:
    """The greater of two times, where None is before all time."""
    if one is None or other is None:
        return one if other is None else other
    return max(one, other)


def microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """An event-time column as int64 microseconds UTC."""
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("s"))
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    return column.cast(pa.timestamp("us", zone)).cast(pa.int64())
