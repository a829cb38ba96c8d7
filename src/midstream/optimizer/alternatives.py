"""The plans that a query could run by, weighed: what a policy is shown of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from typing_extensions import override

from midstream.optimizer.bounded import Bounded, Origin
from midstream.optimizer.cost.calibration import slowed, units_from_json
from midstream.optimizer.cost.plan_cost import CostModel, PlansWeighed
from midstream.optimizer.cost.sizes import Sizes
from midstream.optimizer.cost.units import PLAN_OBJECTIVES
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.policies.policy_contract import SwitchCost, WeighedPlan
from midstream.optimizer.prediction import Prediction
from midstream.optimizer.search.best import Ranked, best_plans, cheapest_plans, ranked
from midstream.optimizer.search.bushy import FEW_SOURCES, MOST_SOURCES
from midstream.optimizer.search.greedy import Searched, connected_tree, searched_tree
from midstream.optimizer.search.subsets import Subsets
from midstream.optimizer.statistics import Sources
from midstream.plan.decompose import same_shape, subplans
from midstream.plan.tree import Join, Plan

COUNTED = 8  # so many of the best plans a policy chooses from
GUESS = 1.25  # a figure that is but a guess is taken to be wrong by this factor: as much as any, were it wide enough


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

    States that other queries keep are free: `others_keep` has by their sources the subplans that make them there.
    `allowed` plans are the only ones weighed, if there are any; otherwise the best ones are searched for, and `also`
    are weighed next to them. With a `limit` a search goes on from what had `begun`: over many sources for at most so
    many trees; over few ones it ends at once, and what it found is weighed when it goes on.
    """

    current: Plan
    estimate: Estimate
    model: CostModel
    others_keep: Mapping[Sources, Plan] = field(default_factory=dict)
    allowed: tuple[Plan, ...] = ()
    also: tuple[Plan, ...] = ()
    begun: Searched | None = None
    limit: int | None = None

    @cached_property
    def searched(self) -> Searched | None:
        """The search, continued for `limit` trees; None where all is done at once."""
        sources = tuple(self.estimate.statistics.sources)
        if self.allowed or (len(sources) <= MOST_SOURCES and self.limit is None):
            return None
        subsets = Subsets(sources, self.estimate.statistics.conditions, self.sizes)
        if len(sources) <= FEW_SOURCES:
            if self.begun is not None:
                return replace(self.begun, done=True)
            first, *others = cheapest_plans(subsets, self.model, COUNTED, self.kept)
            return Searched(first, others=tuple(others))
        start = self.current if isinstance(self.current, Join) else connected_tree(subsets)
        return searched_tree(self.begun or Searched(start), subsets, self.weighing, self.limit)

    @cached_property
    def weighing(self) -> PlansWeighed:
        """The cost of one plan after the other, with each join weighed once."""
        return self.model.weighing(self.sizes, self.kept)

    @cached_property
    def found(self) -> tuple[WeighedPlan, ...]:
        """All plans, the cheapest first."""
        if self.allowed:
            plans = _different((self.current, *self.allowed))
        elif self.searched is not None:
            searched = (self.searched.tree, *self.searched.others)
            plans = _different((self.current, *self.also, *map(self._as_kept, searched)))
        else:
            statistics = self.estimate.statistics
            best = best_plans(
                tuple(statistics.sources), statistics.conditions, self.sizes, self.model,
                count=COUNTED, current=self.current, kept=self.kept,
            )  # fmt: skip
            if not self.also and not self.kept:
                return tuple(map(_weighed, best))
            plans = _different((self.current, *self.also, *[self._as_kept(one.plan) for one in best]))
        return tuple(map(_weighed, ranked(plans, self.sizes, self.model, current=self.current, kept=self.kept)))

    @cached_property
    def kept(self) -> frozenset[Sources]:
        """The sources of the states that are free: no given plan makes them in another way."""
        if not self.others_keep:
            return frozenset()
        given = [subplans(plan) for plan in (self.current, *self.allowed, *self.also)]
        made = {sources: [parts[sources] for parts in given if sources in parts] for sources in self.others_keep}
        return frozenset(s for s, parts in made.items() if all(same_shape(p, self.others_keep[s]) for p in parts))

    def _as_kept(self, plan: Plan) -> Plan:
        # A state that other queries keep would be made twice if it were made in another way here.
        match plan:
            case _ if not self.kept:
                return plan
            case _ if plan != self.current and (found := frozenset(plan.aliases())) in self.kept and len(found) > 1:
                return self.others_keep[found]
            case Join(left, right):
                return Join(self._as_kept(left), self._as_kept(right))
        return plan

    @cached_property
    def sizes(self) -> Sizes:
        """The sizes by which all plans are weighed."""
        return Sizes(self.estimate)

    @cached_property
    def running(self) -> WeighedPlan:
        """The running plan."""
        own = self.current.notation()
        return next(one for one in self.found if one.plan == own)

    @cached_property
    def others(self) -> tuple[WeighedPlan, ...]:
        """The other plans, the cheapest first."""
        own = self.current.notation()
        return tuple(one for one in self.found if one.plan != own)

    def sure_gain(self, plan: Plan) -> float:
        """Compute what a plan saves in the worst case of the figures: it joins most, the running one least.

        What both join they are mistaken of alike; so it is not the bounds of both costs that are compared.
        """
        made, others = (dict.fromkeys(self.weighing.made(one)) for one in (self.current, plan))
        own, other = (frozenset(join.left | join.right for join in joins) for joins in (made, others))
        doubted = self.model.weighing(Doubted(self.estimate.statistics, own - other, other - own), self.kept)
        # What both make takes as much in both.
        now, then = ([one for one in joins if one not in rest] for joins, rest in ((made, others), (others, made)))
        return doubted.of_joins(now) - doubted.of_joins(then)

    def comparisons(self, plan: Plan) -> float:
        """Sum the comparisons that a plan makes in a second."""
        return sum(joining.running for joining in self.estimate.joinings(plan))

    def real(self, comparisons: float) -> float:
        """Compute the cost of the running plan from the comparisons a second that it has really made."""
        more = (comparisons - self.comparisons(self.current)) * self.model.units.comparison
        return max(self.running.cost + self.model.weights.work * more, 0.0)

    def price(self, strategy: str, prediction: Prediction) -> SwitchCost:
        """Compute the cost of a predicted migration as plans are weighed; each of its steps runs one operator more."""
        units, step = self.model.units, self.estimate.statistics.step
        steps = 1 + prediction.duration / step if step else 1.0
        work = units.operator_step * steps + prediction.work * units.comparison + prediction.memory * units.insert
        return SwitchCost(
            strategy, self.model.weights.work * work, prediction.silence, prediction.memory, prediction.duration
        )


def _different(plans: Iterable[Plan]) -> list[Plan]:
    # Of plans that differ only in how they are written the first one is kept.
    found: list[Plan] = []
    for plan in plans:
        if not any(same_shape(plan, one) for one in found):
            found.append(plan)
    return found


def cost_model(
    objective: str, weights: Mapping[str, float], units: Mapping[str, float] | None = None, slowness: float = 1.0
) -> CostModel:
    """Build the cost model of an objective; weights and unit costs that are given replace its own.

    Operations take so many times their unit costs as `slowness` says. That counts where work is weighed against bytes;
    else it would change no order, and what is decided shall not depend on what a host has measured.
    """
    given = {name: float(weight) for name, weight in weights.items()}
    of_objective = PLAN_OBJECTIVES[objective]
    weighed = replace(of_objective, **given) if given else of_objective
    costs = units_from_json(units or {})
    return CostModel(slowed(costs, slowness) if weighed.work and weighed.memory else costs, weighed)


def _weighed(one: Ranked) -> WeighedPlan:
    cost = one.cost
    return WeighedPlan(one.plan.notation(), cost.value, cost.low, cost.high, cost.work, cost.memory)
