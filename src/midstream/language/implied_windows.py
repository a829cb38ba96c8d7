"""Windows that a join's conditions imply: an interval join, as Spark and Flink write it, needs no window clause.

`A.ts BETWEEN B.ts - INTERVAL 1 HOUR AND B.ts` says how old a row of A may be when one of B comes. A result's time is
that of its newest row; so a row that is older than all bounds between its time and the others' allow is in no result.
A window of that size changes no answer, and lets the state be purged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, floor, inf

from midstream.language.expression import Call, Column, Expression
from midstream.language.linear import widens
from midstream.language.query import BandPredicate, EquiPredicate, Predicate, Source
from midstream.language.types import family
from midstream.model.schema import StreamSchema
from midstream.model.window import Window

Gaps = dict[tuple[str, str], float]
"""By two aliases the most microseconds that a row of the second may be newer than one of the first."""


def with_implied_windows(
    sources: tuple[Source, ...], predicates: tuple[Predicate, ...], streams: Mapping[str, StreamSchema]
) -> tuple[Source, ...]:
    """The sources, those without a window with the one that the conditions imply, if these imply any.

    Conditions count that compare the timestamp columns of two streams, TIMESTAMPs or DATEs, and the windows of the
    other sources; they need not be between the very streams: A to B and B to C tell of A and C, too.
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
        one, other = _time_of(left, times), _time_of(right, times)
        if one is None or other is None:
            continue
        if high is not None:  # left - right <= high
            gaps[other, one] = min(gaps[other, one], ceil(high))
        if low is not None:
            gaps[one, other] = min(gaps[one, other], -floor(low))
    return gaps


def _bounds(condition: Predicate) -> tuple[Expression | None, Expression | None, float | None, float | None]:
    match condition:
        case BandPredicate(_, left, right, low, high):
            return left, right, low, high
        case EquiPredicate(_, left, right):
            return left, right, 0, 0
    return None, None, None, None


def _time_of(term: Expression | None, times: Mapping[str, str]) -> str | None:
    """The alias whose event time a term is; None where it is anything else: a cast may have cut something off.

    A cast that only adds a zone, or a date's hours, keeps the time.
    """
    while isinstance(term, Call) and (term.function == "microseconds" or (term.function == "cast" and widens(term))):
        term = term.arguments[0]
    if not isinstance(term, Column) or times.get(term.alias) != term.name:
        return None
    return term.alias if family(term.type) in ("timestamp", "date") else None
