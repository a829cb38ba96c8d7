"""Two runs matched along a join condition: candidates, equality, windows, residual predicates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from midstream.language.evaluate import evaluate, holds
from midstream.language.expression import Expression
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
from midstream.state.combinations import Combinations, Words, concatenate, heading_of_pairs, indices, pair
from midstream.state.keys import Codes, Mask, band_codes, key_codes
from midstream.state.sorted_run import SortedRun, sort_run
from midstream.state.specs import Index, RowsSpec

Rows = Mapping[str, RowsSpec]


FEW = 2_048
"""So many pairs are looked at one by one sooner than two runs are searched."""


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


def match(
    lane: Lane, rows: Rows, operator: OperatorId, on: JoinCondition, left: SortedRun, right: SortedRun
) -> Combinations:
    """The combinations of two runs that satisfy the join condition and their windows; counts on behalf of the operator.

    For a hash condition the comparisons are the pairs of equal key, for a band the pairs in the searched range, for a
    scan all.
    """
    if not left.combinations.count or not right.combinations.count:
        return _nothing(left, right)
    found = []
    for left_at, right_at in _candidates(on, left, right):
        if on.verify:
            left_at, right_at = _verified(lane, rows, on, left, left_at, right, right_at)
        pairs = pair(left.combinations, left_at, right.combinations, right_at)
        tested = 0
        for condition in on.residual:
            if pairs.count:
                tested += pairs.count
                mask = holds(condition, lane.reader(rows, pairs), len(pairs))
                pairs = pairs if mask.all() else pairs.take(mask)
        lane.count(operator, Counters(comparisons=len(left_at), predicates=tested, rows_out=pairs.count))
        if pairs.count:
            found.append(pairs)
    return concatenate(found) if found else _nothing(left, right)


def count_candidates(on: JoinCondition, left: SortedRun, right: SortedRun) -> int:
    """How many comparisons `match` makes."""
    if on.index == "scan" or not len(left) or not len(right):
        return len(left) * len(right)
    assert left.codes is not None and right.codes is not None
    if on.index == "hash":
        return count_equal_pairs(left.codes, right.codes)
    return count_band_pairs(left.codes, right.codes, on.low, on.high)


def _nothing(left: SortedRun, right: SortedRun) -> Combinations:
    return heading_of_pairs(left.combinations.heading, right.combinations.heading).nothing


def _candidates(on: JoinCondition, left: SortedRun, right: SortedRun) -> Iterable[tuple[Words, Words]]:
    if on.index == "scan":
        return all_pairs(len(left), len(right))
    assert left.codes is not None and right.codes is not None
    if on.index == "hash":
        if left.codes.size * right.codes.size <= FEW:
            return few_equal_pairs(left.codes, right.codes)
        return equal_pairs(left.codes, right.codes)
    return band_pairs(left.codes, right.codes, on.low, on.high)


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
