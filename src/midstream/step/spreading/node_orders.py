"""Each node's own probing orders, chosen by what its partial results compared (Wang §12.2). Pure.

A row visits the same source first at all nodes, or results would be lost. What a node finds there goes on by the node's
order. Differs from the dissertation in saying how a node chooses: it counts by source, as the plan does, what its
partial results of some steps compared and matched on their way round the ring, and takes the order with the fewest
pairs by these counts. Only orders whose hops have conditions that were counted are weighed, so that no order is tried
for its own sake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf
from typing import NamedTuple

from midstream.model.manifest import Manifest
from midstream.model.node_spread import NodeSpread, RouteWork
from midstream.operators.join_condition import JoinCondition, join_condition
from midstream.ring.ring_members import all_spread, spread_queries
from midstream.units.program import unit_of
from midstream.units.query_unit import QueryUnit, join_of

Order = tuple[str, ...]

LEAST_COUNTED = 1_000
"""A node looks at its order once its partial results have compared so many pairs since: what few did is chance."""

COUNTED_STEPS = 4
"""One step of so many counts by node, because counting takes up to a fifteenth of a step's time."""

BETTER = 1.25
"""A node leaves an order that compares so many times as much as another one: what differs less may be chance."""

SAVED = 4
"""The other order must also save so many pairs for each partial result, because nodes with an order of their own take
their partial results apart from other nodes: to take up one costs as much as some pairs. A key finds fewer pairs."""


class Visited(NamedTuple):
    """The average numbers of pairs that one partial result compares and matches at a source."""

    compared: float
    matched: float

    @property
    def rank(self) -> float:
        """The lower, the earlier: a source that leaves few partial results for few pairs comes first."""
        return (self.matched - 1) / self.compared if self.compared else -inf


Condition = Callable[[Sequence[str], str], JoinCondition]
"""The join condition between the sources visited and one more."""


def counts_by_node(step: int) -> bool:
    """Return whether a step counts the work of each node's partial results.

    >>> [step for step in range(10) if counts_by_node(step)]
    [0, 4, 8]
    """
    return step % COUNTED_STEPS == 0


def order_nodes(manifest: Manifest) -> Manifest:
    """Change the probing orders of nodes in a step about to run where others compare less by what was counted.

    Decided from counters alone, so that a step that is done again decides the same. Nothing but base rows is kept: no
    row moves, and no answer changes.
    """
    for name, spread in spread_queries(manifest).items():
        if spread.before is None and any(map(_is_enough, chain.from_iterable(spread.found.values()))):
            unit = unit_of(manifest, name)
            assert isinstance(unit, QueryUnit)
            manifest = all_spread(manifest, name, _looked_at(unit, spread))
    return manifest


def _is_enough(work: RouteWork) -> bool:
    return sum(work.comparisons[1:]) >= LEAST_COUNTED


def _looked_at(unit: QueryUnit, spread: NodeSpread) -> NodeSpread:
    orders, found = dict[str, tuple[Order, ...]](), dict[str, tuple[RouteWork, ...]]()

    def on(seen: Sequence[str], label: str) -> JoinCondition:
        return join_condition(unit.binding.query, frozenset(seen), frozenset({label}))

    for route in join_of(unit).routes:
        label, planned = route.source.spec.label, route.order
        works = spread.found.get(label, ())
        present = spread.orders.get(label, (planned,) * len(works))
        enough = [_is_enough(work) for work in works]
        each = zip(present, works, enough, strict=True)
        chosen = tuple(best_order(on, label, order, work) if known else order for order, work, known in each)
        if set(chosen) - {planned}:
            orders[label] = chosen
        found[label] = tuple(
            RouteWork(work.order, 0, zeros := (0,) * len(work.order), zeros, zeros[1:]) if known else work
            for work, known in zip(works, enough, strict=True)
        )
    return replace(spread, orders=orders, found=found)


def best_order(on: Condition, start: str, order: Order, work: RouteWork) -> Order:
    """Choose the order of a node from what its partial results did by the present one.

    After the first source the one of least rank follows, among those whose condition was counted. The present order
    stays unless it compares `BETTER` times as much and `SAVED` pairs more.
    """
    visits = dict(zip(work.order[1:], work.partials, strict=True))
    if not all(visits.values()):
        return order
    each = zip(work.order, work.comparisons, work.matches, strict=True)
    cost = {one: Visited(compared / visits[one], matched / visits[one]) for one, compared, matched in each
            if one in visits}  # fmt: skip
    # Conditions aside, no order compares less than that by rank. It is found at once, and conditions take long.
    least = compared_along(cost, (*order[:1], *sorted(order[1:], key=lambda one: cost[one].rank)))
    if compared_along(cost, order) <= BETTER * least + SAVED:
        return order
    counted = {one: on((start, *order[:at]), one) for at, one in enumerate(order) if at}
    found = order[:1]
    while left := [one for one in order if one not in found]:
        able = [one for one in left if on((start, *found), one) == counted[one]]
        if not able:
            return order
        found = (*found, min(able, key=lambda one: cost[one].rank))
    return found if compared_along(cost, order) > BETTER * compared_along(cost, found) + SAVED else order


def compared_along(cost: Mapping[str, Visited], order: Order) -> float:
    """Estimate the pairs that one partial result compares along an order after its first source.

    >>> cost = {"C": Visited(10, 5), "D": Visited(10, 0.5)}
    >>> compared_along(cost, ("B", "C", "D")), compared_along(cost, ("B", "D", "C"))
    (60.0, 15.0)
    """
    partials, found = 1.0, 0.0
    for one in order[1:]:
        found += partials * cost[one].compared
        partials *= cost[one].matched
    return found
