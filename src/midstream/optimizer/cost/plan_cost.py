"""The cost of a plan: the sum over its joins of what they do and keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from midstream.optimizer.cost.sizes import Sizes
from midstream.optimizer.cost.units import CostWeights, JoinUnitCosts
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Sources
from midstream.plan.tree import Common, Eddy, Form, Join, Leaf, MultiJoin, Plan

Bound = Literal["value", "low", "high"]


@dataclass(frozen=True)
class PlanCost:
    """What a plan takes in the long run: `work` in nanoseconds for a second of stream time, `memory` in bytes.

    `value` is what is compared, by the weights; it lies between `low` and `high` if the sizes do between theirs.
    """

    work: float
    memory: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class JoinCost:
    """What one join of a plan takes, with the state of its output: `sources` are those that it has brought together."""

    sources: Sources
    work: float
    memory: float


@dataclass(frozen=True)
class CostModel:
    """The cost of plans, additive over their joins so that plans can be searched join by join.

    Beyond OM §4.1, which weighs output rate against buffers: here an engine that keeps up with its input has neither a
    queue nor an output rate that the plan decides, so that what a plan costs is the work and the state it takes.

    >>> from midstream.optimizer.statistics import Condition, SourceStatistics, Statistics
    >>> sources = {name: SourceStatistics(rate=10, rows=100, window=10) for name in "ABC"}
    >>> joined = {frozenset("AB"): 10.0, frozenset("BC"): 5000.0}
    >>> estimate = Estimate(Statistics(sources, (Condition("hash", frozenset("ABC")),), states=joined))
    >>> few_first, many_first = Join(Join(Leaf("A"), Leaf("B")), Leaf("C")), Join(Leaf("A"), Join(Leaf("B"), Leaf("C")))
    >>> CostModel().of(few_first, estimate).value < CostModel().of(many_first, estimate).value
    True
    """

    units: JoinUnitCosts = field(default_factory=JoinUnitCosts)
    weights: CostWeights = field(default_factory=CostWeights)

    def of(self, plan: Plan, estimate: Estimate, kept: frozenset[Sources] = frozenset()) -> PlanCost:
        """The cost of a plan beside states, named by their sources, that other queries keep anyway: those are free.

        So is the subplan that makes them, for it runs already.
        """
        sums = {bound: self._sum(self.joins(plan, estimate, kept, bound)) for bound in ("value", "low", "high")}
        work, memory, value = sums["value"]
        return PlanCost(work, memory, value, min(sums["low"][2], value), max(sums["high"][2], value))

    def joins(
        self, plan: Plan, estimate: Estimate, kept: frozenset[Sources] = frozenset(), bound: Bound = "value"
    ) -> list[JoinCost]:
        """What each source, join or hop of a plan takes, children first."""
        return list(_Walk(self, Sizes(estimate, bound), kept, frozenset(plan.aliases())).of(plan))

    def _sum(self, joins: Iterable[JoinCost]) -> tuple[float, float, float]:
        found = list(joins)
        work, memory = sum(join.work for join in found), sum(join.memory for join in found)
        return work, memory, self.weights.value(work, memory)


@dataclass(frozen=True)
class _Walk:
    """One plan looked at part by part."""

    model: CostModel
    sizes: Sizes
    kept: frozenset[Sources]
    whole: Sources

    def of(self, plan: Plan) -> Iterator[JoinCost]:
        match plan:
            case _ if frozenset(plan.aliases()) in self.kept:
                return
            case Join(left, right):
                yield from self.of(left)
                yield from self.of(right)
                yield self._join(frozenset(left.aliases()), frozenset(right.aliases()))
            case Form(_, tree):
                yield from self.of(tree)
            case MultiJoin(orders):
                yield from self._bases(plan)
                yield from (hop for start, order in orders for hop in self._hops(start, order))
            case Eddy(sources):
                yield from self._bases(plan)
                for start in sources:
                    yield from self._hops(start, self.sizes.eddy_order(start, sources), routed=True)
            case Leaf() | Common():
                yield from self._bases(plan)

    def _bases(self, plan: Plan) -> Iterator[JoinCost]:
        units = self.model.units
        for alias in plan.aliases():
            one = frozenset({alias})
            if one not in self.kept:
                yield JoinCost(one, units.insert * self.sizes.rate(one), units.bytes_of(self.sizes.rows(one), 1.0))

    def _join(self, left: Sources, right: Sources) -> JoinCost:
        units, sizes, together = self.model.units, self.sizes, left | right
        results = sizes.rate(together)
        work = units.joining(sizes.rate(left) + sizes.rate(right), sizes.comparisons(left, right), results)
        work += units.operator_step * sizes.steps
        if together == self.whole:
            return JoinCost(together, work, 0.0)
        memory = units.bytes_of(sizes.rows(together), float(len(together)))
        return JoinCost(together, work + units.insert * results, memory)

    def _hops(self, start: str, order: tuple[str, ...], routed: bool = False) -> Iterator[JoinCost]:
        """What the new rows of one source do: what they have met so far probes the next base state."""
        units, sizes = self.model.units, self.sizes
        here = frozenset({start})
        for alias in order:
            there = here | {alias}
            probes = sizes.rate_of_new(start, here)
            work = units.joining(probes, sizes.hop(start, here, alias), sizes.rate_of_new(start, there))
            work += units.operator_step * sizes.steps + (units.route * probes if routed else 0.0)
            yield JoinCost(there, work, 0.0)
            here = there


def shares(joins: Iterable[JoinCost]) -> Mapping[Sources, float]:
    """The share of a plan's work that each set of sources takes, the greatest first."""
    found = list(joins)
    total = sum(join.work for join in found) or 1.0
    sums: dict[Sources, float] = {}
    for join in found:
        sums[join.sources] = sums.get(join.sources, 0.0) + join.work / total
    return dict(sorted(sums.items(), key=lambda item: (-item[1], sorted(item[0]))))
