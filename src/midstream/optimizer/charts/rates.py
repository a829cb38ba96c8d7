"""What plans cost at other rates and selectivities than those of the present, for many points at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from midstream.optimizer.charts.chart import Numbers
from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Sources
from midstream.plan.tree import Plan


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
