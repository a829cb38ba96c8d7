"""The pairs of runs that a join probes, cut by the time of what they give.

A result's time is that of its newest row. Cut by it, a join gives its output in order of time without holding all of
it, and compares exactly the pairs that it would compare at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from midstream.model.window import EVENT_TIME
from midstream.operators.join_condition import JoinCondition
from midstream.operators.match import count_candidates
from midstream.state.combinations import Combinations, Words
from midstream.state.sorted_run import SortedRun

RunPair = tuple[SortedRun, SortedRun]

Block = tuple[int, Combinations]
"""Some of what a pair of runs joins to, and the place of the pair."""


TimeRange = tuple[tuple[RunPair, ...], ...]
"""For each pair of runs those pairs of rows in them whose results are of a range of times, as pairs of runs."""


def is_beyond(on: JoinCondition, pairs: Sequence[RunPair], most: int) -> bool:
    """Whether a join of these runs compares more than so many pairs of rows."""
    if sum(len(one) * len(other) for one, other in pairs) <= most:
        return False
    # Dead rows count here: to leave them out would take longer than to join what is alive.
    return sum(count_candidates(on, one.to_probe(len(other)), other.to_probe(len(one))) for one, other in pairs) > most


def pieces(
    on: JoinCondition, pairs: Sequence[RunPair], match: Callable[[int, RunPair], Combinations], most: int
) -> Iterator[list[Block]]:
    """What pairs of runs join to, each block with its pair's place: pieces of at most so many results, in order of
    time.

    `match` joins a part of the pair at a place.
    """
    held: list[Block] = []
    for within in time_ranges(on, pairs, most):
        joined = [(place, match(place, one)) for place, part in enumerate(within) for one in part]
        here = [(place, found) for place, found in joined if found.count]
        if held and _size(held) + _size(here) > most:
            yield held
            held = []
        held += here
    if held:
        yield held


def _size(blocks: Sequence[Block]) -> int:
    return sum(found.count for _, found in blocks)


def time_ranges(on: JoinCondition, pairs: Sequence[RunPair], most: int) -> Iterator[TimeRange]:
    """The pairs by ranges of time, in order, of each at most so many to compare; one time may come as several."""
    timed = [(_Timed.of(one), _Timed.of(other)) for one, other in pairs if len(one) and len(other)]
    places = [place for place, (one, other) in enumerate(pairs) if len(one) and len(other)]
    if not timed:
        return
    least = min(side.least for pair in timed for side in pair)
    greatest = max(side.greatest for pair in timed for side in pair)
    for found in _within(on, timed, least, greatest + 1, most):
        parts: list[tuple[RunPair, ...]] = [()] * len(pairs)
        for place, part in zip(places, found, strict=True):
            parts[place] = part
        yield tuple(parts)


@dataclass(frozen=True)
class _Timed:
    """A run, and the least and the greatest time in it."""

    run: SortedRun
    least: int
    greatest: int

    @staticmethod
    def of(run: SortedRun) -> _Timed:
        times = run.combinations.valid_from[EVENT_TIME]
        return _Timed(run, int(times.min()), int(times.max()))

    @property
    def times(self) -> Words:
        return self.run.combinations.valid_from[EVENT_TIME]

    def within(self, begin: int, end: int) -> SortedRun:
        """The rows of times from `begin` on and before `end`."""
        if begin <= self.least and self.greatest < end:
            return self.run
        if end <= self.least or self.greatest < begin:
            return self.run.take(slice(0, 0))
        return self.run.take((self.times >= begin) & (self.times < end))


def _within(
    on: JoinCondition, pairs: Sequence[tuple[_Timed, _Timed]], begin: int, end: int, most: int
) -> Iterator[TimeRange]:
    parts = tuple(_halves(one, other, begin, end) for one, other in pairs)
    count = sum(count_candidates(on, *half) for part in parts for half in part)
    if not count:
        return
    if count <= most:
        yield parts
        return
    if end - begin == 1:
        for place, part in enumerate(parts):
            for one in (small for half in part for small in _cut(on, half, most)):
                yield tuple((one,) if place == own else () for own in range(len(parts)))
        return
    cuts = _cuts(pairs, begin, end, -(-count // most))
    for low, high in zip((begin, *cuts), (*cuts, end), strict=True):
        yield from _within(on, pairs, low, high, most)


def _halves(one: _Timed, other: _Timed, begin: int, end: int) -> tuple[RunPair, ...]:
    """Where the newest row is of the one run, or else of the other."""
    first = min(one.least, other.least)
    halves = (
        (one.within(begin, end), other.within(first, end)),
        (one.within(first, begin), other.within(begin, end)),
    )
    return tuple((left, right) for left, right in halves if len(left) and len(right))


def _cut(on: JoinCondition, pair: RunPair, most: int) -> Iterator[RunPair]:
    """The pair in parts of at most so many to compare, in no order of time."""
    if count_candidates(on, *pair) <= most:
        yield pair
        return
    one, other = pair
    half = max(len(one), len(other)) // 2
    for part in (slice(0, half), slice(half, None)):
        yield from _cut(on, (one.take(part), other) if len(one) >= len(other) else (one, other.take(part)), most)


def _cuts(pairs: Sequence[tuple[_Timed, _Timed]], begin: int, end: int, ranges: int) -> tuple[int, ...]:
    """Times that cut a range into about so many, each with as many rows; at least one, within the range."""
    runs = {id(side.run): side for pair in pairs for side in pair}.values()
    times = np.concatenate([side.times[(side.times >= begin) & (side.times < end)] for side in runs])
    times.sort()
    every = max(len(times) // ranges, 1)
    cuts = np.unique(times[every::every])
    inside = cuts[cuts > begin]
    # Where nearly all are of the first time, it is cut off.
    return tuple(inside.tolist()) or (min(max(int(times[0]) + 1, begin + 1), end - 1),)
