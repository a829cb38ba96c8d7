"""The plans that a query could run by, weighed: what a policy is shown of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from typing_extensions import override

from midstream.optimizer.bounded import Bounded, Origin
from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.cost.units import PLAN_OBJECTIVES
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.policies.base import SwitchCost, WeighedPlan
from midstream.optimizer.prediction import Prediction
from midstream.optimizer.search.best import Ranked, best_plans, ranked
from midstream.optimizer.statistics import Sources
from midstream.plan.tree import Plan

COUNTED = 8
"""So many of the best plans a policy chooses from."""


GUESS = 1.25
"""A figure that is but a guess is taken to be wrong by this factor: as much as any, were it wide enough."""


@dataclass(frozen=True)
class Doubted(Estimate):
    """An estimate at its worst for a change: some joins have few rows, as few as may be, and others many."""

    few: frozenset[Sources] = frozenset()
    many: frozenset[Sources] = frozenset()

    @override
    def rows(self, sources: Sources) -> Bounded:
        found = super().rows(sources)
        if found.origin is Origin.GUESSED:
            found = Bounded(found.value, found.value / GUESS, found.value * GUESS, found.origin)
        least = found.low if sources in self.few else found.high if sources in self.many else found.value
        return Bounded.exactly(least)


@dataclass(frozen=True)
class Alternatives:
    """The running plan of a query and others, weighed by an estimate and a cost model.

    States that are `kept` by other queries are free. `allowed` plans are the only ones weighed, if there are any;
    otherwise the best ones are searched for, and `also` are weighed beside them.
    """

    current: Plan
    estimate: Estimate
    model: CostModel
    kept: frozenset[Sources] = frozenset()
    allowed: tuple[Plan, ...] = ()
    also: tuple[Plan, ...] = ()

    @cached_property
    def found(self) -> tuple[WeighedPlan, ...]:
        """All of them, the cheapest first."""
        if self.allowed:
            plans: Iterable[Plan] = dict.fromkeys((self.current, *self.allowed))
        else:
            statistics = self.estimate.statistics
            best = best_plans(
                tuple(statistics.sources), statistics.conditions, self.estimate, self.model,
                count=COUNTED, current=self.current, kept=self.kept,
            )  # fmt: skip
            if not self.also:
                return tuple(map(_weighed, best))
            plans = dict.fromkeys((*(one.plan for one in best), *self.also))
        return tuple(map(_weighed, ranked(plans, self.estimate, self.model, current=self.current, kept=self.kept)))

    @property
    def running(self) -> WeighedPlan:
        """The running plan."""
        own = self.current.notation()
        return next(one for one in self.found if one.plan == own)

    @property
    def others(self) -> tuple[WeighedPlan, ...]:
        """The others, the cheapest first."""
        own = self.current.notation()
        return tuple(one for one in self.found if one.plan != own)

    def sure_gain(self, plan: Plan) -> float:
        """What a plan saves even if it joins as much, and the running one as little, as the figures leave open.

        What both join they are mistaken of alike; so it is not the bounds of both costs that are compared.
        """
        own, other = self._joined(self.current), self._joined(plan)
        doubted = Doubted(self.estimate.statistics, own - other, other - own)
        now, then = (self.model.of(one, doubted, self.kept).value for one in (self.current, plan))
        return now - then

    def _joined(self, plan: Plan) -> frozenset[Sources]:
        return frozenset(join.sources for join in self.model.joins(plan, self.estimate, self.kept))

    def comparisons(self, plan: Plan) -> float:
        """The comparisons that a plan makes in a second."""
        return sum(joining.running for joining in self.estimate.joinings(plan))

    def real(self, comparisons: float) -> float:
        """The cost of the running plan where it has really made so many comparisons a second."""
        more = (comparisons - self.comparisons(self.current)) * self.model.units.comparison
        return max(self.running.cost + self.model.weights.work * more, 0.0)

    def price(self, strategy: str, prediction: Prediction) -> SwitchCost:
        """What a predicted migration costs, as plans are weighed: in each of its steps it takes an operator more."""
        units, step = self.model.units, self.estimate.statistics.step
        steps = 1 + prediction.duration / step if step else 1.0
        work = units.operator_step * steps + prediction.work * units.comparison + prediction.memory * units.insert
        return SwitchCost(
            strategy, self.model.weights.work * work, prediction.silence, prediction.memory, prediction.duration
        )


def cost_model(objective: str, weights: Mapping[str, float]) -> CostModel:
    """What plans cost by an objective; weights that are given take the place of its own."""
    given = {name: float(weight) for name, weight in weights.items()}
    of_objective = PLAN_OBJECTIVES[objective]
    return CostModel(weights=replace(of_objective, **given) if given else of_objective)


def _weighed(one: Ranked) -> WeighedPlan:
    cost = one.cost
    return WeighedPlan(one.plan.notation(), cost.value, cost.low, cost.high, cost.work, cost.memory)
