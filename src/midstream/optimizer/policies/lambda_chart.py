"""One lambda-lambda chart for a join, a dimension for each stream's arrival rate (OM, 002 §4.4.2, Algorithm 2)."""

from __future__ import annotations

from typing_extensions import override

from midstream.optimizer.charts.chart import Axis
from midstream.optimizer.charts.chart_policy import AROUND, ChartPolicy
from midstream.optimizer.policies.base import Review


class LambdaChart(ChartPolicy):
    """Runs the plan of the region that the streams' rates are in; selectivities are taken to stay as they are."""

    name = "lambda_chart"

    @override
    def points(self, review: Review) -> tuple[tuple[float, ...], ...]:
        return (tuple(source.rate for source in review.statistics.sources.values()),)

    @override
    def dimensions(self, review: Review) -> tuple[tuple[Axis, ...], ...]:
        sources = review.statistics.sources.items()
        return (tuple(Axis("rate", alias, 0.0, AROUND * source.rate) for alias, source in sources),)
