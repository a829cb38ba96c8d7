"""The symmetric binary window join, set-wise (Zhu §2.1, HybMig §2.1).

The papers purge, probe and insert one tuple at a time. A step does it for all its rows at once: with L and R the old
states and dL, dR the step's deltas, the delta of the join is dL x R + L x dR + dL x dR, which is what the tuples would
find one by one; windows are decided per pair by lifetimes, so the order of rows inside the step does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.model.window import EVENT_TIME, Clock
from midstream.operators.join_condition import JoinCondition
from midstream.operators.match import Matched, count_candidates, keyed, match
from midstream.operators.need import Need, ProbeRange
from midstream.runtime.distribution import Distribution
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator, View
from midstream.runtime.piece_writer import Pour
from midstream.state.combinations import Combinations, Words, concatenate, empty
from midstream.state.join_state import born_in, slice_of
from midstream.state.sorted_run import FoundCodes, Key, SortedRun, sort_run
from midstream.state.specs import StateSpec

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
    first = min(one.least, other.least)
    halves = (
        (one.within(begin, end), other.within(first, end)),
        (one.within(first, begin), other.within(begin, end)),
    )
    return tuple((left, right) for left, right in halves if len(left) and len(right))


def _cut(on: JoinCondition, pair: RunPair, most: int) -> Iterator[RunPair]:
    """Return the pair in parts of at most so many to compare, in no order of time."""
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


@dataclass(frozen=True)
class WindowJoin(Operator):
    """Joins the combinations of two subplans along a join condition: by hash, band or scan."""

    left: Operator
    right: Operator
    left_state: StateSpec
    right_state: StateSpec
    on: JoinCondition
    need: Need | None = None

    rests: ClassVar[bool] = True

    @override
    @cached_property
    def id(self) -> OperatorId:
        # A join and its mirror image give the same set.
        one, other = sorted((self.left_state.id, self.right_state.id))
        return OperatorId("join", f"{one} {other} {self.signature.digest()}")

    @override
    @property
    def counted(self) -> tuple[OperatorId, ...]:
        return (self.id, *(self.id.in_slice(cut) for cut in self.cuts))

    @override
    def children(self) -> tuple[Operator, ...]:
        return (self.left, self.right)

    @override
    def distribution(self) -> Distribution:
        return self.on.distribution()

    @override
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        return ((self.left, self.left_state), (self.right, self.right_state))

    @override
    def advance(self, lane: Lane) -> Combinations:
        left, right = lane.join(self.left_state), lane.join(self.right_state)
        arrived = (self.left.delta(lane), self.right.delta(lane))
        new_left = self._keyed(lane, self.left, arrived[0], self.on.left_key)
        new_right = self._keyed(lane, self.right, arrived[1], self.on.right_key)
        if not arrived[0].count and not arrived[1].count:
            left.insert(new_left)
            right.insert(new_right)
            lane.count(self.id, Counters())
            if self.sliced:
                lane.note(self.id, [])
            return self._nothing(arrived)
        pairs = [(new_left, run) for run in right.old] if arrived[0].count else []
        pairs += [(run, new_right) for run in left.old] if arrived[1].count else []
        pairs = [*self._in_range(lane, new_left, new_right, pairs), (new_left, new_right)]
        pour = lane.pours.get(self.id)
        # To cut by time costs a fifth of what a join takes; for a single cut that is not worth it.
        if pour is not None and is_beyond(self.on, pairs, 2 * pour.most):
            self._pour(lane, pairs, pour)
            pairs = []
        matched = self._matched(lane, pairs, arrived[0].count + arrived[1].count, self.id)
        if self.sliced:
            lane.note(self.id, AgesOf(pairs, matched.found, self.clock))
        left.insert(new_left)
        right.insert(new_right)
        if not matched.pieces:
            return self._nothing(arrived)
        found = concatenate(matched.pieces)
        if matched.codes is not None:
            lane.codes[self.id] = FoundCodes(found, (self.on.left_key, self.on.right_key), matched.codes)
        return self.needed(lane, found)

    def _keyed(self, lane: Lane, below: Operator, arrived: Combinations, key: Key) -> SortedRun:
        known = lane.codes.get(below.id) if self.on.index == "hash" else None
        codes = None if known is None else known.under(key, arrived)
        return sort_run(codes, arrived) if codes is not None else keyed(lane, self.rows, arrived, self.on.index, key)

    def _pour(self, lane: Lane, pairs: Sequence[RunPair], pour: Pour) -> None:
        ages = [ages_of(one, other, self.clock) if len(one) and len(other) else (0, 0) for one, other in pairs]
        slices = [self._slice_of(lane, pair) for pair in pairs]

        def found(place: int, part: RunPair) -> Combinations:
            before = self._comparisons(lane)
            joined = match(lane, self.rows, self.id, self.on, *part)
            cut, count = slices[place], self._comparisons(lane) - before
            if cut is not None and count:
                lane.count(self.id.in_slice(cut), Counters(comparisons=count))
            return joined

        for piece in pieces(self.on, pairs, found, pour.most):
            runs = [(one.count, ages[place]) for place, one in piece]
            whole = self.needed(lane, concatenate([one for _, one in piece]))
            pour.take(whole, runs if self.sliced else ())

    def _nothing(self, arrived: tuple[Combinations, Combinations]) -> Combinations:
        return arrived[0].heading.on(self.left_state.clocks).with_right(arrived[1].heading).nothing

    def _in_range(
        self, lane: Lane, new_left: SortedRun, new_right: SortedRun, pairs: list[tuple[SortedRun, SortedRun]]
    ) -> list[tuple[SortedRun, SortedRun]]:
        """Keep the pairs that fit in a window of the plan's queries. Base rows may live longer for others."""
        if self.need is None or self.need.widest is None:
            return pairs
        left = ProbeRange(lane, self.rows, self.need, new_left)
        right = ProbeRange(lane, self.rows, self.need, new_right)
        kept: list[RunPair] = []
        for one, other in pairs:
            if one is new_left:
                kept += left.probing(other)
            else:
                kept += [(part, probing) for probing, part in right.probing(one)]
        return kept

    @cached_property
    def clock(self) -> Clock:
        """The clock of the windows that queries share its states by; event time where they are no one else's."""
        lineage = self.left_state.lineage
        return lineage.clock if lineage else EVENT_TIME

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """The ends of the slices that it joins; none where its states are not cut alike."""
        left, right = self.left_state.lineage, self.right_state.lineage
        return left.cuts if left and right and left.cuts == right.cuts else ()

    @cached_property
    def sliced(self) -> bool:
        """Whether it joins base rows on both sides, whose results' ages follow from the chunks they are in."""
        left, right = self.left_state.lineage, self.right_state.lineage
        return left is not None and right is not None and left.kind == right.kind == "range" and self.need is None

    @override
    def content(self, lane: Lane) -> Combinations:
        pairs = [(left, right) for left in lane.join(self.left_state).old for right in lane.join(self.right_state).old]
        matched = self._matched(lane, pairs)
        labels = (*self.left_state.labels, *self.right_state.labels)
        pieces = matched.pieces
        return self.needed(lane, concatenate(pieces)) if pieces else empty(labels, self.left_state.clocks)

    def needed(self, lane: Lane, found: Combinations) -> Combinations:
        """Of combinations that satisfy the join condition, what belongs in its output, however they were found."""
        return found if self.need is None or not len(found) else self.need.keep(lane, self.rows, found)

    @override
    def with_children(self, children: Sequence[Operator]) -> WindowJoin:
        left, right = children
        return self if left is self.left and right is self.right else replace(self, left=left, right=right)

    @override
    def in_view(self, view: View) -> Self:
        left, right = (c.in_view(view) if view.covers(c.labels) else c for c in self.children())
        return replace(
            self,
            signature=self.signature.within(view.name),
            left=left,
            right=right,
            left_state=view.state(self.left_state),
            right_state=view.state(self.right_state),
        )

    def _matched(
        self, lane: Lane, pairs: Sequence[RunPair], rows_in: int = 0, bounded: OperatorId | None = None
    ) -> Matched:
        """Join the pairs of runs and count them. A pair counts in the slice of the older run (Wang §5.1)."""
        matched = Matched(lane, self.rows, self.on, pairs, bounded)
        if rows_in or any(matched.compared):
            lane.count(self.id, matched.counters(rows_in))
        now = lane.bounds(self.left_state.id).get(self.clock) if self.cuts else None
        if now is not None:
            compared = [0] * len(self.cuts)
            for pair, count in zip(pairs, matched.compared, strict=True):
                if count:
                    compared[self._place_of(pair, now)] += count
            for cut, count in zip(self.cuts, compared, strict=True):
                if count:
                    lane.count(self.id.in_slice(cut), Counters(comparisons=count))
        return matched

    def _slice_of(self, lane: Lane, pair: RunPair) -> int | None:
        now = lane.bounds(self.left_state.id).get(self.clock)
        return self.cuts[self._place_of(pair, now)] if self.cuts and now is not None else None

    def _place_of(self, pair: RunPair, now: int) -> int:
        return max(slice_of(born_in(run, self.clock), self.cuts, now) if len(run) else 0 for run in pair)

    def _comparisons(self, lane: Lane) -> int:
        return lane.counted(self.id).comparisons

    @override
    def describe(self) -> str:
        return f"window_join {self.on.describe()}"

    @override
    def title(self) -> str:
        return self.on.title()


@dataclass(frozen=True)
class AgesOf:
    """How many results each pair of runs has, where it has any, and between which ages: found when it is read."""

    pairs: Sequence[RunPair]
    counts: Sequence[int]
    clock: Clock

    def __iter__(self) -> Iterator[tuple[int, tuple[int, int]]]:
        found = zip(self.pairs, self.counts, strict=True)
        return ((count, ages_of(*pair, self.clock)) for pair, count in found if count)


def ages_of(one: SortedRun, other: SortedRun, clock: Clock) -> tuple[int, int]:
    """Between which ages all results of two runs of single rows are."""
    if not len(one) or not len(other):
        return 0, 0
    (low, high), (least, greatest) = born_in(one, clock), born_in(other, clock)
    return max(low - greatest, least - high, 0), max(high - least, greatest - low)
