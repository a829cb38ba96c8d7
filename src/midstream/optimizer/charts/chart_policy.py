"""What the policies by charts have in common: making the charts, and following them (OM §4.4 and §4.5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import override

from midstream.model.codec import decode, encode
from midstream.optimizer.charts.chart import PARTITIONS, Axis, Chart, ChartCourse, Numbers, Points, make_chart
from midstream.optimizer.charts.rates import CostAtRates
from midstream.optimizer.policies.base import Decision, Policy, Review
from midstream.plan.tree import left_deep_trees

AROUND = 4.0
"""A chart reaches up to so many times what is measured as it is made; where the stream leaves it, it is made anew."""

LEFT_DEEP_UP_TO = 4
"""Of so many sources all left-deep plans are candidates, as in the paper; of more those that are weighed anyway."""


@dataclass(frozen=True)
class ChartMemory:
    """What a policy by charts remembers: its charts, and where the streams have been on each."""

    charts: tuple[Chart, ...] = ()
    courses: tuple[ChartCourse, ...] = ()


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
    """

    options = {"partitions": PARTITIONS, "contested": 1}  # noqa: RUF012

    @abstractmethod
    def points(self, review: Review) -> tuple[tuple[float, ...], ...]:
        """Describe the streams as they are now: a point for each chart."""

    @abstractmethod
    def dimensions(self, review: Review) -> tuple[tuple[Axis, ...], ...]:
        """Choose the axes of each chart, around the present point."""

    @override
    def plans(self, aliases: Sequence[str]) -> tuple[str, ...]:
        if len(aliases) > LEFT_DEEP_UP_TO:
            return ()
        return tuple(plan.notation() for plan in left_deep_trees(aliases))

    @override
    def decide(self, review: Review) -> Decision:
        points = self.points(review)
        if review.at_rates is None or not review.alternatives or not all(all(point) for point in points):
            return Decision(None, "nothing is known of the streams, or there is no other plan", review.memory)
        memory = decode(ChartMemory, review.memory)
        chosen = self._chosen(review, memory, points) if _reach(memory, points) else None
        if chosen is None:
            memory = self._made(review)
            chosen = self._chosen(review, memory, points)
        assert chosen is not None
        best = min((review.running, *review.alternatives), key=lambda one: (one.cost, one.plan)).plan
        courses = tuple(
            course.to(chart, point, chosen).against(best)
            for chart, course, point in zip(memory.charts, memory.courses, points, strict=True)
        )
        counted = _counted(courses[_ruling(memory, points)])
        kept = encode(ChartMemory(memory.charts, courses))
        if chosen == review.running.plan:
            return Decision(None, f"it runs by the plan of its region; {counted}", kept)
        return Decision(chosen, f"the plan of the region that the streams are in; {counted}", kept)

    def _chosen(self, review: Review, memory: ChartMemory, points: Sequence[Sequence[float]]) -> str | None:
        # None where a chart has a plan for the region that may not be run now.
        ruling = _ruling(memory, points)
        chart, course = memory.charts[ruling], memory.courses[ruling]
        region = chart.region(points[ruling])
        rivals = chart.rivals(region)
        if self.option(review, "contested") > 0 and len(rivals) > 1:
            known = [weighed for plan in rivals if (weighed := review.weighed(plan)) is not None]
            return min(known, key=lambda one: (one.cost, one.plan)).plan if known else None
        plan = course.plan if region == course.here else chart.plan(region)
        return None if review.weighed(plan) is None else plan

    def _made(self, review: Review) -> ChartMemory:
        assert review.at_rates is not None
        plans = sorted({review.running.plan, *(one.plan for one in review.alternatives)})
        function = review.at_rates(plans)
        k = max(int(self.option(review, "partitions")), 1)
        charts = tuple(
            make_chart(axes, plans, _CostAtPoints(function, axes, now), k)
            for axes, now in zip(self.dimensions(review), self.points(review), strict=True)
        )
        return ChartMemory(charts, tuple(ChartCourse() for _ in charts))


class _CostAtPoints:
    """What plans cost at the points of a chart, as factors of the present point."""

    def __init__(self, function: CostAtRates, axes: Sequence[Axis], now: Sequence[float]) -> None:
        self._function, self._axes, self._now = function, axes, now

    def __call__(self, points: Points) -> Numbers:
        factors = {"rate": dict[str, Numbers](), "selectivity": dict[str, Numbers]()}
        for column, (axis, present) in enumerate(zip(self._axes, self._now, strict=True)):
            factors[axis.dimension][axis.source] = np.asarray(points[:, column] / present, np.float64)
        return self._function.values(factors["rate"], factors["selectivity"])


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
