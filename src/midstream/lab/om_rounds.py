"""OM's queries scheduled round by round, by charts and by the paper's rivals, against the best plan of each round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from midstream.lab.costs.om_heuristics import OmStream, om_plan
from midstream.lab.om_streams import Traffic
from midstream.optimizer.charts.chart import PARTITIONS, Axis, Chart, ChartCourse, Points, make_chart
from midstream.optimizer.cost.om import OmCost, OmOperator, OmWeights, left_deep_cost, pipeline_cost
from midstream.optimizer.decayed_mean import decayed_means
from midstream.optimizer.policies.adaptive import Adaptive
from midstream.optimizer.policies.policy_contract import Review, SwitchCost, WeighedPlan
from midstream.optimizer.statistics import Statistics

Numbers = npt.NDArray[np.float64]

STEEPEST = 2.0
"""By no more than this factor a round is expected to differ from the last one."""


def foreseen(observed: Numbers, means: Numbers) -> Numbers:
    """Estimate each row of observations from those before it: the mean, or straight on from the last two.

    Each column by itself takes the one of the two whose errors so far, all rounds before together, are smaller.

    >>> means = np.array([[10.0], [10.0], [11.0], [12.5], [14.0]])
    >>> foreseen(np.array([[10.0], [12.0], [14.0], [16.0], [18.0]]), means).ravel().tolist()
    [10.0, 10.0, 11.0, 16.0, 18.0]
    >>> foreseen(np.array([[10.0], [12.0], [10.0], [12.0], [10.0]]), np.full((5, 1), 11.0)).ravel().tolist()
    [11.0, 10.0, 11.0, 11.0, 11.0]
    """
    last = _before(observed)
    ahead = np.clip(2 * last - _before(last), last / STEEPEST, last * STEEPEST)
    found: Numbers = np.where(_erred(ahead, observed) < _erred(means, observed), ahead, means)
    return found


def surest(drawn: Iterable[Numbers], best: Callable[[Numbers], npt.NDArray[np.intp]], plans: int) -> list[int]:
    """Choose for each round the plan that is most often the best, over drawings of the rounds.

    >>> surest([np.array([1.0, 8.0]), np.array([2.0, 9.0]), np.array([7.0, 1.0])], lambda x: (x > 5).astype(int), 2)
    [0, 1]
    """
    chosen = np.stack([best(points) for points in drawn])
    votes = np.stack([(chosen == plan).sum(axis=0) for plan in range(plans)])
    found: list[int] = votes.argmax(axis=0).tolist()
    return found


def _before(values: Numbers) -> Numbers:
    # The first row stays.
    return np.concatenate([values[:1], values[:-1]])


def _erred(estimated: Numbers, observed: Numbers) -> Numbers:
    # The errors of all rounds before, together.
    errors = np.abs(estimated - observed).cumsum(axis=0)
    return np.concatenate([np.zeros_like(errors[:1]), errors[:-1]])


WEIGHTS = OmWeights(0.4, 0.6)
WINDOW = 1.0
SELECTION_TPR, PROJECTION_TPR, JOIN_TPR = 400e3, 500e3, 3e3
"""The paper's processing rates in tuples a second: selection by equality, projection, equi-join (§5.1)."""

KEPT_COLUMNS = 1 / 3
"""Q1 keeps two of the six columns of the TCP trace."""

MATCH = 0.001
"""The share of pairs of Q2's streams that have one host in common."""

SEEN, DECAY = 4, 2.0
"""d and a of §4.3, which the paper does not give: rounds that an estimate looks back, and how fast they fade."""

SINGLE_PLANS = ("selection first", "projection first")
JOIN_PLANS = ("((TCP UDP) SF)", "((TCP SF) UDP)", "((UDP SF) TCP)")
JOIN_ORDERS = ((0, 1, 2), (0, 2, 1), (1, 2, 0))


@dataclass(frozen=True)
class OmQuery:
    """A query with its candidate plans, and what each costs at a point of its chart, by OM's functions.

    `heuristic` is the plan that OM's steps without a chart lead to at a point (§4.2).
    """

    name: str
    plans: tuple[str, ...]
    dimensions: tuple[str, ...]
    cost: Callable[[Sequence[float], OmWeights], tuple[float, ...]]
    heuristic: Callable[[Sequence[float], OmWeights], str]

    def costs(self, points: Points, weights: OmWeights = WEIGHTS) -> Numbers:
        """Compute the costs of the plans, a row for each point."""
        return np.array([self.cost(point, weights) for point in points.tolist()])

    def points(self, traffic: Traffic) -> Points:
        """Describe the traffic in each round as a point."""
        if self.dimensions[0] == "selectivity":
            return np.stack([traffic.selectivity, traffic.rates[:, 0]], axis=1)
        return traffic.rates


def single_costs(point: Sequence[float], weights: OmWeights, kept: float = KEPT_COLUMNS) -> tuple[float, ...]:
    """Compute the cost of Q1's two plans at a selectivity and rate; a projection narrows rows to what is kept."""
    stream = single_stream(point, kept)
    assert stream.projection is not None
    orders = ((*stream.selections, stream.projection), (stream.projection, *stream.selections))
    return tuple(pipeline_cost(order, stream.rate, WINDOW).weighted(weights) for order in orders)


def single_stream(point: Sequence[float], kept: float = KEPT_COLUMNS) -> OmStream:
    """Build Q1's stream at a selectivity and rate."""
    sel, rate = point
    selection = OmOperator("selection", sel, SELECTION_TPR)
    return OmStream(rate, (selection,), OmOperator("projection", 1.0, PROJECTION_TPR, width=kept))


def single_plan(point: Sequence[float], weights: OmWeights) -> str:
    """Find the plan of Q1 by OM's steps."""
    found = om_plan({"TCP": single_stream(point)}, lambda left, right: MATCH, WINDOW, JOIN_TPR, weights)
    return f"{found.pipelines['TCP'][0].name} first"


def join_costs(point: Sequence[float], weights: OmWeights) -> tuple[float, ...]:
    """Compute the cost of Q2's three left-deep plans at three rates."""
    found: list[OmCost] = [
        left_deep_cost([point[i] for i in order], [MATCH, MATCH], WINDOW, JOIN_TPR) for order in JOIN_ORDERS
    ]
    return tuple(cost.weighted(weights) for cost in found)


def join_plan(point: Sequence[float], weights: OmWeights) -> str:
    """Find the plan of Q2 by OM's steps; the order of a tree's first two streams makes no difference."""
    names = ("TCP", "UDP", "SF")
    streams = {name: OmStream(rate) for name, rate in zip(names, point, strict=True)}
    *first, last = om_plan(streams, lambda left, right: MATCH, WINDOW, JOIN_TPR, weights).joins.aliases()
    one, other = sorted(first, key=names.index)
    return f"(({one} {other}) {last})"


Q1 = OmQuery("Q1", SINGLE_PLANS, ("selectivity", "rate"), single_costs, single_plan)
Q2 = OmQuery("Q2", JOIN_PLANS, ("rate", "rate", "rate"), join_costs, join_plan)

PAPER, WEIGHED = "OM chart", "OM chart, contested regions weighed anew"
INFORMED = "OM chart, rates known"
"""The chart looked up at what is observed in the round itself: what it misses is its granularity's alone."""
RAND, RATE, ADAPTIVE = "RAND", "RATE", "adaptive, undamped"
AHEAD, BOUND = "adaptive, undamped, looking ahead", "bound: all before the round is known"
CONTESTANTS = (PAPER, WEIGHED, ADAPTIVE, AHEAD, BOUND, RATE, RAND)

REDRAWN = 32
"""So many times a round is drawn again, to find the plan that is surest the best one."""

UNDAMPED = {"reviews": 0.0, "margin": 0.0}
"""Options of `adaptive` by which it switches as readily as the paper's optimizer: however little is gained."""

FREE = SwitchCost("moving_state", work=0.0)
"""What a switch costs in the paper."""


@dataclass(frozen=True)
class Rounds:
    """A query over some traffic: what is observed and estimated in each round, and the plan that is best."""

    query: OmQuery
    traffic: Traffic
    weights: OmWeights = WEIGHTS

    @cached_property
    def observed(self) -> Points:
        """The point of each round as observed."""
        return self.query.points(self.traffic)

    @cached_property
    def estimated(self) -> Points:
        """The point of each round as estimated from those before it (§4.3); the first one is known."""
        return decayed_means(self.observed, SEEN, DECAY)

    @cached_property
    def foreseen(self) -> Points:
        """The estimate that goes on as the stream last went, where that has erred less."""
        return foreseen(self.observed, self.estimated)

    @cached_property
    def best(self) -> list[str]:
        """The cheapest plan of each round, found afterwards: the paper's offline procedure."""
        return [self.query.plans[i] for i in self._cheapest(self.observed)]

    @cached_property
    def surest(self) -> list[str]:
        """The plan of each round chosen with knowledge of all seconds before, and of how the next one is drawn."""
        again = self.traffic.drawn_again
        if again is None:
            raise ValueError("the record of these rounds does not contain the distribution of the next second")
        random = np.random.default_rng(REDRAWN)
        drawn = (self.query.points(again(random)) for _ in range(REDRAWN))
        return [self.query.plans[i] for i in surest(drawn, self._cheapest, len(self.query.plans))]

    def chart(self, k: int = PARTITIONS) -> Chart:
        """Build the chart over the range of what is observed."""
        low, high = self.observed.min(axis=0), self.observed.max(axis=0)
        axes = [
            Axis("rate" if dimension == "rate" else "selectivity", f"{dimension} {i}", float(low[i]), float(high[i]))
            for i, dimension in enumerate(self.query.dimensions)
        ]
        return make_chart(axes, self.query.plans, lambda points: self.query.costs(points, self.weights), k)

    def course(self, contestant: str, chart: Chart, seed: int = 0) -> tuple[ChartCourse, list[str]]:
        """Run a contestant; returns its course and the plan that it ran in each round."""
        chosen = self._chosen(contestant, chart, seed)
        course, plans = ChartCourse(), list[str]()
        for point, plan, best in zip(self.estimated.tolist(), chosen, self.best, strict=True):
            course = course.to(chart, point, plan).against(best)
            plans.append(course.plan)
        return course, plans

    def excess(self, chosen: Sequence[str]) -> float:
        """Compute the share by which the plans that ran cost more than the best ones, all rounds together."""
        costs = self.query.costs(self.observed, self.weights)
        paid = costs[np.arange(len(costs)), [self.query.plans.index(plan) for plan in chosen]]
        return float(paid.sum() / costs.min(axis=1).sum() - 1)

    def _chosen(self, contestant: str, chart: Chart, seed: int) -> list[str | None]:
        # None where the chart decides alone.
        rounds = len(self.observed)
        if contestant == RAND:
            return [self.query.plans[i] for i in np.random.default_rng(seed).integers(0, len(self.query.plans), rounds)]
        if contestant == RATE:
            return [self.query.heuristic(self.observed[0].tolist(), self.weights)] * rounds
        if contestant == PAPER:
            return [None] * rounds
        if contestant == INFORMED:
            return [chart.plan(chart.region(point)) for point in self.observed.tolist()]
        if contestant == ADAPTIVE:
            return list(self._adapted(self.estimated))
        if contestant == AHEAD:
            return list(self._adapted(self.foreseen))
        if contestant == BOUND:
            return list(self.surest)
        return [
            self.query.plans[place] if len(chart.rivals(chart.region(point))) > 1 else None
            for point, place in zip(self.estimated.tolist(), self._cheapest(self.estimated), strict=True)
        ]

    def _cheapest(self, points: Points) -> npt.NDArray[np.intp]:
        places: npt.NDArray[np.intp] = self.query.costs(points, self.weights).argmin(axis=1)
        return places

    def _adapted(self, expected: Points) -> Iterator[str]:
        # It begins with the plan that is the best one at first.
        memory: Mapping[str, Any] = {}
        running = self.best[0]
        for number, costs in enumerate(self.query.costs(expected, self.weights).tolist()):
            by_plan = dict(zip(self.query.plans, costs, strict=True))
            decision = Adaptive().decide(self._review(number, by_plan, running, memory))
            memory, running = decision.memory, decision.plan or running
            yield running

    def _review(self, number: int, costs: Mapping[str, float], running: str, memory: Mapping[str, Any]) -> Review:
        # Estimates have no bounds here, and switches cost nothing.
        plans = [WeighedPlan(plan, cost, cost, cost, cost) for plan, cost in costs.items() if plan != running]
        now = costs[running]
        return Review(
            query=self.query.name,
            running=WeighedPlan(running, now, now, now, now),
            alternatives=tuple(sorted(plans, key=lambda one: one.cost)),
            sure_gain=lambda plan: now - costs[plan],
            predict=lambda plan: FREE,
            time=round(number * WINDOW * 1e6),
            elapsed=WINDOW,
            window=WINDOW,
            statistics=Statistics({}),
            options=UNDAMPED,
            memory=memory,
        )
