"""JISC §6.3 on STAIRs: output latency with eager and with on-demand promotion. Described in the text of Fig. 10."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.figures.jisc_10 import JOINS, LATENCY, WINDOW, latency
from midstream.lab.jisc_settings import STREAMS, JoinChain
from midstream.lab.tidy import column, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

SIMILAR = Claim(
    "Similar performance figures can be obtained for the output latency of STAIRs, as it applies a greedy state "
    "migration policy.",
    "JISC §6.3",
)
AMORTIZED = Claim(
    "With JISC the cost of the Promote and Demote operations is amortized by performing them on demand.", "JISC §4.6"
)

PLANS = {"moving_state": "{}", "stairs": "stairs({})", "jisc_stairs": "stairs({})"}


class Jisc10Stairs(Figure):
    """Comparisons from the transition to the first result, over the window, between STAIRs."""

    name: ClassVar[str] = "jisc_10_stairs"
    title: ClassVar[str] = "output latency of STAIRs"
    paper: ClassVar[str] = "JISC"
    source: ClassVar[str] = "JISC §6.3"
    strategies: ClassVar[frozenset[str]] = frozenset({"stairs", "jisc_stairs"})
    setting: ClassVar[str] = (
        f"{STREAMS} {JOINS} hash joins, the worst transition, between the same trees as in Fig. 10: moving_state "
        "between plans, stairs and jisc_stairs between eddies whose join state is kept. Latency as in Fig. 10. The "
        "paper only describes it."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for window in scale.pick(quick=(100, 1000, 10_000), full=(100, 1000, 10_000, 100_000)):
            for case, form in PLANS.items():
                compared, results = latency(JoinChain(JOINS, window, steps=4), case, form)
                rows.append({"case": case, WINDOW: window, LATENCY: compared, "results": results})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        moving, eager, lazy = (column(data, LATENCY, case=case) for case in PLANS)
        return (
            SIMILAR.judged(
                bool(np.allclose(eager, moving, rtol=0.1)),
                f"stairs: {listed(eager)} comparisons; moving_state: {listed(moving)}",
                "eddies promote more or less than a plan's states",
            ),
            AMORTIZED.judged(
                bool(eager[-1] > 50 * lazy[-1]),
                f"until the first results jisc_stairs compares {listed(lazy)} pairs, stairs {listed(eager)}",
                "the first rows already demand much of the states",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, WINDOW, LATENCY, marks=True)
        axes.set_xscale("log")
        axes.set_yscale("log")


def listed(values: np.ndarray) -> str:
    """Format numbers as a list."""
    return ", ".join(f"{value:,.0f}" for value in values)
