"""A join that makes only some of its results: bitmaps rule pairs out before they are compared.

Each combination has a bitmap of the conditions it contradicts (HybMig §3.3); a pair contradicts what either side does,
and one that contradicts all is not made. Combinations of one bitmap are matched together, so that the pairs ruled out
are never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from midstream.model.counters import Counters
from midstream.operators.match import keyed, match
from midstream.operators.window_join import WindowJoin
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations, Words, concatenate, empty
from midstream.state.sorted_run import SortedRun

Bits = Callable[[Combinations], Words]
"""The bitmap of each combination."""


def restricted(
    lane: Lane,
    operator: WindowJoin,
    deltas: tuple[Combinations, Combinations],
    bits: tuple[Bits, Bits],
    full: int,
) -> Combinations:
    """Compute a join's delta without pairs whose bitmaps together are `full`; probes with these deltas, inserts
    nothing."""
    on = operator.on
    left = _told_apart([keyed(lane, operator.rows, deltas[0], on.index, on.left_key)], bits[0])
    right = _told_apart([keyed(lane, operator.rows, deltas[1], on.index, on.right_key)], bits[1])
    old_left = _told_apart(lane.join(operator.left_state).old, bits[0]) if len(deltas[1]) else []
    old_right = _told_apart(lane.join(operator.right_state).old, bits[1]) if len(deltas[0]) else []
    found = []
    for ones, others in ((left, old_right), (old_left, right), (left, right)):
        for one, mine in ones:
            for other, theirs in others:
                if mine | theirs != full and len(one) and len(other):
                    found.append(match(lane, operator.rows, operator.id, on, one, other))
    lane.count(operator.id, Counters(rows_in=len(deltas[0]) + len(deltas[1])))
    some = [f for f in found if len(f)]
    labels = (*operator.left_state.labels, *operator.right_state.labels)
    return operator.needed(lane, concatenate(some)) if some else empty(labels, operator.left_state.clocks)


def _told_apart(runs: Sequence[SortedRun], bits: Bits) -> list[tuple[SortedRun, int]]:
    # A run with a single bitmap stays as it is.
    found = []
    for run in runs:
        words = bits(run.combinations)
        for value in np.unique(words) if len(words) else (0,):
            mine = words == value
            found.append((run if mine.all() else run.take(mine), int(value)))
    return found
