"""JISC Figs. 7 and 8: what a transition costs from its beginning to the end of parallel track, over the joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import ink, lines, mark_of
from midstream.lab.figure import Figure, Scale
from midstream.lab.jisc_settings import METHODS, STREAMS, JoinChain, switch
from midstream.lab.tidy import column, table
from midstream.lab.trace import Numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

JOINS, OPERATIONS, COMPARISONS = "joins", "operations", "comparisons"
BEST, WORST = "best", "worst"
WINDOW, PAPER_WINDOW = 36, 10_000
"""In rows."""


class TransitionFigure(Figure):
    """A figure of this family: execution time, and JISC's speedup over the others."""

    paper: ClassVar[str] = "JISC"
    strategies: ClassVar[frozenset[str]] = frozenset({"jisc", "parallel_track", "cacq"})
    transition: ClassVar[str]
    setting: ClassVar[str] = (
        f"{STREAMS} The window is {WINDOW} rows, 9 steps (quick: 3 at 100 joins). Both transitions are measured, the "
        "best and the worst; execution time is operations: pairs compared, rows that enter an operator, hops. "
        "CACQ has no migration and runs the same rows; quick stops it at 20 joins, for routing takes long."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for joins in scale.pick(quick=(5, 20, 100), full=(5, 10, 20, 40, 60, 80, 100)):
            chain = JoinChain(joins, WINDOW, steps=3 if joins == 100 and scale is Scale.QUICK else 9)
            begin, windows = chain.seconds, stage(chain) + 1
            for transition, plan in ((BEST, chain.best), (WORST, chain.worst)):
                traces = {case: chain.play(chain.old, windows, [switch(begin, plan, case)]) for case in METHODS}
                if joins <= scale.pick(quick=20, full=100):
                    traces["cacq"] = chain.play(chain.eddy, windows)
                rows += [
                    {
                        "case": case,
                        "transition": transition,
                        JOINS: joins,
                        OPERATIONS: trace.total("work", begin),
                        COMPARISONS: trace.total("comparisons", begin),
                    }
                    for case, trace in traces.items()
                ]
        return table(rows)

    def ratios(self, data: pa.Table, other: str, transition: str, measure: str = OPERATIONS) -> Mapping[int, float]:
        """Divide another case's measure by JISC's, by number of joins."""
        mine = _by_joins(data, "jisc", transition, measure)
        theirs = _by_joins(data, other, transition, measure)
        return {joins: theirs[joins] / mine[joins] for joins in theirs}

    def checks(self, data: pa.Table, transition: str, factor: float) -> tuple[float, int]:
        """Compute how often PT would have to look through the old plan's states to take `factor` times JISC's
        operations.

        Returns also after how many rows each, with the paper's windows.
        """
        joins = max(_by_joins(data, "jisc", transition, OPERATIONS))
        jisc, pt = (_by_joins(data, case, transition, OPERATIONS)[joins] for case in METHODS)
        # Every stream and every join but the topmost holds a window of rows.
        often = (factor * jisc - pt) / (WINDOW * 2 * joins)
        return often, round(2 * JoinChain(joins, PAPER_WINDOW).rows / often)

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2)
        mine = data.filter(pa.array([found == self.transition for found in data.column("transition").to_pylist()]))
        lines(left, mine, JOINS, OPERATIONS, marks=True)
        left.set_yscale("log")
        for other in ("parallel_track", "cacq"):
            found = self.ratios(data, other, self.transition)
            drawn = {"marker": mark_of(other), "color": ink(other)}
            right.plot(list(found), list(found.values()), label=f"{other} / jisc", **drawn)
        right.set_xlabel(JOINS)
        right.set_ylabel("speedup")
        right.set_ylim(0, 2)
        right.legend(frameon=False, fontsize="small")


def stage(chain: JoinChain) -> float:
    """Compute how long PT takes, in windows: 2W and a step (Zhu's purge rule)."""
    return 2 + 1 / chain.steps


def listed(ratios: Mapping[int, float]) -> str:
    """Format the ratios in words."""
    return ", ".join(f"{ratio:.2f} at {joins}" for joins, ratio in ratios.items())


def _by_joins(data: pa.Table, case: str, transition: str, measure: str) -> dict[int, float]:
    joins: Numbers = column(data, JOINS, case=case, transition=transition)
    values: Numbers = column(data, measure, case=case, transition=transition)
    return {int(j): float(v) for j, v in zip(np.asarray(joins), np.asarray(values), strict=True)}
