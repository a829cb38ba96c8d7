"""The plans that a query could run by, weighed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from midstream.optimizer.estimate import Estimate
from midstream.optimizer.policies.base import WeighedPlan
from midstream.plan.enumerate import bushy_trees, left_deep_trees
from midstream.plan.tree import Plan

BUSHY_UP_TO = 5
"""So many streams are joined in every shape; more in left-deep ones."""

LEFT_DEEP_UP_TO = 6

ERROR = 0.02
"""The share by which the cost of a plan may be misjudged."""

NANOSECONDS = 1e9


def trees(aliases: Sequence[str]) -> Iterable[Plan]:
    """The trees that are weighed for a query over these sources."""
    if len(aliases) <= BUSHY_UP_TO:
        return bushy_trees(aliases)
    return left_deep_trees(aliases) if len(aliases) <= LEFT_DEEP_UP_TO else ()


def weighed(estimate: Estimate, plan: Plan) -> WeighedPlan:
    """A plan and what it would cost by the figures of an estimate."""
    joinings = estimate.joinings(plan)
    work = sum(one.running for one in joinings) * NANOSECONDS / estimate.statistics.speed
    memory = sum(one.output.rows for one in joinings if one.kept)
    return WeighedPlan(plan.notation(), work, work * (1 - ERROR), work * (1 + ERROR), work, memory)
