"""The cost of a plan: the sum over its joins of what they do and keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from midstream.optimizer.cost.join_cost import JoinCost, JoinCosts, JoinMade, joins_made
from midstream.optimizer.cost.sizes import Bound, Sizes
from midstream.optimizer.cost.units import CostWeights, JoinUnitCosts, comparable
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Sources
from midstream.plan.tree import Eddy, MultiJoin, Plan


@dataclass(frozen=True)
class PlanCost:
    """What a plan takes in the long run: `work` in nanoseconds for a second of stream time, `memory` in bytes.

    `value` is what is compared, by the weights, to twelve digits; it lies between `low` and `high` if the sizes do
    between theirs.
    """

    work: float
    memory: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class CostModel:
    """The cost of plans, additive over their joins so that plans can be searched join by join.

    Beyond OM §4.1, which weighs output rate against buffers: here an engine that keeps up with its input has neither a
    queue nor an output rate that the plan decides, so that what a plan costs is the work and the state it takes.

    >>> from midstream.optimizer.statistics import Condition, SourceStatistics, Statistics
    >>> from midstream.plan.tree import Join, Leaf
    >>> sources = {name: SourceStatistics(rate=10, rows=100, window=10) for name in "ABC"}
    >>> joined = {frozenset("AB"): 10.0, frozenset("BC"): 5000.0}
    >>> estimate = Estimate(Statistics(sources, (Condition("hash", frozenset("ABC")),), states=joined))
    >>> few_first, many_first = Join(Join(Leaf("A"), Leaf("B")), Leaf("C")), Join(Leaf("A"), Join(Leaf("B"), Leaf("C")))
    >>> CostModel().of(few_first, estimate).value < CostModel().of(many_first, estimate).value
    True
    """

    units: JoinUnitCosts = field(default_factory=JoinUnitCosts)
    weights: CostWeights = field(default_factory=CostWeights)

    def of(self, plan: Plan, estimate: Estimate | Sizes, kept: frozenset[Sources] = frozenset()) -> PlanCost:
        """Compute the cost of a plan; states that other queries keep, named by their sources, are free.

        So is the subplan that makes them, because it runs already.
        """
        return self.weighing(estimate, kept).of(plan)

    def joins(self, plan: Plan, estimate: Estimate | Sizes) -> list[JoinCost]:
        """Compute what each source, join or hop of a plan takes, children first."""
        weighing = self.weighing(estimate)
        return [JoinCosts(self.units, weighing.sizes).of(join) for join in weighing.made(plan)]

    def weighing(self, estimate: Estimate | Sizes, kept: frozenset[Sources] = frozenset()) -> PlansWeighed:
        """Return an object that computes the costs of many plans of one query; `of` computes that of one plan."""
        sizes = Sizes.of(estimate)
        return PlansWeighed(self, sizes, kept, sizes.weighed.setdefault(self, {}))


@dataclass(frozen=True)
class PlansWeighed:
    """Plans of one query, weighed by the same figures: a join that several of them make is weighed once."""

    model: CostModel
    sizes: Sizes
    kept: frozenset[Sources]
    _known: dict[Bound, dict[JoinMade, tuple[float, float]]] = field(default_factory=dict, repr=False, compare=False)

    def of(self, plan: Plan) -> PlanCost:
        """Compute the cost of a plan."""
        made = self.made(plan)
        work, memory, exact = self._added(made, "value")
        exactly = self.sizes.are_exact
        low, high = (exact if exactly else self._added(made, bound)[2] for bound in ("low", "high"))
        value = float(comparable(exact))
        return PlanCost(work, memory, value, min(low, value), max(high, value))

    def of_joins(self, made: Sequence[JoinMade]) -> float:
        """Compute the value of some joins."""
        return float(comparable(self._added(made, "value")[2]))

    def made(self, plan: Plan) -> list[JoinMade]:
        """List what a plan joins, children first."""
        return joins_made(_learnt(plan, self.sizes), self.kept, routed=isinstance(plan, Eddy))

    def _added(self, made: Sequence[JoinMade], bound: Bound) -> tuple[float, float, float]:
        known, costs = self._known.setdefault(bound, {}), JoinCosts(self.model.units, self.sizes.by(bound))
        for join in made:
            if join not in known:
                cost = costs.of(join)
                known[join] = cost.work, cost.memory
        found = [known[join] for join in made]
        work, memory = sum([work for work, _ in found]), sum([memory for _, memory in found])
        return work, memory, self.model.weights.value(work, memory)


def _learnt(plan: Plan, sizes: Sizes) -> Plan:
    # An eddy follows these probing orders once it has learnt.
    if not isinstance(plan, Eddy):
        return plan
    return MultiJoin(tuple((start, sizes.eddy_order(start, plan.sources)) for start in plan.sources))
