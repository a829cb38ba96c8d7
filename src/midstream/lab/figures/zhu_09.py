"""Zhu Fig. 9: the length of the parallel track stage over the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.zhu_costs import t_pt
from midstream.lab.drawing import lines
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.zhu import SPEED, set_1, stage, t_pt_by_lemma

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

LINEAR = Claim("T_PT has a linear relationship with W.", "Zhu §6.2, Fig. 9")
TWICE = Claim("T_PT is statistically equivalent to 2W (Equation 4, h > 1).", "Zhu §6.2, Fig. 9")
ONCE = Claim("Under max ordering W is enough, whatever the height of the plan.", "HybMig §3.5")

ZHU, WATERMARK = "parallel_track", "parallel_track, purge by watermark"
LEMMA, MODEL = "Lemma 2.2, tuple by tuple", "model: Equation 4"


class Zhu09(Figure):
    """T_PT over W, Table 2 set 1."""

    name: ClassVar[str] = "zhu_09"
    title: ClassVar[str] = "T_PT vs. W"
    paper: ClassVar[str] = "Zhu"
    source: ClassVar[str] = "Zhu §6.2, Fig. 9"
    strategies: ClassVar[frozenset[str]] = frozenset({"parallel_track"})
    setting: ClassVar[str] = (
        "Table 2, set 1: four streams, a row every 100 ms each, reduction factors 0.1, 0.05, 0.02; W varies; "
        f"{SPEED:,} comparisons a second, which is enough. A step takes W/20 of the arrivals, which is how exactly the "
        'end of a stage is seen. With purge="zhu" the engine ends the stage by Lemma 2.2, after 2W at most; beside it '
        "the lemma is applied to the same arrivals tuple by tuple. The engine's own rule is to purge by watermark."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for window in scale.pick(quick=(1000, 4000, 7000), full=(1000, 2000, 3000, 4000, 5000, 6000, 7000)):
            setting = set_1(window)
            for case, purge in ((ZHU, "zhu"), (WATERMARK, "watermark")):
                lengths = [
                    stage(setting, "parallel_track", SPEED, seed, purge=purge).length
                    for seed in range(scale.pick(quick=1, full=8))
                ]
                rows.append({"case": case, "W (ms)": window, "T_PT (ms)": 1000 * float(np.mean(lengths))})
            lemma = [t_pt_by_lemma(setting, seed, 2 * setting.seconds) for seed in range(8)]
            rows.append({"case": LEMMA, "W (ms)": window, "T_PT (ms)": 1000 * float(np.mean(lemma))})
            rows.append({"case": MODEL, "W (ms)": window, "T_PT (ms)": t_pt(window, h=3)})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        windows, length = column(data, "W (ms)", case=LEMMA), column(data, "T_PT (ms)", case=LEMMA)
        explained = float(np.corrcoef(windows, length)[0, 1] ** 2)
        ratio, waited, once = (column(data, "T_PT (ms)", case=case) / windows for case in (LEMMA, ZHU, WATERMARK))
        return (
            LINEAR.judged(explained > 0.99, f"a line explains {explained:.2%} of the variance", "the curve bends"),
            TWICE.judged(
                bool((abs(ratio - 2) < 0.2).all()),
                f"by Lemma 2.2 T_PT is {ratio.min():.2f} W to {ratio.max():.2f} W; the engine's stage is "
                f"{waited.min():.2f} W to {waited.max():.2f} W",
                "2W is a bound: it is reached only if new tuples still join old ones at the end of the first W",
            ),
            ONCE.judged(
                bool((once < 1.2).all()),
                f"purged by the watermark, the stage is {once.min():.2f} W to {once.max():.2f} W long",
                "the watermark lags",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        lines(canvas.subplots(), data, "W (ms)", "T_PT (ms)", marks=True)
