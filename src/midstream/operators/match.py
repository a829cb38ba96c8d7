"""Two runs matched along a join condition: candidates, equality, windows, residual predicates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from midstream.expr.evaluate import evaluate, holds
from midstream.expr.expression import Expression
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.operators.candidates import (
    all_pairs,
    band_pairs,
    count_band_pairs,
    count_equal_pairs,
    equal_pairs,
    few_equal_pairs,
)
from midstream.operators.join_condition import JoinCondition
from midstream.runtime.lane import Lane
from midstream.state.combinations import (
    Candidates,
    Combinations,
    Words,
    concatenate,
    indices,
    pair,
    pair_few,
)
from midstream.state.keys import Codes, Mask, band_codes, key_codes
from midstream.state.sorted_run import CodesTaken, SortedRun, sort_run
from midstream.state.specs import Index, RowsSpec

Rows = Mapping[str, RowsSpec]


FEW = 2_048
"""So many pairs are looked at one by one sooner than two runs are searched."""

HANDFUL, MOST_WAITING = 2_048, 32_768
"""So many candidates of two runs wait for those of the next: most of what is done to them is then done once for all.
Once more than so many wait, as of the runs of two whole states, they are decided about before there are more.
"""


def keyed(lane: Lane, rows: Rows, combinations: Combinations, index: Index, key: Sequence[Expression]) -> SortedRun:
    """The combinations sorted by their code for an index; NULL keys are left out, for NULL joins nothing."""
    if index == "scan":
        return SortedRun(None, combinations)
    if not combinations.count:
        return SortedRun(np.zeros(0, np.int64), combinations)
    read = lane.reader(rows, combinations)
    values = [evaluate(e, read, combinations.count) for e in key]
    codes: Codes
    valid: Mask | None
    codes, valid = key_codes(values) if index == "hash" else band_codes(values[0])
    if valid is None:
        return sort_run(codes, combinations)
    at = indices(valid)
    return sort_run(codes[at], combinations.take(at), left_out=len(valid) - len(at))


Pairs = Sequence[tuple[SortedRun, SortedRun]]


class Matched:
    """What pairs of runs join to: `pieces` in order of the pairs, and by pair how many were `found` and `compared`.

    For a hash condition the comparisons are the pairs of equal key, for a band the pairs in the searched range, for a
    scan all. `tested` counts tests of residual predicates. `codes` are those of the left sides, by piece; None where
    there are none, or too many to keep. An operator that is `bounded` may break the step off before it has made many.
    """

    def __init__(
        self, lane: Lane, rows: Rows, on: JoinCondition, pairs: Pairs, bounded: OperatorId | None = None
    ) -> None:
        self._lane, self._rows, self._on, self._pairs, self._bounded = lane, rows, on, [*pairs], bounded
        self.pieces: list[Combinations] = []
        self._bytes = 0
        self.found, self.compared, self.tested = [0] * len(pairs), [0] * len(pairs), 0
        self.codes: list[CodesTaken] | None = [] if on.index == "hash" else None
        self._match()

    def _match(self) -> None:
        on, few, places, waiting = self._on, list[Candidates](), list[int](), 0
        for place, (left, right) in enumerate(self._pairs):
            if not left.combinations.count or not right.combinations.count:
                continue
            own, other = left, right
            if type(own) is not SortedRun or type(other) is not SortedRun:
                left, right = self._pairs[place] = own.to_probe(len(other)), other.to_probe(len(own))
            for left_at, right_at in _candidates(on, left, right):
                if left is not own:
                    left_at, right_at = _living(own, left_at, left_at, right_at)
                if right is not other:
                    left_at, right_at = _living(other, right_at, left_at, right_at)
                if on.verify:
                    left_at, right_at = _verified(self._lane, self._rows, on, left, left_at, right, right_at)
                count = len(left_at)
                self.compared[place] += count
                if count > HANDFUL or waiting > MOST_WAITING:
                    self._pair_few(few, places)
                    few, places, waiting = [], [], 0
                if count > HANDFUL:
                    if self._bounded is not None:
                        self._lane.check_bound(self._bounded, sum(self.found) + count)
                    self._take(pair(left.combinations, left_at, right.combinations, right_at), None, [place], [count])
                    self.codes = None
                elif count:
                    few.append(Candidates(left.combinations, left_at, right.combinations, right_at))
                    places.append(place)
                    waiting += count
        self._pair_few(few, places)

    def _pair_few(self, few: Sequence[Candidates], places: Sequence[int]) -> None:
        if not few:
            return
        kept = self._take(*pair_few(few), places, [len(one.left_at) for one in few])
        if self.codes is not None:
            lefts = [(self._pairs[place][0], one.left_at) for place, one in zip(places, few, strict=True)]
            self.codes.append(CodesTaken(lefts, kept))

    def _take(
        self, pairs: Combinations, kept: Words | None, places: Sequence[int], counts: Sequence[int]
    ) -> Words | None:
        """Take in what residual predicates leave; `kept` are the indices of the pairs among all `counts` candidates."""
        for condition in self._on.residual:
            if pairs.count:
                self.tested += pairs.count
                mask = holds(condition, self._lane.reader(self._rows, pairs), pairs.count)
                if np.count_nonzero(mask) < pairs.count:
                    at = indices(mask)
                    pairs, kept = pairs.at(at), at if kept is None else kept.take(at)
        if len(counts) == 1:
            self.found[places[0]] += pairs.count
        else:
            for place, count in zip(places, counts if kept is None else _of_each(kept, counts), strict=True):
                self.found[place] += count
        if pairs.count:
            self.pieces.append(pairs)
            # What is found is put together at last, and then there as often again.
            self._bytes += pairs.words.nbytes
            self._lane.claim(self._bytes, "joining the rows of this step")
        return kept

    def counters(self, rows_in: int = 0) -> Counters:
        """What was done by an operator that took in so many rows."""
        return Counters(rows_in, sum(self.compared), self.tested, sum(self.found))


def _of_each(kept: Words, counts: Sequence[int]) -> list[int]:
    """Count how many of the ascending indices `kept` are in each of several parts of these lengths."""
    before = kept.searchsorted(list(accumulate(counts))).tolist()
    return [end - begin for begin, end in zip([0, *before], before, strict=False)]


def match(
    lane: Lane, rows: Rows, operator: OperatorId, on: JoinCondition, left: SortedRun, right: SortedRun
) -> Combinations:
    """The combinations of two runs that satisfy the join condition and their windows, counted for the operator."""
    if not left.combinations.count or not right.combinations.count:
        return _nothing(left, right)
    matched = Matched(lane, rows, on, [(left, right)])
    if matched.compared[0]:
        lane.count(operator, matched.counters())
    return concatenate(matched.pieces) if matched.pieces else _nothing(left, right)


def count_candidates(on: JoinCondition, left: SortedRun, right: SortedRun) -> int:
    """How many comparisons `match` makes."""
    if on.index == "scan" or not len(left) or not len(right):
        return len(left) * len(right)
    assert left.codes is not None and right.codes is not None
    if on.index == "hash":
        return count_equal_pairs(left.codes, right.codes)
    return count_band_pairs(left.codes, right.codes, on.low, on.high)


def _nothing(left: SortedRun, right: SortedRun) -> Combinations:
    return left.combinations.heading.with_right(right.combinations.heading).nothing


def _candidates(on: JoinCondition, left: SortedRun, right: SortedRun) -> Iterable[tuple[Words, Words]]:
    if on.index == "scan":
        return all_pairs(len(left), len(right))
    assert left.codes is not None and right.codes is not None
    if on.index == "hash":
        if left.codes.size * right.codes.size <= FEW:
            return few_equal_pairs(left.codes, right.codes)
        return equal_pairs(left.codes, right.codes)
    return band_pairs(left.codes, right.codes, on.low, on.high)


def _living(run: SortedRun, places: Words, left_at: Words, right_at: Words) -> tuple[Words, Words]:
    mask = run.living(places)
    if mask is None:
        return left_at, right_at
    at = indices(mask)
    return left_at.take(at), right_at.take(at)


def _verified(
    lane: Lane, rows: Rows, on: JoinCondition, left: SortedRun, left_at: Words, right: SortedRun, right_at: Words
) -> tuple[Words, Words]:
    refs = {label: words[left_at] for label, words in left.combinations.refs.items()}
    refs.update({label: words[right_at] for label, words in right.combinations.refs.items()})
    read = lane.reader(rows, Combinations(refs, {}, {}))
    mask: npt.NDArray[np.bool_] = np.ones(len(left_at), np.bool_)
    for condition in on.verify:
        mask &= holds(condition, read, len(left_at))
    at = indices(mask)
    return left_at[at], right_at[at]
