"""States completed beyond what arrives, by a budget (beyond the paper)."""

from __future__ import annotations

import math

import numpy as np

from midstream.migration.just_in_time.completion import Completion
from midstream.migration.just_in_time.probed_state import Fork, ProbedState

GROWTH = 4
"""A batch of keys is at most so many times the one before, for what a key costs is known only afterwards."""


def complete_ahead(completion: Completion, root: Fork, budget: int) -> None:
    """Complete states for keys that no row has probed yet, those of the newest rows first, until the budget is spent.

    The deepest states come first, for those above are made of them. A batch may overrun the budget by its last keys; a
    state without keys is completed once all its pairs are within it.
    """
    spent = _compared(completion)
    limit = spent + budget
    for probed in root.probed_states():
        if completion.is_complete(probed):
            continue
        if probed.primary is None:
            if _pairs(completion, probed) <= limit - _compared(completion):
                completion.complete_all(probed)
            continue
        newest, done, size = completion.left(probed, probed.primary).newest(), 0, 1
        while done < len(newest) and _compared(completion) < limit:
            before, batch = _compared(completion), newest[done : done + size]
            completion.complete(probed, probed.primary, np.sort(batch))
            done += len(batch)
            cost = max((_compared(completion) - before) / len(batch), 0.01)
            size = int(max(min(size * GROWTH, (limit - _compared(completion)) / cost), 1))


def _compared(completion: Completion) -> int:
    return completion.lane.counted(completion.operator).comparisons


def _pairs(completion: Completion, probed: ProbedState) -> float:
    """How many pairs the join below a state has, as far as can be said: its own states must be complete."""
    assert probed.below is not None
    sides = probed.below.left, probed.below.right
    if not all(completion.is_complete(side) for side in sides):
        return math.inf
    return math.prod(completion.lane.join(side.spec).live for side in sides)
