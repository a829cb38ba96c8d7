"""OM Fig. 3(c): fidelity against the granularity of the chart, and how many decisions it takes."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.om_figures import CASE, DRIFTING, FIDELITY, ROUNDS, STREAMS, WIDTHS, OmFigure
from midstream.lab.om_rounds import PAPER, Q1, WEIGHED, Rounds
from midstream.lab.om_streams import real_single
from midstream.lab.tidy import column, table

SOURCE = "OM §5.2, Fig. 3(c)"
GROWS = Claim("The fidelity increases from k = 10 to 40, and then stabilizes.", SOURCE)
SATURATES = Claim("The fidelity saturates around 95 %.", SOURCE)
DECISIONS = Claim("OM makes only 600 decisions, a per-tuple EDDY 300,000 and the modified EDDY 1,500.", "OM §5.2")

PARTITIONS = (2, 4, 6, 8, 10, 15, 20, 30, 40, 50)
SEEDS = (1, 2, 3)
BATCH = 200
"""Tuples for which the modified EDDY decides at once: those of the paper's numbers."""


class Om03C(OmFigure):
    """Mean fidelity by the number of partitions a dimension."""

    name: ClassVar[str] = "om_03_c"
    title: ClassVar[str] = "fidelity against optimization overhead"
    source: ClassVar[str] = SOURCE
    policies: ClassVar[frozenset[str]] = frozenset({"sel_lambda_chart", "eddy"})
    x: ClassVar[str] = "k"
    decided, tuples = "decisions", "tuples"
    setting: ClassVar[str] = (
        STREAMS
        + WIDTHS
        + f"Q1, coefficient of variation {DRIFTING}; the mean of three streams. A chart has k x k regions."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        played = [Rounds(Q1, real_single(ROUNDS, DRIFTING, seed)) for seed in SEEDS]
        arrived = sum(float(rounds.traffic.rates.sum()) for rounds in played) / len(played)
        rows = []
        for k in PARTITIONS if scale is Scale.FULL else PARTITIONS[::2] + PARTITIONS[-2:]:
            charts = [rounds.chart(k) for rounds in played]
            for case in (PAPER, WEIGHED):
                found = [rounds.course(case, chart)[0] for rounds, chart in zip(played, charts, strict=True)]
                mean = sum(course.fidelity for course in found) / len(found)
                rows.append({CASE: case, "k": k, FIDELITY: mean, self.decided: found[0].rounds, self.tuples: arrived})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        found, weighed = self.fidelity(data, PAPER), self.fidelity(data, WEIGHED)
        coarse, fine, finest = found[10], found[40], found[50]
        decisions, tuples = int(column(data, self.decided)[0]), float(column(data, self.tuples)[0])
        return (
            GROWS.judged(
                coarse < fine and abs(finest - fine) < 0.02,
                f"{found[2]:.1%} at k = 2, {coarse:.1%} at 10, {fine:.1%} at 40, {finest:.1%} at 50; with contested "
                f"regions weighed anew {weighed[10]:.1%} at 10",
                "ten partitions a dimension tell the plans apart as well as forty do",
            ),
            SATURATES.judged(fine >= 0.945, f"{fine:.1%} at k = 40", "it stays lower"),
            DECISIONS.judged(
                decisions == 600 and abs(tuples / 300_000 - 1) < 0.05,
                f"{decisions} decisions for {tuples:,.0f} tuples, {tuples / BATCH:,.0f} batches of {BATCH}",
                "other numbers of tuples arrived",
            ),
        )
