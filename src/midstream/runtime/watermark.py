"""Watermarks: how far each stream, and so each query, has come in event time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from midstream.model.frozen import revised
from midstream.model.manifest import PartProgress, StreamProgress
from midstream.model.schema import StreamSchema

BEGINNING = -(2**63)
"""The watermark of a stream that has not spoken."""

FIRST_TIME, LAST_TIME = 1 - 2**62, 2**62 - 1
"""The event times that rows can have, some 146,000 years around 1970: with a duration added, which is below 2^62
microseconds, each is one of 64 bits.
"""


@dataclass(frozen=True)
class StepClock:
    """Where a step stands: its number, the watermark of each stream before and after it, and the arrivals before it.

    `before` decides what is alive and what is late, `after` which instants of an aggregate have passed. `ceilings` has
    the streams of which rows may be too far ahead, with the greatest time that they may have.
    """

    step: int
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    ceilings: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What a step brought of one stream: the greatest event time and how many rows of each kind; of one that comes in
    partitions also the greatest time of each.
    """

    greatest: int | None = None
    rows: int = 0
    late: int = 0
    rejected: int = 0
    parts: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Seen) -> Seen:
        times = [t for t in (self.greatest, other.greatest) if t is not None]
        both = {**self.parts, **other.parts}
        return Seen(
            max(times, default=None),
            self.rows + other.rows,
            self.late + other.late,
            self.rejected + other.rejected,
            {name: max(one.parts[name] for one in (self, other) if name in one.parts) for name in both},
        )


_NOTHING_YET = StreamProgress()


def watermark(schema: StreamSchema, progress: StreamProgress) -> int | None:
    """Return the least event time that the stream may still bring; None if it has brought nothing.

    That of a stream of answers is known from the watermarks of the streams that its queries read.

    >>> import pyarrow as pa
    >>> watermark(StreamSchema("A", pa.schema([("ts", pa.int64())]), "ts", lateness=5), StreamProgress(greatest=100))
    95
    """
    reached = _reached(progress)
    own = [reached - schema.lateness] if reached is not None and not schema.answers_of else []
    return max([*own, *([] if progress.floor is None else [progress.floor])], default=None)


def _reached(progress: StreamProgress) -> int | None:
    return progress.greatest if progress.held is None else progress.held


def watermarks(streams: Mapping[str, StreamSchema], progress: Mapping[str, StreamProgress]) -> dict[str, int]:
    """Return the watermark of every stream; BEGINNING where it has none."""
    marks = dict.fromkeys(streams, BEGINNING)
    # Of many streams most are often silent: a step looks at each, and calls nothing.
    for name, schema in streams.items():
        if name in progress:
            one = progress[name]
            own, floor = one.greatest if one.held is None else one.held, one.floor
            if own is not None and not schema.answers_of:
                marks[name] = own - schema.lateness
            if floor is not None and floor > marks[name]:
                marks[name] = floor
    return marks


def ceilings(streams: Mapping[str, StreamSchema], progress: Mapping[str, StreamProgress]) -> dict[str, int]:
    """Return the greatest event time that a row of each stream may have in a step, given the progress.

    That is `max_ahead` beyond the newest row of all streams that are not answers, so that a stream which was silent for
    long may go on where the others are. Nothing but the manifest decides: a step that is done again gives the same.

    >>> import pyarrow as pa
    >>> A = StreamSchema("A", pa.schema([("ts", pa.int64())]), "ts", unit="us", max_ahead=5)
    >>> ceilings({"A": A}, {"A": StreamProgress(greatest=100)}), ceilings({"A": A}, {}) == {"A": LAST_TIME}
    ({'A': 105}, True)
    """
    found = dict.fromkeys(streams, LAST_TIME)
    limited = [schema for schema in streams.values() if schema.max_ahead is not None]
    if not limited:
        return found
    times = [progress[name].greatest for name, one in streams.items() if name in progress and not one.answers_of]
    clock = max([time for time in times if time is not None], default=None)
    if clock is not None:
        found |= {one.name: min(LAST_TIME, clock + one.max_ahead) for one in limited if one.max_ahead is not None}
    return found


def advance(
    streams: Mapping[str, StreamSchema],
    progress: Mapping[str, StreamProgress],
    seen: Mapping[str, Seen],
    queries: Collection[frozenset[str]],
) -> dict[str, StreamProgress]:
    """Update the progress of every stream after a step; `queries` are the sets of streams that running queries read.

    A stream is idle when event time, as the whole job sees it, has moved by more than its `idle_timeout` since it last
    brought a row. An idle stream's watermark is lifted to the least watermark of the others in its queries, so that it
    no longer holds them; rows it then brings from before are late. So is a partition of a stream, which then no longer
    holds the stream.
    """
    known = {name: progress[name] for name in streams if name in progress}
    moved = {**dict.fromkeys(streams, _NOTHING_YET), **known}
    spoke = {
        name: one
        for name, one in seen.items()
        if name in moved and (one.rows or one.late or one.rejected or one.greatest is not None)
    }
    before = {name: watermark(streams[name], one) for name, one in moved.items() if one.parts}
    times = [one.greatest for one in moved.values()] + [one.greatest for one in spoke.values()]
    clock = max([time for time in times if time is not None], default=None)
    for name, brought in spoke.items():
        moved[name] = _moved(moved[name], brought, clock)
    if clock is None:
        return moved
    for name, one in moved.items():
        if one.spoke_at is None:
            moved[name] = revised(one, spoke_at=clock)
    for name in {**before, **spoke}:
        if moved[name].parts:
            moved[name] = _with_parts_held(streams[name], moved[name], clock, before.get(name))
    watched = {name: schema for name, schema in streams.items() if schema.idle_timeout is not None}
    idle = {name for name, schema in watched.items() if _is_idle(schema, moved[name], clock)}
    for name in idle:
        moved[name] = revised(moved[name], floor=_floor(name, idle, streams, moved, queries))
    return moved


def _moved(progress: StreamProgress, seen: Seen, clock: int | None) -> StreamProgress:
    times = [t for t in (progress.greatest, seen.greatest) if t is not None]
    return StreamProgress(
        max(times, default=None),
        clock if seen.rows and clock is not None else progress.spoke_at,
        progress.floor,
        progress.rows + seen.rows,
        progress.late + seen.late,
        progress.rejected + seen.rejected,
        _moved_parts(progress.parts, seen.parts, clock) if seen.parts else progress.parts,
        progress.held,
        progress.jump,
    )


def _moved_parts(
    parts: Mapping[str, PartProgress], seen: Mapping[str, int], clock: int | None
) -> dict[str, PartProgress]:
    moved = dict(parts)
    for name, greatest in seen.items():
        reached = max(greatest, parts[name].greatest) if name in parts else greatest
        moved[name] = PartProgress(reached, greatest if clock is None else clock)
    return moved


def _with_parts_held(schema: StreamSchema, progress: StreamProgress, clock: int, before: int | None) -> StreamProgress:
    """Hold a stream back by the slowest of its partitions that are not idle."""
    limit = schema.idle_timeout
    active = [one.greatest for one in progress.parts.values() if limit is None or clock - one.spoke_at <= limit]
    # A partition that was idle, or is new, may lie behind: a watermark never goes back.
    floors = [mark for mark in (progress.floor, before) if mark is not None]
    return revised(progress, held=min(active, default=progress.greatest), floor=max(floors, default=None))


def _is_idle(schema: StreamSchema, progress: StreamProgress, clock: int) -> bool:
    return (
        schema.idle_timeout is not None
        and progress.spoke_at is not None
        and clock - progress.spoke_at > schema.idle_timeout
    )


def _floor(
    name: str,
    idle: set[str],
    streams: Mapping[str, StreamSchema],
    moved: Mapping[str, StreamProgress],
    queries: Collection[frozenset[str]],
) -> int | None:
    floors = []
    for read in queries:
        if name in read and read - idle:
            marks = [watermark(streams[other], moved[other]) for other in read - idle]
            floors.append(BEGINNING if None in marks else min(m for m in marks if m is not None))
    own = moved[name].floor
    lifted = [m for m in (own, min(floors, default=None)) if m is not None and m != BEGINNING]
    return max(lifted, default=None)
