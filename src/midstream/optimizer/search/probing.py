"""The cheapest probing orders of a multi-way join (HybMig §2.3, Wang §11.1), an order for each input."""

from __future__ import annotations

import numpy as np

from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.search.subsets import Masks, Numbers, Subsets
from midstream.plan.tree import MultiJoin

NONE = -1
"""In place of the source that is probed next, as long as none was found."""

LARGEST = float(np.finfo(np.float64).max)


def cheapest_orders(subsets: Subsets, cost: CostModel) -> MultiJoin:
    """Find for each source the cheapest order to probe the others in, without needless cross products.

    What a hop costs depends on the sets before and after it, and on the input only by a factor: the share of its rows
    that is new. So one pass over the sets, from the whole down, finds the orders of all inputs at once.
    """
    masks, each = np.arange(subsets.full + 1), 1 << np.arange(subsets.count)
    left: Numbers = np.full(subsets.full + 1, np.inf)
    following: Masks = np.full(subsets.full + 1, NONE, np.int64)
    left[subsets.full] = 0.0
    for size in range(subsets.count - 1, 0, -1):
        here = masks[(subsets.members == size) & subsets.joinable]
        possible = (here[:, None] & each == 0) & subsets.joinable[here[:, None] | each]
        row, probed = np.nonzero(possible)
        values: Numbers = np.full(possible.shape, np.inf)
        hops = _hops(subsets, cost, here[row], each[probed])
        values[row, probed] = hops + left[here[row] | each[probed]]
        # Where a cost is beyond all numbers any order is as good, but there must be one.
        best = np.where(possible, np.fmin(values, LARGEST), np.inf).argmin(axis=1)
        some = np.flatnonzero(possible.any(axis=1))
        left[here[some]] = values[some, best[some]]
        following[here[some]] = best[some]
    return MultiJoin(tuple((alias, _order(subsets, following, i)) for i, alias in enumerate(subsets.aliases)))


def _hops(subsets: Subsets, cost: CostModel, here: Masks, probed: Masks) -> Numbers:
    # Costs are for each living combination of the input's sources so far, as if all of them were new.
    there = here | probed
    examined = subsets.examined(here, probed)
    value: Numbers = cost.weights.work * cost.units.joining(subsets.rows[here], examined, subsets.rows[there])
    return value


def _order(subsets: Subsets, following: Masks, start: int) -> tuple[str, ...]:
    order: list[str] = []
    here = 1 << start
    while here != subsets.full:
        probed = int(following[here])
        if probed == NONE:  # Groups of sources that nothing ties to each other: by the next group, as it is written.
            probed = next(i for i in range(subsets.count) if not here >> i & 1)
        order.append(subsets.aliases[probed])
        here |= 1 << probed
    return tuple(order)
