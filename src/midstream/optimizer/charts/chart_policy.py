"""What the policies by charts have in common: making the charts, and following them (OM §4.4 and §4.5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from typing_extensions import override

from midstream.model.codec import decode, encode
from midstream.optimizer.charts.chart import PARTITIONS, Axis, Chart, ChartCourse, Numbers, Points, make_chart
from midstream.optimizer.charts.rates import OmAtRates, left_deep_order_of
from midstream.optimizer.cost.om import OmWeights
from midstream.optimizer.cost.units import comparable
from midstream.optimizer.decayed_mean import DECAY, ROUNDS, DecayedMean
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.policies.policy_contract import Decision, Policy, Review
from midstream.plan.tree import left_deep_trees

AROUND = 4.0
"""A chart reaches up to so many times what is measured as it is made; where the stream leaves it, it is made again."""

LEFT_DEEP_UP_TO = 4
"""Of so many sources all left-deep plans are candidates, as in the paper; of more those that are weighed anyway."""


OM = "om"
"""Estimates or costs as the paper has them."""


@dataclass(frozen=True)
class Watched:
    """A rate or a selectivity: what was observed in the last rounds, and the estimate that goes by it (OM §4.3)."""

    mean: DecayedMean = field(default_factory=DecayedMean)
    estimate: float | None = None

    def seen(self, value: float, threshold: float) -> Watched:
        """Add a round. The estimate stays while it differs from what is observed by at most this share of itself.

        >>> Watched().seen(10.0, threshold=0.1).seen(10.5, threshold=0.1).estimate
        10.0
        >>> round(Watched().seen(10.0, threshold=0.1).seen(20.0, threshold=0.1).estimate, 2)
        16.22
        """
        mean = self.mean.observed(value)
        near = self.estimate is not None and abs(value - self.estimate) <= threshold * self.estimate
        return Watched(mean, self.estimate if near else mean.value)


@dataclass(frozen=True)
class ChartMemory:
    """What a policy by charts remembers: its charts, and where the streams have been on each.

    With OM's estimates `watched` has for each chart and each of its axes what was observed.
    """

    charts: tuple[Chart, ...] = ()
    courses: tuple[ChartCourse, ...] = ()
    watched: tuple[tuple[Watched, ...], ...] = ()


def charts_of(memory: Mapping[str, Any]) -> tuple[tuple[Chart, ChartCourse], ...]:
    """Decode the charts that a policy remembers, with the streams' courses; none where the policy makes none."""
    if "charts" not in memory:
        return ()
    kept = decode(ChartMemory, memory)
    return tuple(zip(kept.charts, kept.courses, strict=True))


class ChartPolicy(Policy):
    """Runs the plan that was found beforehand to be the best one for what the streams are like.

    The charts are made at the first review that knows the streams, and kept with the manifest. `partitions` is k of the
    paper. Beyond it, where several plans are best somewhere in a region, those few are weighed by the present figures;
    with `contested` 0 the region's centroid decides, as in the paper.

    With `estimates` "om" the streams are where OM's weighted means of the last `rounds` reviews have them (d of §4.3),
    of which each weighs less by e^-`decay` than the one after it (a); a selectivity is estimated again only where it is
    off by the share `threshold`. What is observed comes from the states and samples, where the paper has histograms.

    With `cost` "om" plans are weighed by `w_r` / C_r + `w_m` C_m (§3.2, §4.1), and only left-deep ones, as in step 3 of
    §4.2; selections and projections are pushed down and aggregates come last in every plan (steps 1, 2 and 4).

    A round is judged once it is over, by the plan that was the best for what was observed in it (§5.1).
    """

    options = {  # noqa: RUF012
        "partitions": PARTITIONS, "contested": 1, "estimates": "live", "cost": "own",
        "rounds": ROUNDS, "decay": DECAY, "threshold": 0.1, "w_r": OmWeights.w_r, "w_m": OmWeights.w_m,
    }  # fmt: skip
    words = {"estimates": ("live", OM), "cost": ("own", OM)}  # noqa: RUF012

    @abstractmethod
    def points(self, review: Review) -> tuple[tuple[float, ...], ...]:
        """Describe the streams as they are now: a point for each chart."""

    @abstractmethod
    def dimensions(self, review: Review, points: Sequence[Sequence[float]]) -> tuple[tuple[Axis, ...], ...]:
        """Choose the axes of each chart, around these points."""

    @override
    def refusal(self, options: Mapping[str, float | str]) -> tuple[str, str] | None:
        weights = [options.get(name, self.options[name]) for name in ("w_r", "w_m")]
        if options.get("cost") == OM and not any(weights):
            return "w_r and w_m are 0, so every plan costs the same", "give one weight a number above 0"
        return None

    @override
    def plans(self, aliases: Sequence[str]) -> tuple[str, ...]:
        if len(aliases) > LEFT_DEEP_UP_TO:
            return ()
        return tuple(plan.notation() for plan in left_deep_trees(aliases))

    @override
    def decide(self, review: Review) -> Decision:
        observed, weighing = self.points(review), self.weighing(review)
        if weighing is None or not review.alternatives or not all(all(point) for point in observed):
            return Decision(None, "nothing is known of the streams, or there is no other plan", review.memory)
        if not weighing.plans:
            return Decision(None, "no plan that is allowed is left-deep, and OM weighs no other", review.memory)
        memory = self._watched(review, decode(ChartMemory, review.memory), observed)
        judged = tuple(one.against(weighing.best) if one.rounds else one for one in memory.courses)
        memory, points = replace(memory, courses=judged), _estimated(memory, observed)
        chosen = self._chosen(review, memory, points, observed, weighing) if _reach(memory, points) else None
        if chosen is None:
            memory = replace(self._made(review, points, observed, weighing), watched=memory.watched)
            chosen = self._chosen(review, memory, points, observed, weighing)
        assert chosen is not None
        courses = tuple(
            course.to(chart, point, chosen)
            for chart, course, point in zip(memory.charts, memory.courses, points, strict=True)
        )
        counted = _counted(courses[_ruling(memory, points)])
        kept = encode(replace(memory, courses=courses))
        if chosen == review.running.plan:
            return Decision(None, f"it runs by the plan of its region; {counted}", kept)
        return Decision(chosen, f"the plan of the region that the streams are in; {counted}", kept)

    def weighing(self, review: Review) -> Weighing | None:
        """Return what the plans that may be chosen cost; None where that is not known."""
        if review.at_rates is None:
            return None
        plans = sorted({review.running.plan, *(one.plan for one in review.alternatives)})
        if self.word(review, "cost") != OM:
            return Weighing(review, plans, review.at_rates(plans), own=True)
        found = zip(plans, map(left_deep_order_of, review.at_rates(plans).plans), strict=True)
        orders = {plan: order for plan, order in found if order is not None}
        weights = OmWeights(self.option(review, "w_r"), self.option(review, "w_m"))
        return Weighing(review, list(orders), OmAtRates.of([*orders.values()], Estimate(review.statistics), weights))

    def _watched(self, review: Review, memory: ChartMemory, observed: Sequence[Sequence[float]]) -> ChartMemory:
        if self.word(review, "estimates") != OM:
            return replace(memory, watched=())
        fresh = Watched(DecayedMean((), int(self.option(review, "rounds")), self.option(review, "decay")))
        threshold, axes = self.option(review, "threshold"), self.dimensions(review, observed)
        known = memory.watched if len(memory.watched) == len(observed) else [[fresh] * len(one) for one in observed]
        watched = tuple(
            tuple(
                one.seen(value, threshold if axis.dimension == "selectivity" else 0.0)
                for one, value, axis in zip(*columns, strict=True)
            )
            for columns in zip(known, observed, axes, strict=True)
        )
        return replace(memory, watched=watched)

    def _chosen(
        self, review: Review, memory: ChartMemory, points: Sequence[Sequence[float]],
        observed: Sequence[Sequence[float]], weighing: Weighing,
    ) -> str | None:  # fmt: skip
        # None where a chart has a plan for the region that may not be run now.
        ruling = _ruling(memory, points)
        chart, course = memory.charts[ruling], memory.courses[ruling]
        region = chart.region(points[ruling])
        rivals = chart.rivals(region)
        if self.option(review, "contested") > 0 and len(rivals) > 1:
            known = [plan for plan in rivals if plan in weighing.plans]
            costs = weighing.at(chart.axes, points[ruling], observed[ruling])
            return min(known, key=lambda plan: (costs[plan], plan)) if known else None
        plan = course.plan if region == course.here else chart.plan(region)
        return plan if plan in weighing.plans else None

    def _made(
        self, review: Review, points: Sequence[Sequence[float]], observed: Sequence[Sequence[float]],
        weighing: Weighing,
    ) -> ChartMemory:  # fmt: skip
        k = max(int(self.option(review, "partitions")), 1)
        widest = [[max(pair) for pair in zip(*both, strict=True)] for both in zip(points, observed, strict=True)]
        charts = tuple(
            make_chart(axes, weighing.plans, _CostAtPoints(weighing.function, axes, now), k)
            for axes, now in zip(self.dimensions(review, widest), observed, strict=True)
        )
        return ChartMemory(charts, tuple(ChartCourse() for _ in charts))


class Costs(Protocol):
    """What plans cost at other rates and selectivities."""

    def values(self, rates: Mapping[str, Numbers], selectivities: Mapping[str, Numbers]) -> Numbers:
        """Compute what each plan costs, a row for each point, by factors of what is observed."""
        ...


@dataclass(frozen=True)
class Weighing:
    """What the plans that may be chosen cost anywhere; `own` where that is what the review shows for the present."""

    review: Review
    plans: Sequence[str]
    function: Costs
    own: bool = False

    @cached_property
    def best(self) -> str:
        """The best plan for what is observed."""
        if self.own:
            return min((self.review.running, *self.review.alternatives), key=lambda one: (one.cost, one.plan)).plan
        return self.plans[int(comparable(self.function.values({}, {})[0]).argmin())]

    def at(self, axes: Sequence[Axis], point: Sequence[float], now: Sequence[float]) -> dict[str, float]:
        """Compute what each plan costs at a point of a chart, where the streams are at another one now."""
        if self.own and tuple(point) == tuple(now):
            return {one.plan: one.cost for one in (self.review.running, *self.review.alternatives)}
        costs = comparable(_CostAtPoints(self.function, axes, now)(np.array([point])))[0]
        return dict(zip(self.plans, costs.tolist(), strict=True))


class _CostAtPoints:
    """What plans cost at the points of a chart, as factors of the present point."""

    def __init__(self, function: Costs, axes: Sequence[Axis], now: Sequence[float]) -> None:
        self._function, self._axes, self._now = function, axes, now

    def __call__(self, points: Points) -> Numbers:
        factors = {"rate": dict[str, Numbers](), "selectivity": dict[str, Numbers]()}
        for column, (axis, present) in enumerate(zip(self._axes, self._now, strict=True)):
            factors[axis.dimension][axis.source] = np.asarray(points[:, column] / present, np.float64)
        return self._function.values(factors["rate"], factors["selectivity"])


def _estimated(memory: ChartMemory, observed: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    if not memory.watched:
        return observed
    return tuple(tuple(one.estimate or 0.0 for one in watched) for watched in memory.watched)


def _reach(memory: ChartMemory, points: Sequence[Sequence[float]]) -> bool:
    # The charts must contain the points where the streams are.
    return len(memory.charts) == len(points) and all(
        axis.low <= value <= axis.high
        for chart, point in zip(memory.charts, points, strict=True)
        for axis, value in zip(chart.axes, point, strict=True)
    )


def _ruling(memory: ChartMemory, points: Sequence[Sequence[float]]) -> int:
    # The chart on which its stream moved farthest decides; the first one at first.

    def moved(number: int) -> int:
        here = memory.courses[number].here
        there = memory.charts[number].region(points[number])
        return max((abs(a - b) for a, b in zip(here, there, strict=True)), default=0) if here else 0

    return max(range(len(points)), key=lambda number: (moved(number), -number))


def _counted(course: ChartCourse) -> str:
    return f"{course.moves} moves, {course.switches} switches, fidelity {course.fidelity:.0%}"
