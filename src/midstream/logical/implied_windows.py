"""Windows that a join's conditions imply: an interval join, as Spark and Flink write it, needs no window clause.

`A.ts BETWEEN B.ts - INTERVAL 1 HOUR AND B.ts` says how old a row of A may be when one of B comes. A result's time is
that of its newest row; so a row that is older than all bounds between its time and the others' allow is in no result.
A window of that size changes no answer, and lets the state be purged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from math import ceil, floor, inf

import pyarrow as pa

from midstream.expr.duration import MICROSECONDS
from midstream.expr.expression import TIME_COLUMN, Call, Column, Expression, Literal
from midstream.expr.linear import DAY, linear, widens
from midstream.expr.types import TIMES, family
from midstream.logical.query import BandPredicate, EquiPredicate, Lookups, Predicate, Query, Source
from midstream.model.schema import StreamSchema
from midstream.model.window import Window

_SECOND = MICROSECONDS["second"]

Gaps = dict[tuple[str, str], float]
"""By two aliases the most microseconds that a row of the second may be newer than one of the first."""


def with_implied_windows(
    sources: tuple[Source, ...], predicates: tuple[Predicate, ...], streams: Mapping[str, StreamSchema]
) -> tuple[Source, ...]:
    """The sources, those without a window with the one that the conditions imply, if these imply any.

    Conditions count that compare the timestamp columns of two streams, TIMESTAMPs or DATEs, also with a constant added,
    cut by DATE_TRUNC or cast to DATE, and the windows of the other sources. They do not have to be between the very
    streams: A to B and B to C tell of A and C, too.
    """
    if len(sources) < 2:
        return sources
    aliases = [source.alias for source in sources]
    gaps = closed(gaps_of(sources, predicates, streams), aliases, aliases)
    found = []
    for source in sources:
        age = max(gaps[source.alias, other] for other in aliases)
        implied = source.window is None and age < inf
        found.append(replace(source, window=Window("range", max(ceil(age), 0))) if implied else source)
    return tuple(found)


def closed(gaps: Gaps, through: Iterable[str], aliases: Sequence[str]) -> Gaps:
    """The gaps with what follows from two of them for a third, `through` sources whose rows are surely there.

    >>> found = closed({("A", "B"): 2, ("B", "C"): 3, ("A", "C"): inf, ("A", "A"): 0, ("C", "C"): 0}, "B", "AC")
    >>> found["A", "C"]
    5
    """
    found = defaultdict(lambda: inf, gaps)
    for middle, first, second in product(through, aliases, aliases):
        found[first, second] = min(found[first, second], found[first, middle] + found[middle, second])
    return found


def gaps_of(sources: Sequence[Source], predicates: Sequence[Predicate], streams: Mapping[str, StreamSchema]) -> Gaps:
    """What each condition and each window says by itself of rows that meet."""
    gaps: Gaps = {}
    for first, second in product(sources, sources):
        by_time = first.window is not None and first.window.kind == "range"
        size = first.window.size if first.window is not None and by_time else inf
        gaps[first.alias, second.alias] = 0.0 if first is second else size
    known = {at: near for source in sources for at, near in _near_columns(source, streams[source.stream]).items()}
    for condition in predicates:
        left, right, low, high = _bounds(condition)
        one, other = _near_time(left, known), _near_time(right, known)
        if one is None or other is None:
            continue
        if high is not None:  # left - right <= high
            gap = ceil(high) - one.least + other.most
            gaps[other.alias, one.alias] = min(gaps[other.alias, one.alias], gap)
        if low is not None:
            gap = -floor(low) + one.most - other.least
            gaps[one.alias, other.alias] = min(gaps[one.alias, other.alias], gap)
    return gaps


def _bounds(condition: Predicate) -> tuple[Expression | None, Expression | None, float | None, float | None]:
    match condition:
        case BandPredicate(_, left, right, low, high):
            return left, right, low, high
        case EquiPredicate(_, left, right):
            return left, right, 0, 0
    return None, None, None, None


@dataclass(frozen=True)
class _NearTime:
    """A term that lies from `least` to `most` microseconds after the event time of a source's row."""

    alias: str
    least: int = 0
    most: int = 0

    def moved(self, least: int, most: int) -> _NearTime:
        return replace(self, least=self.least + least, most=self.most + most)


_MOST_OF_UNIT = {"year": 366 * DAY, "quarter": 92 * DAY, "month": 31 * DAY, "week": 7 * DAY, "day": DAY}
_MOST_OF_UNIT |= {name: MICROSECONDS[name] for name in ("hour", "minute", "second", "millisecond", "microsecond")}


_FARTHEST_ZONE = 16 * MICROSECONDS["hour"]
"""No zone of time is, or was, farther from UTC."""


_Known = Mapping[tuple[str, str], _NearTime]

_NEAR = "near time"
"""Begins the note of a field of answers: after it come the least and the most microseconds by which the field's values
lie after the event time of their rows.
"""


def _near_columns(source: Source, stream: StreamSchema) -> dict[tuple[str, str], _NearTime]:
    """Return the columns of a source's rows that lie near their event times, this among them."""
    found = {(source.alias, TIME_COLUMN): _NearTime(source.alias)}
    if family(stream.columns.field(stream.timestamp).type) in TIMES:
        found[source.alias, stream.timestamp] = _NearTime(source.alias)
    for field in stream.columns:
        if bounds := (field.metadata or {}).get(b"midstream", b"").decode().partition(_NEAR)[2]:
            least, most = bounds.split()
            found[source.alias, field.name] = _NearTime(source.alias, int(least), int(most))
    return found


def near_times(query: Query, streams: Mapping[str, StreamSchema]) -> dict[int, str]:
    """Note, by place, the fields of a query's answers that lie near the event times of the answers."""
    if query.timed is not None:
        return {}
    known = {("", TIME_COLUMN): _NearTime("")}
    if query.by_row:
        known |= _near_columns(query.sources[0], streams[query.sources[0].stream])
    for lookup in query.on_top.lookups if isinstance(query.on_top, Lookups) else ():
        match lookup.items:
            case Call(_, "hop_ends" | "cumulate_ends", (moment, _, Literal(value=size), _)):
                if (near := _near_time(moment, known)) is not None:
                    known[lookup.alias, lookup.titles[0]] = near.moved(1, size // timedelta(microseconds=1))
    found = ((place, _near_time(output.expression, known)) for place, output in enumerate(query.outputs))
    return {place: f"{_NEAR} {near.least} {near.most}" for place, near in found if near is not None}


def _near_time(term: Expression | None, known: _Known) -> _NearTime | None:
    """Return how far a term lies from the event time of a source's row; None for a term that has no such bounds."""
    match term:
        case Column(_, alias, name):
            return known.get((alias, name))
        case Call(_, "microseconds" | "moment", (inner,)):
            return _near_time(inner, known)
        case Call(kind, "cast", (inner,)) if (found := _near_time(inner, known)) is not None:
            if widens(term):
                return found
            # A DATE begins its day; a coarser TIMESTAMP may be rounded either way.
            if kind == pa.date32():
                return found.moved(1 - DAY, 0)
            return found.moved(-_SECOND, _SECOND) if family(kind) == "timestamp" else None
        case Call(_, "date_trunc", (Literal(value=unit), inner)) if unit in _MOST_OF_UNIT:
            found = _near_time(inner, known)
            return None if found is None else found.moved(1 - _MOST_OF_UNIT[unit], 0)
        case Call(_, "time_bucket", (Literal(value=width), inner, _)):
            found = _near_time(inner, known)
            return None if found is None else found.moved(1 - width // timedelta(microseconds=1), 0)
        case Call(_, "at_time_zone", (_, inner)) if (found := _near_time(inner, known)) is not None:
            return found.moved(-_FARTHEST_ZONE, _FARTHEST_ZONE)
        case Call(_, "add" | "sub" as sign, (left, right)):
            if isinstance(left, Literal) and sign == "add":
                left, right = right, left
            found, shift = _near_time(left, known), linear(right)
            if found is None or shift is None or shift.terms:
                return None
            days = family(left.type) == "date" and family(right.type) == "integer"
            size = (-1 if sign == "sub" else 1) * shift.constant * (DAY if days else 1)
            return found.moved(floor(size), ceil(size))
    return None
