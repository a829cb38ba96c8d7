"""What plans cost at other rates and selectivities than those of the present, for many points at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from midstream.optimizer.charts.chart import Numbers
from midstream.optimizer.cost.om import JOIN_TPR, OmWeights, left_deep_costs
from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Sources
from midstream.plan.tree import Join, Leaf, Plan


@dataclass(frozen=True)
class CostAtRates:
    """What plans cost as a function of each source's rate and selectivity, as factors of the present ones.

    With f times the rows of a source, all that is made of them is f times as much; with s times its matches so is what
    a join has made of it. So a plan's cost is a sum of products, one for each set of sources, and the selectivity of
    joins is taken to be the same at any rate (OM §4.4.2).
    """

    aliases: tuple[str, ...]
    plans: tuple[Plan, ...]
    terms: tuple[Mapping[tuple[Sources, Sources], float], ...]

    @staticmethod
    def of(plans: Sequence[Plan], estimate: Estimate, cost: CostModel) -> CostAtRates:
        """Derive the cost functions of some plans from live figures."""
        terms = tuple(_products(plan, estimate, cost) for plan in plans)
        return CostAtRates(tuple(estimate.statistics.sources), tuple(plans), terms)

    def values(self, rates: Mapping[str, Numbers], selectivities: Mapping[str, Numbers]) -> Numbers:
        """Compute what each plan costs, a row for each point; sources that are not named stay as they are."""
        points = max((len(factors) for factors in (*rates.values(), *selectivities.values())), default=1)
        found = np.zeros((points, len(self.plans)))
        for column, terms in enumerate(self.terms):
            for (rows, joined), coefficient in terms.items():
                value = np.full(points, coefficient)
                for alias in sorted(rows & rates.keys()):
                    value = value * rates[alias]
                for alias in sorted(joined & selectivities.keys()):
                    value = value * selectivities[alias]
                found[:, column] += value
        return found


def _products(plan: Plan, estimate: Estimate, cost: CostModel) -> dict[tuple[Sources, Sources], float]:
    # Costs by the sources whose rows and whose matches each part is proportional to.
    found: dict[tuple[Sources, Sources], float] = {}
    for join in cost.joins(plan, estimate):
        joined = join.sources if len(join.sources) > 1 else frozenset()
        parts = [(share.rows, share.joined, cost.weights.work * share.nanoseconds) for share in join.shares]
        for rows, matched, value in (*parts, (join.sources, joined, cost.weights.memory * join.memory)):
            found[rows, matched] = found.get((rows, matched), 0.0) + value
    return found


@dataclass(frozen=True)
class OmAtRates:
    """What left-deep plans cost by OM's functions (§4.1), as factors of the present rates and selectivities.

    `orders` has the sources of each plan, `shares` the pairs that match at each of its joins, `rates` rows a second. A
    join processes as many rows a second as in the paper's experiments. Differs where nothing comes out, which costs
    infinitely much in the paper: there the buffers alone count.
    """

    rates: Mapping[str, float]
    orders: tuple[tuple[str, ...], ...]
    shares: tuple[tuple[float, ...], ...]
    window: float
    weights: OmWeights

    @staticmethod
    def of(orders: Sequence[tuple[str, ...]], estimate: Estimate, weights: OmWeights) -> OmAtRates:
        """Derive the cost functions of left-deep plans, by their orders of sources, from live figures."""
        statistics = estimate.statistics
        rates = {alias: source.rate for alias, source in statistics.sources.items()}
        shares = tuple(tuple(_matches(estimate, order)) for order in orders)
        return OmAtRates(rates, tuple(orders), shares, statistics.window, weights)

    def values(self, rates: Mapping[str, Numbers], selectivities: Mapping[str, Numbers]) -> Numbers:
        """Compute what each plan costs, a row for each point; sources that are not named stay as they are."""
        points = max((len(factors) for factors in (*rates.values(), *selectivities.values())), default=1)
        one = np.ones(points)
        flows = {alias: rate * rates.get(alias, one) for alias, rate in self.rates.items()}
        found = np.zeros((points, len(self.orders)))
        for column, (order, shares) in enumerate(zip(self.orders, self.shares, strict=True)):
            matches = [share * selectivities.get(alias, one) for share, alias in zip(shares, order[1:], strict=True)]
            matches[0] = matches[0] * selectivities.get(order[0], one)
            c_r, c_m = left_deep_costs([flows[alias] for alias in order], matches, self.window, JOIN_TPR)
            some = np.where(c_r > 0, c_r, 1.0)
            found[:, column] = np.where(c_r > 0, self.weights.w_r / some, 0.0) + self.weights.w_m * c_m
        return found


def left_deep_order_of(plan: Plan) -> tuple[str, ...] | None:
    """Return the order in which a tree joins its sources one by one; None where it is no such tree.

    >>> left_deep_order_of(Join(Leaf("A"), Join(Leaf("B"), Leaf("C")))), left_deep_order_of(Leaf("A"))
    (('B', 'C', 'A'), ('A',))
    """
    match plan:
        case Leaf():
            return plan.aliases()
        case Join(rest, Leaf() as last) | Join(Leaf() as last, rest):
            order = left_deep_order_of(rest)
            return None if order is None else (*order, *last.aliases())
    return None


def _matches(estimate: Estimate, order: Sequence[str]) -> Iterator[float]:
    # The share of pairs that match, of what is joined already and the next source.
    for place in range(1, len(order)):
        left, right = frozenset(order[:place]), frozenset({order[place]})
        pairs = estimate.rows(left).value * estimate.rows(right).value
        yield min(estimate.rows(left | right).value / pairs, 1.0) if pairs else 0.0
