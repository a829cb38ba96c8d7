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

from midstream.language.duration import MICROSECONDS
from midstream.language.expression import TIME_COLUMN, Call, Column, Expression, Literal
from midstream.language.linear import DAY, linear, widens
from midstream.language.query import BandPredicate, EquiPredicate, Predicate, Source
from midstream.language.types import TIMES, family
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
    cut by DATE_TRUNC or cast to DATE, and the windows of the other sources. They need not be between the very streams:
    A to B and B to C tell of A and C, too.
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
    times = {source.alias: streams[source.stream].timestamp for source in sources}
    for condition in predicates:
        left, right, low, high = _bounds(condition)
        one, other = _near_time(left, times), _near_time(right, times)
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
        """Return a term that lies so far from this one."""
        return replace(self, least=self.least + least, most=self.most + most)


_MOST_OF_UNIT = {"year": 366 * DAY, "quarter": 92 * DAY, "month": 31 * DAY, "week": 7 * DAY, "day": DAY}
_MOST_OF_UNIT |= {name: MICROSECONDS[name] for name in ("hour", "minute", "second", "millisecond", "microsecond")}


_FARTHEST_ZONE = 16 * MICROSECONDS["hour"]
"""No zone of time is, or was, farther from UTC."""


def _near_time(term: Expression | None, times: Mapping[str, str]) -> _NearTime | None:
    """Return how far a term lies from the event time of a source's row; None for a term that has no such bounds."""
    match term:
        case Column(_, alias, name) if times.get(alias) == name and family(term.type) in TIMES:
            return _NearTime(alias)
        case Column(_, alias, name) if name == TIME_COLUMN and alias in times:
            return _NearTime(alias)
        case Call(_, "microseconds" | "moment", (inner,)):
            return _near_time(inner, times)
        case Call(kind, "cast", (inner,)) if (found := _near_time(inner, times)) is not None:
            if widens(term):
                return found
            # A DATE begins its day; a coarser TIMESTAMP may be rounded either way.
            if kind == pa.date32():
                return found.moved(1 - DAY, 0)
            return found.moved(-_SECOND, _SECOND) if family(kind) == "timestamp" else None
        case Call(_, "date_trunc", (Literal(value=unit), inner)) if unit in _MOST_OF_UNIT:
            found = _near_time(inner, times)
            return None if found is None else found.moved(1 - _MOST_OF_UNIT[unit], 0)
        case Call(_, "time_bucket", (Literal(value=width), inner, _)):
            found = _near_time(inner, times)
            return None if found is None else found.moved(1 - width // timedelta(microseconds=1), 0)
        case Call(_, "at_time_zone", (_, inner)) if (found := _near_time(inner, times)) is not None:
            return found.moved(-_FARTHEST_ZONE, _FARTHEST_ZONE)
        case Call(_, "add" | "sub" as sign, (left, right)):
            if isinstance(left, Literal) and sign == "add":
                left, right = right, left
            found, shift = _near_time(left, times), linear(right)
            if found is None or shift is None or shift.terms:
                return None
            days = family(left.type) == "date" and family(right.type) == "integer"
            size = (-1 if sign == "sub" else 1) * shift.constant * (DAY if days else 1)
            return found.moved(floor(size), ceil(size))
    return None
