"""Which rows of each step are dead, late or admitted, and in which order they arrive: step by step, in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    parts: dict[str, dict[str, list[pa.Table]]] = {s.name: {"admitted": [], "late": [], "dead": []} for s in streams}
    counts = {stream.name: 0 for stream in streams}
    arrived = 0
    first_clock: int | None = None
    watermarks: list[dict[str, int | None]] = []
    for number, step in enumerate(steps):
        admitted: dict[str, pa.Table] = {}
        order: list[tuple[int, int, int]] = []
        for index, stream in enumerate(streams):
            pushed = step.get(stream.name, stream.schema.empty_table())
            times = microseconds(pushed[stream.timestamp])
            usable = pc.is_valid(times)
            rows, dead = pushed.filter(usable), pushed.filter(pc.invert(usable))
            ts = np.asarray(times.filter(usable).to_numpy(), dtype=np.int64)
            watermark = progress[stream.name].watermark(stream.lateness)
            timely = np.ones(len(ts), dtype=bool) if watermark is None else ts >= watermark
            late = rows.filter(pa.array(~timely))
            missed = pa.array([watermark] * late.num_rows, pa.int64())
            parts[stream.name]["late"].append(late.append_column("_watermark", missed))
            parts[stream.name]["dead"].append(dead)
            admitted[stream.name] = rows.filter(pa.array(timely)).append_column("__ts", pa.array(ts[timely]))
            order += [(int(t), index, position) for position, t in enumerate(ts[timely])]
        tags: dict[str, list[tuple[int, ...]]] = {stream.name: [] for stream in streams}
        positions: dict[str, list[int]] = {stream.name: [] for stream in streams}
        for _, index, position in sorted(order):
            name = streams[index].name
            arrived += 1
            counts[name] += 1
            tags[name].append((number, arrived, counts[name], *counts.values()))
            positions[name].append(position)
        labels = ["__step", "__arrival", "__number", *(f"__count_{name}" for name in counts)]
        for stream in streams:
            table = admitted[stream.name].take(pa.array(positions[stream.name], pa.int64()))
            for place, label in enumerate(labels):
                table = table.append_column(label, pa.array([tag[place] for tag in tags[stream.name]], pa.int64()))
            parts[stream.name]["admitted"].append(table)
        first_clock = _advance(streams, progress, admitted, first_clock)
        _lift_idle(streams, progress, first_clock, [q for q in queries if q.runs(number)])
        watermarks.append({s.name: progress[s.name].watermark(s.lateness) for s in streams})
    whole = {
        kind: {name: pa.concat_tables(part[kind]) if part[kind] else None for name, part in parts.items()}
        for kind in ("admitted", "late", "dead")
    }
    return Arrivals(whole["admitted"], whole["late"], whole["dead"], watermarks)


def _advance(
    streams: Sequence[StreamSpec], progress: dict[str, Progress], admitted: Step, first_clock: int | None
) -> int | None:
    """Note the step's rows; returns the first event clock of the job."""
    for stream in streams:
        if admitted[stream.name].num_rows:
            greatest = pc.max(admitted[stream.name]["__ts"]).as_py()
            progress[stream.name].greatest = greater(progress[stream.name].greatest, greatest)
    clock = event_clock(progress)
    for stream in streams:
        if admitted[stream.name].num_rows:
            progress[stream.name].spoke_at = clock
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
