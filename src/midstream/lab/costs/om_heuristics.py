"""OM's four steps to a plan (OM §4.2), by OM's cost functions.

What the engine always does goes without a search there: a source filter has all selections of a stream in one mask at
the bottom, states keep no column that nobody reads, and aggregates come last. Here the steps are as the paper has them,
for plans whose operators have a cost each; join orders are then compared with the bushy ones that `best` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import prod

from midstream.optimizer.cost.om import (
    OmCost,
    OmOperator,
    OmWeights,
    Queueing,
    aggregate_rate,
    left_deep_cost,
    pipeline_cost,
)
from midstream.optimizer.search.greedy import left_deep
from midstream.plan.tree import Plan

Match = Callable[[Sequence[str], str], float]
"""The share of pairs that match between the join of some streams and one more."""


@dataclass(frozen=True)
class OmStream:
    """A stream of a query, with the selections over it and the projection to what the query reads of it."""

    rate: float
    selections: tuple[OmOperator, ...] = ()
    projection: OmOperator | None = None


@dataclass(frozen=True)
class OmPlan:
    """For each stream its operators from the bottom up, the join order above them, and what it all costs."""

    pipelines: Mapping[str, tuple[OmOperator, ...]]
    joins: Plan
    cost: OmCost


def om_plan(
    streams: Mapping[str, OmStream],
    match: Match,
    w: float,
    join_tpr: float,
    weights: OmWeights,
    aggregate: OmOperator | None = None,
) -> OmPlan:
    """Group selections, push them and projections down in the cheaper order, join left-deep, aggregate last.

    >>> streams = {"A": OmStream(300), "B": OmStream(300), "C": OmStream(100, (OmOperator("c", 0.1, 4000),))}
    >>> om_plan(streams, lambda left, right: 0.001, 1.0, 3000, OmWeights()).joins.notation()
    '((A C) B)'
    """
    pipelines = {name: _pipeline(stream, w, weights) for name, stream in streams.items()}
    rates = {name: stream.rate * prod(one.sel for one in pipelines[name]) for name, stream in streams.items()}
    below = [pipeline_cost(pipelines[name], streams[name].rate, w) for name in streams]

    def cost(plan: Plan) -> OmCost:
        order = plan.aliases()
        matches = [match(order[:i], order[i]) for i in range(1, len(order))]
        joined = left_deep_cost([rates[name] for name in order], matches, w, join_tpr)
        top = joined.c_r if aggregate is None else aggregate_rate(1 / aggregate.tpr, joined.c_r, w)
        kept = 0.0 if aggregate is None else pipeline_cost((aggregate,), joined.c_r, w).c_m
        return OmCost(top, joined.c_m + kept + sum(one.c_m for one in below))

    joins = left_deep_order(tuple(streams), lambda plan: cost(plan).weighted(weights))
    return OmPlan(pipelines, joins, cost(joins))


def left_deep_order(aliases: Sequence[str], value: Callable[[Plan], float]) -> Plan:
    """Find the left-deep tree that no exchange of two sources makes cheaper, from the given order on.

    The paper only says "a local search": here the best exchange is taken until none is better.

    >>> costs = {"((A B) C)": 3.0, "((C B) A)": 2.0, "((A C) B)": 1.0, "((C A) B)": 1.0}
    >>> left_deep_order("BAC", lambda plan: costs.get(plan.notation(), 5.0)).notation()
    '((C A) B)'
    """
    here = list(aliases)
    while True:
        around = [_exchanged(here, i, j) for i, j in combinations(range(len(here)), 2)]
        best = min(around, key=lambda order: (value(left_deep(order)), order), default=here)
        if not value(left_deep(best)) < value(left_deep(here)):
            return left_deep(here)
        here = best


def _exchanged(order: list[str], i: int, j: int) -> list[str]:
    found = list(order)
    found[i], found[j] = found[j], found[i]
    return found


def grouped(selections: Sequence[OmOperator]) -> tuple[OmOperator, ...]:
    """Merge a stream's selections into one, which looks at a row once, at the slowest one's rate (step 1).

    >>> grouped([OmOperator("a > 5", 0.5, 400), OmOperator("a < 10", 0.2, 500)])
    (OmOperator(name='a > 5 AND a < 10', sel=0.1, tpr=400, width=1.0),)
    """
    if not selections:
        return ()
    name = " AND ".join(one.name for one in selections)
    return (OmOperator(name, prod(one.sel for one in selections), min(one.tpr for one in selections)),)


def _pipeline(stream: OmStream, w: float, weights: OmWeights) -> tuple[OmOperator, ...]:
    # The cheaper of both orders at the bottom, selection first where they cost the same (step 2).
    operators = (*grouped(stream.selections), *((stream.projection,) if stream.projection else ()))
    return min(
        permutations(operators),
        key=lambda order: pipeline_cost(order, stream.rate, w, Queueing.SECTION_4_1).weighted(weights),
    )
