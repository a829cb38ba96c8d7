"""The cost of a plan: the sum over its joins of what they do and keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from midstream.optimizer.cost.sizes import Bound, Sizes
from midstream.optimizer.cost.units import CostWeights, JoinUnitCosts, comparable
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Sources
from midstream.plan.tree import Common, Eddy, Form, Join, Leaf, MultiJoin, Plan


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
class WorkShare:
    """A part of a join's work: nanoseconds a second, proportional to the combinations of `rows` that are made.

    `joined` are the sources among them whose matches count: of a nested loop's pairs, those that each side has joined.
    """

    nanoseconds: float
    rows: Sources
    joined: Sources


@dataclass(frozen=True)
class JoinCost:
    """What one join of a plan takes, with the state of its output: `sources` are those that it has brought together."""

    sources: Sources
    shares: tuple[WorkShare, ...]
    memory: float

    @property
    def work(self) -> float:
        """Nanoseconds a second, all shares."""
        return sum(share.nanoseconds for share in self.shares)


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

    def of(self, plan: Plan, estimate: Estimate | Sizes, kept: frozenset[Sources] = frozenset()) -> PlanCost:
        """The cost of a plan beside states, named by their sources, that other queries keep anyway: those are free.

        So is the subplan that makes them, for it runs already.
        """
        sizes, routed = Sizes.of(estimate), isinstance(plan, Eddy)
        learnt = _learnt(plan, sizes)

        def added(bound: Bound) -> tuple[float, float, float]:
            return self._sum(self._joins(learnt, sizes.by(bound), kept, routed))

        work, memory, exact = added("value")
        low, high = (exact, exact) if sizes.are_exact else (added("low")[2], added("high")[2])
        value = float(comparable(exact))
        return PlanCost(work, memory, value, min(low, value), max(high, value))

    def joins(
        self, plan: Plan, estimate: Estimate | Sizes, kept: frozenset[Sources] = frozenset(), bound: Bound = "value"
    ) -> list[JoinCost]:
        """What each source, join or hop of a plan takes, children first."""
        sizes = Sizes.of(estimate)
        return self._joins(_learnt(plan, sizes), sizes.by(bound), kept, isinstance(plan, Eddy))

    def _joins(self, plan: Plan, sizes: Sizes, kept: frozenset[Sources], routed: bool) -> list[JoinCost]:
        return list(_Walk(self, sizes, kept, frozenset(plan.aliases()), routed).of(plan))

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
    routed: bool

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
            case Leaf() | Common():
                yield from self._bases(plan)

    def _bases(self, plan: Plan) -> Iterator[JoinCost]:
        units = self.model.units
        for alias in plan.aliases():
            one = frozenset({alias})
            if one not in self.kept:
                inserted = _share(units.insert * self.sizes.rate(one), one)
                yield JoinCost(one, (inserted,), units.bytes_of(self.sizes.rows(one), 1.0))

    def _join(self, left: Sources, right: Sources) -> JoinCost:
        units, sizes, together = self.model.units, self.sizes, left | right
        inner = together != self.whole
        probes = [_share(units.probe * sizes.rate(side), side) for side in (left, right)]
        made = sizes.rate(together) * (units.result + units.insert * inner)
        compared = self._compared(sizes.comparisons(left, right), left, right)
        memory = units.bytes_of(sizes.rows(together), float(len(together))) if inner else 0.0
        return JoinCost(together, (*probes, _share(made, together), compared, self._at_every_step), memory)

    def _hops(self, start: str, order: tuple[str, ...]) -> Iterator[JoinCost]:
        """What the new rows of one source do: what they have met so far probes the next base state."""
        units, sizes = self.model.units, self.sizes
        here = frozenset({start})
        for alias in order:
            there = here | {alias}
            probes = (units.probe + units.route * self.routed) * sizes.rate_of_new(start, here)
            made = units.result * sizes.rate_of_new(start, there)
            compared = self._compared(sizes.hop(start, here, alias), here, frozenset({alias}))
            yield JoinCost(there, (_share(probes, here), _share(made, there), compared, self._at_every_step), 0.0)
            here = there

    def _compared(self, comparisons: float, left: Sources, right: Sources) -> WorkShare:
        nested = self.sizes.residual(left, right) is None
        joined = frozenset[str]().union(*(side for side in (left, right) if len(side) > 1)) if nested else left | right
        return WorkShare(self.model.units.comparison * comparisons, left | right, joined)

    @property
    def _at_every_step(self) -> WorkShare:
        return _share(self.model.units.operator_step * self.sizes.steps, frozenset())


def _learnt(plan: Plan, sizes: Sizes) -> Plan:
    """A plan as it is; an eddy as the probing orders that it follows once it has learnt."""
    if not isinstance(plan, Eddy):
        return plan
    return MultiJoin(tuple((start, sizes.eddy_order(start, plan.sources)) for start in plan.sources))


def _share(nanoseconds: float, rows: Sources) -> WorkShare:
    return WorkShare(nanoseconds, rows, rows if len(rows) > 1 else frozenset())
