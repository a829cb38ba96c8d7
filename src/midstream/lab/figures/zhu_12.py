"""Zhu Fig. 12: moving state against parallel track over the window, at high rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.zhu_costs import t_pt
from midstream.lab.drawing import lines
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.trace import Numbers
from midstream.lab.zhu import set_3, stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

SMALL = Claim("At small windows the moving state strategy migrates faster.", "Zhu §6.2, Fig. 12")
TWICE = Claim("The parallel track migration time increases linearly and stays at about 2W.", "Zhu §6.2, Fig. 12")
OVERTAKES = Claim(
    "After a certain window size, parallel track surpasses moving state and becomes the faster one.",
    "Zhu §6.2, Fig. 12",
)

POWER = 60_000
MS, PT, STREAMS, MODEL = "moving_state", "parallel_track", "parallel_track, in the streams' time", "model: 2W"


class Zhu12(Figure):
    """T_MS and T_PT over W, Table 2 set 3."""

    name: ClassVar[str] = "zhu_12"
    title: ClassVar[str] = "comparison of T_MS and T_PT vs. W"
    paper: ClassVar[str] = "Zhu"
    source: ClassVar[str] = "Zhu §6.2, Fig. 12"
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state", "parallel_track"})
    setting: ClassVar[str] = (
        "Table 2, set 3: a row of A every 100 ms, of B, C and D every 12 ms, reduction factors 0.1; W varies; "
        f"{POWER:,} comparisons a second from the beginning of the stage on, enough for small windows and not for "
        "large ones. *In the streams' time* a stage is as long as the arrivals that it took."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for window in scale.pick(quick=(125, 250, 500, 1000, 1500), full=(125, 250, 500, 750, 1000, 1250, 1500, 2000)):
            setting = set_3(window)
            moving = [stage(setting, MS, POWER, seed).length for seed in range(scale.pick(quick=6, full=40))]
            # Small windows need more runs, for a stage's end waits for a row of every stream, and cost less.
            seeds = range(4 if window <= 500 else scale.pick(quick=1, full=3))
            parallel = [stage(setting, PT, POWER, seed, steps=10) for seed in seeds]
            for case, seconds in (
                (MS, float(np.mean(moving))),
                (PT, float(np.mean([found.length for found in parallel]))),
                (STREAMS, float(np.mean([found.arrivals for found in parallel]))),
                (MODEL, t_pt(setting.seconds, h=3)),
            ):
                rows.append({"case": case, "W (ms)": window, "stage (s)": seconds})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        window = column(data, "W (ms)", case=MS)
        moving, parallel, arrived = (column(data, "stage (s)", case=case) for case in (MS, PT, STREAMS))
        twice = parallel / column(data, "stage (s)", case=MODEL)
        return (
            SMALL.judged(
                bool(moving[0] < parallel[0]),
                f"at W = {window[0]} ms T_MS is {moving[0]:.3f} s and T_PT {parallel[0]:.3f} s",
                "recomputing takes longer than 2W",
            ),
            TWICE.judged(
                bool((twice < 1.2).all()),
                f"at W = {listed(window, ',.0f')} ms T_PT is {listed(twice, '.2g')} times 2W; in the streams' time it "
                f"is {listed(1000 * arrived / window, '.2g')} W",
                "the stage needs 2W of arrivals and then a row of every stream, and those of A are far between; from "
                "some window on the processor needs more than 2W for what both plans do with so many",
            ),
            OVERTAKES.judged(
                bool((parallel < moving).any()),
                f"at W = {window[-1]} ms T_MS is {moving[-1]:.1f} s and T_PT {parallel[-1]:.1f} s; in the streams' "
                f"time parallel track took {arrived[-1]:.1f} s of arrivals",
                "recomputing a state costs |L||R| comparisons. The new plan's own join costs 2|L||R| in every W, and "
                "|L||R| in the first W from empty states: a processor that keeps up with the new plan recomputes its "
                "states within W/2, and parallel track does three times moving state's work within its 2W, the old "
                "plan's not counted. So T_MS comes to 2W only on a processor that is too slow for the new plan, and "
                "there T_PT is no longer 2W, unless the stage is measured in the streams' time, where the curves cross",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, "W (ms)", "stage (s)", marks=True)
        axes.set_yscale("log")


def listed(numbers: Numbers, form: str) -> str:
    """Format numbers as a list in words."""
    return ", ".join(f"{number:{form}}" for number in numbers)
