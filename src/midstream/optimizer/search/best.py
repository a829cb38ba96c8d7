"""The best plans of a query, of every form, in order of cost.

Of a multi-way join these are the cheapest probing orders, one for each input (HybMig §2.3, Wang §11.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from midstream.optimizer.cost.plan_cost import CostModel, PlanCost
from midstream.optimizer.cost.sizes import Sizes
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.search.bushy import MOST_SOURCES, cheapest_trees
from midstream.optimizer.search.greedy import Searched, connected_tree, searched_tree
from midstream.optimizer.search.subsets import Masks, Numbers, Subsets
from midstream.optimizer.statistics import Condition, Sources
from midstream.plan.decompose import same_shape
from midstream.plan.tree import Eddy, Join, Leaf, MultiJoin, Plan


@dataclass(frozen=True)
class Ranked:
    """A plan and what it costs."""

    plan: Plan
    cost: PlanCost


def best_plans(
    sources: Sequence[str],
    conditions: Iterable[Condition],
    estimate: Estimate | Sizes,
    cost: CostModel,
    *,
    count: int = 5,
    current: Plan | None = None,
    kept: frozenset[Sources] = frozenset(),
) -> tuple[Ranked, ...]:
    """Find the `count` best plans, sorted by value: trees of any shape, probing orders, an eddy.

    Up to `MOST_SOURCES` sources the trees and orders are the cheapest there are, without needless cross products;
    beyond that a tree is searched for, from the current one on. `current` is in the ranking however dear it is, as the
    last one if need be, and as it is written, which may name the sides of a join the other way round. States that are
    `kept` by other queries are free. Equal figures give an equal ranking; of plans of equal value the current one comes
    first.

    >>> from midstream.optimizer.statistics import SourceStatistics, Statistics
    >>> sources = {name: SourceStatistics(rate=10, rows=100, window=10) for name in "ABC"}
    >>> joined = {frozenset("AB"): 5000.0, frozenset("BC"): 10.0}
    >>> live = Statistics(sources, (Condition("hash", frozenset("ABC")),), states=joined)
    >>> best_plans("ABC", live.conditions, Estimate(live), CostModel(), count=2)[0].plan.notation()
    '(A (B C))'
    """
    sizes = Sizes.of(estimate)
    candidates = (
        [Leaf(sources[0])]
        if len(sources) == 1
        else _candidates(Subsets(tuple(sources), tuple(conditions), sizes), cost, count, current, kept)
    )
    if current is not None:
        candidates = [current, *(plan for plan in candidates if not same_shape(plan, current))]
    return ranked(candidates, sizes, cost, count=count, current=current, kept=kept)


def ranked(
    plans: Iterable[Plan],
    estimate: Estimate | Sizes,
    cost: CostModel,
    *,
    count: int | None = None,
    current: Plan | None = None,
    kept: frozenset[Sources] = frozenset(),
) -> tuple[Ranked, ...]:
    """Sort given plans (`allow`) by value: the first `count` of them and the current one."""
    weighing = cost.weighing(estimate, kept)
    found = [(weighing.of(plan), plan) for plan in plans]
    found.sort(key=lambda pair: (pair[0].value, pair[1] != current, pair[1].notation()))
    chosen = found[:count]
    if current is not None and all(plan != current for _, plan in chosen):
        chosen = [*chosen[: count and count - 1], *(pair for pair in found if pair[1] == current)]
    return tuple(Ranked(plan, price) for price, plan in chosen)


def _candidates(
    subsets: Subsets,
    cost: CostModel,
    count: int,
    current: Plan | None,
    kept: frozenset[Sources],
) -> Sequence[Plan]:
    if subsets.count <= MOST_SOURCES:
        return cheapest_plans(subsets, cost, count, kept)
    start = current if isinstance(current, Join) else connected_tree(subsets)
    return [searched_tree(Searched(start), subsets, cost.weighing(subsets.sizes, kept)).tree]


def cheapest_plans(subsets: Subsets, cost: CostModel, count: int, kept: frozenset[Sources]) -> Sequence[Plan]:
    """Find the `count` cheapest trees, then probing orders and an eddy where these may cost less than the last tree."""
    found = cheapest_trees(subsets, cost, count, kept)
    trees = [plan for _, plan in found]
    # Orders and eddies make a hop for every two sources. Where that costs more, no size is looked up for them.
    hops = subsets.count * (subsets.count - 1) * cost.units.operator_step * subsets.sizes.steps
    if len(trees) == count and cost.weights.value(hops, 0.0) > found[-1][0]:
        return trees
    return [*trees, cheapest_orders(subsets, cost), Eddy(subsets.aliases)]


NONE = -1  # in place of the source that is probed next, as long as none was found
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
