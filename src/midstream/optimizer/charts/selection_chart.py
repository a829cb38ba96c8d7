"""A sel-lambda chart for the selections of one stream: the best order of its conditions in each region (OM §4.4.1).

In: what each condition left in the last round, and the stream's rate. Out: the order to evaluate them in. Differs from
the paper: conditions are operators of their own instead of one grouped selection (step 1 of §4.2), and the projection
comes before all of them, because to leave out a column copies nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations

import numpy as np
from typing_extensions import override

from midstream.expr.evaluate import reads_strings
from midstream.expr.expression import Call, Expression
from midstream.expr.functions import asks_user
from midstream.optimizer.charts.chart import Axis, Numbers
from midstream.optimizer.charts.chart_policy import AROUND, OM, ChartPolicy, Weighing
from midstream.optimizer.cost.om import OmWeights, input_buffer
from midstream.optimizer.cost.units import comparable
from midstream.optimizer.policies.policy_contract import Review, WeighedPlan

ORDERED = 4
"""So many conditions of a stream are put in order; others follow as they are written."""

REGIONS = 1_000
"""A chart of conditions has at most so many regions: a manifest keeps it."""

LEAST = 1e-6
"""A condition that leaves a smaller share of the rows counts as leaving this one."""

NUMBERS, STRINGS = (2.0, 9.0), (10.0, 20.0)
"""Nanoseconds to evaluate a condition on a row that arrived, and on one that other conditions left, gathering it."""

EQUALITY_TPR, RANGE_TPR = 400e3, 200e3
"""Rows a second that a selection by equality and one by a range process in the paper's experiments (§5.1)."""

Order = tuple[int, ...]
"""The conditions of a stream, by their numbers from 0 on, in the order of their evaluation."""


@dataclass(frozen=True)
class ObservedSelections:
    """A stream in the last round, `seconds` long: its rate in rows a second, and the share of rows that each condition
    left of those that it was evaluated for.
    """

    alias: str
    conditions: tuple[Expression, ...]
    rate: float
    shares: tuple[float, ...]
    seconds: float

    @cached_property
    def ordered(self) -> Order:
        """The conditions that are put in order."""
        return ordered_conditions(self.conditions)

    @cached_property
    def orders(self) -> dict[str, Order]:
        """Every order that may be chosen, by its notation."""
        rest = tuple(number for number in range(len(self.conditions)) if number not in self.ordered)
        rest = tuple(sorted(rest, key=lambda number: asks_user(self.conditions[number])))
        return {order_text((*first, *rest)): (*first, *rest) for first in permutations(self.ordered)}


def ordered_conditions(conditions: Sequence[Expression]) -> Order:
    """Return the conditions that are put in order. A user's predicates come last, as they are written."""
    return tuple(number for number, one in enumerate(conditions) if not asks_user(one))[:ORDERED]


def first_order(conditions: Sequence[Expression]) -> Order:
    """Return the order before anything is known: as they are written, a user's predicates last."""
    return tuple(sorted(range(len(conditions)), key=lambda number: asks_user(conditions[number])))


def order_text(order: Order) -> str:
    """Write an order by the numbers of the conditions, from 1 on.

    >>> order_text((1, 0))
    '2 1'
    """
    return " ".join(str(number + 1) for number in order)


def parse_order(text: str) -> Order:
    """Read what `order_text` wrote.

    >>> parse_order("2 1")
    (1, 0)
    """
    return tuple(int(number) - 1 for number in text.split())


def orders_text(orders: Mapping[str, Order]) -> str:
    """Write the orders of a query's conditions, by alias.

    >>> orders_text({"A": (1, 0), "B": (0, 1, 2)})
    'A: 2 1; B: 1 2 3'
    """
    return "; ".join(f"{alias}: {order_text(order)}" for alias, order in orders.items())


@dataclass(frozen=True)
class SelectionCosts:
    """What orders of conditions cost, as factors of the present rate and shares; with `om` by OM's functions (§4.1)."""

    observed: ObservedSelections
    orders: tuple[Order, ...]
    om: OmWeights | None

    def values(self, rates: Mapping[str, Numbers], selectivities: Mapping[str, Numbers]) -> Numbers:
        """Compute what each order costs, a row for each point."""
        given = self.observed
        points = max((len(factors) for factors in (*rates.values(), *selectivities.values())), default=1)
        one = np.ones(points)
        rate = given.rate * rates.get(given.alias, one)
        shares = [
            np.minimum(max(share, LEAST) * selectivities.get(condition.text(), one), 1.0)
            for share, condition in zip(given.shares, given.conditions, strict=True)
        ]
        cost = self._own if self.om is None else self._by_om
        return np.stack([cost(order, rate, shares) for order in self.orders], axis=1)

    def _own(self, order: Order, flow: Numbers, shares: Sequence[Numbers]) -> Numbers:
        found = np.zeros(len(flow))
        for place, number in enumerate(order):
            found = found + flow * _nanoseconds(self.observed.conditions[number])[place > 0]
            flow = flow * shares[number]
        return found

    def _by_om(self, order: Order, flow: Numbers, shares: Sequence[Numbers]) -> Numbers:
        # W is the length of a round: what one execution of the query reads (§3).
        assert self.om is not None
        window, buffered = self.observed.seconds, np.zeros(len(flow))
        for number in order:
            buffered = buffered + input_buffer(flow, window, _tpr(self.observed.conditions[number]))
            flow = flow * shares[number]
            buffered = buffered + flow * window
        # Where nothing comes out the buffers alone count: in the paper that costs infinitely much.
        some = np.where(flow > 0, flow, 1.0)
        return np.where(flow > 0, self.om.w_r / some, 0.0) + self.om.w_m * buffered


def _nanoseconds(condition: Expression) -> tuple[float, float]:
    return STRINGS if reads_strings(condition) else NUMBERS


def _tpr(condition: Expression) -> float:
    return EQUALITY_TPR if isinstance(condition, Call) and condition.function == "eq" else RANGE_TPR


class SelectionChart(ChartPolicy):
    """Evaluates conditions in the order of the region that their selectivities and the stream's rate are in."""

    name = "selections"

    def __init__(self, observed: ObservedSelections) -> None:
        """Make the chart policy of one stream as it was in the last round."""
        self._observed = observed

    def review(self, base: Review, running: Order) -> Review:
        """Return what the policy is shown: all orders with their costs."""
        observed = self._observed
        orders = [order_text(running), *(text for text in observed.orders if text != order_text(running))]
        costs = comparable(self._costs(base, orders).values({}, {})[0]).tolist()
        first, *others = (WeighedPlan(text, cost, cost, cost, cost) for text, cost in zip(orders, costs, strict=True))
        axes = len(observed.ordered) + 1
        most = min(self.option(base, "partitions"), int(REGIONS ** (1 / axes) + LEAST))
        cheapest = tuple(sorted(others, key=lambda one: (one.cost, one.plan)))
        options = {**base.options, "partitions": most}
        return replace(base, running=first, alternatives=cheapest, options=options)

    @override
    def points(self, review: Review) -> tuple[tuple[float, ...], ...]:
        observed = self._observed
        return ((*(max(observed.shares[number], LEAST) for number in observed.ordered), observed.rate),)

    @override
    def dimensions(self, review: Review, points: Sequence[Sequence[float]]) -> tuple[tuple[Axis, ...], ...]:
        observed = self._observed
        shares = (Axis("selectivity", observed.conditions[number].text(), 0.0, 1.0) for number in observed.ordered)
        return ((*shares, Axis("rate", observed.alias, 0.0, AROUND * points[0][-1])),)

    @override
    def weighing(self, review: Review) -> Weighing | None:
        texts = sorted({review.running.plan, *(one.plan for one in review.alternatives)})
        return Weighing(review, texts, self._costs(review, texts))

    def _costs(self, review: Review, texts: Sequence[str]) -> SelectionCosts:
        weights = OmWeights(self.option(review, "w_r"), self.option(review, "w_m"))
        orders = tuple(map(parse_order, texts))
        return SelectionCosts(self._observed, orders, weights if self.word(review, "cost") == OM else None)
