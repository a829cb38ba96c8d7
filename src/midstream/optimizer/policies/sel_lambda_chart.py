"""A sel-lambda chart for each stream: the selectivity of its operators, and its arrival rate (OM, 002 §4.4.1).

The paper has the chart for a query over one stream; for joins, where each stream has a chart, it does not say which one
decides. Here a stream's selectivity is that of its joins with those that a condition ties it to, and the chart decides
on whose stream moved farthest since the last round.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.optimizer.charts.chart import Axis
from midstream.optimizer.charts.chart_policy import AROUND, ChartPolicy
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.policies.policy_contract import Review
from midstream.optimizer.statistics import geometric_mean


class SelLambdaChart(ChartPolicy):
    """Runs the plan of the region that the selectivity and rate of the stream are in which moved farthest."""

    name = "sel_lambda_chart"

    @override
    def points(self, review: Review) -> tuple[tuple[float, ...], ...]:
        estimate = Estimate(review.statistics)
        sources = review.statistics.sources
        return tuple((selectivity(estimate, alias), source.rate) for alias, source in sources.items())

    @override
    def dimensions(self, review: Review, points: Sequence[Sequence[float]]) -> tuple[tuple[Axis, ...], ...]:
        pairs = zip(review.statistics.sources, points, strict=True)
        return tuple(
            (Axis("selectivity", alias, 0.0, AROUND * share), Axis("rate", alias, 0.0, AROUND * rate))
            for alias, (share, rate) in pairs
        )


def selectivity(estimate: Estimate, alias: str) -> float:
    """Estimate the share of pairs that join between a source and each that a condition ties it to (geometric mean).

    >>> from midstream.optimizer.statistics import Condition, SourceStatistics, Statistics
    >>> sources = {name: SourceStatistics(rate=1, rows=10, window=10) for name in "AB"}
    >>> live = Statistics(sources, (Condition("hash", frozenset("AB")),), states={frozenset("AB"): 5.0})
    >>> round(selectivity(Estimate(live), "A"), 6)
    0.05
    """
    sources = estimate.statistics.sources
    tied = {other for c in estimate.statistics.conditions if alias in c.sources for other in c.sources - {alias}}
    shares = [
        estimate.rows(frozenset({alias, other})).value / (sources[alias].rows * sources[other].rows)
        for other in sorted(tied)
        if sources[alias].rows and sources[other].rows
    ]
    return geometric_mean(shares) if shares else 1.0
