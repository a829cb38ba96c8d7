"""One lambda-lambda chart for a join, a dimension for each stream's arrival rate (OM, 002 §4.4.2, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from midstream.optimizer.charts.chart import Axis
from midstream.optimizer.charts.chart_policy import AROUND, ChartPolicy
from midstream.optimizer.policies.policy_contract import Review


class LambdaChart(ChartPolicy):
    """Runs the plan of the region that the streams' rates are in; selectivities are taken to stay as they are."""

    name = "lambda_chart"

    @override
    def points(self, review: Review) -> tuple[tuple[float, ...], ...]:
        return (tuple(source.rate for source in review.statistics.sources.values()),)

    @override
    def dimensions(self, review: Review, points: Sequence[Sequence[float]]) -> tuple[tuple[Axis, ...], ...]:
        rates = zip(review.statistics.sources, points[0], strict=True)
        return (tuple(Axis("rate", alias, 0.0, AROUND * rate) for alias, rate in rates),)
