"""Zhu Fig. 10: the length of the moving state stage over the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.processor import Processor, Switch
from midstream.lab.tidy import column, table
from midstream.lab.zhu import NEW, OLD, SPEED, set_1

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

POLYNOMIAL = Claim("The curve of T_MS indicates a close to polynomial relationship with W.", "Zhu §6.2, Fig. 10")


class Zhu10(Figure):
    """T_MS over W, Table 2 set 1."""

    name: ClassVar[str] = "zhu_10"
    title: ClassVar[str] = "T_MS vs. W"
    paper: ClassVar[str] = "Zhu"
    source: ClassVar[str] = "Zhu §6.2, Fig. 10"
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state"})
    setting: ClassVar[str] = (
        "Table 2, set 1: four streams, a row every 100 ms each, reduction factors 0.1, 0.05, 0.02; W varies. "
        f"{SPEED:,} comparisons a second, T_s = 0. Each point is the mean over several seeds."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for window in (1000, 2000, 3000, 4000, 5000, 6000, 7000):
            setting = set_1(window)
            start = 2 * setting.seconds
            lengths = [
                Processor(SPEED, tick=0.5)
                .play(setting.workload(seed), OLD, start + 1, [Switch(start, NEW, "moving_state")])
                .stage.length
                for seed in range(scale.pick(quick=4, full=40))
            ]
            rows.append({"case": "moving_state", "W (ms)": window, "T_MS (ms)": 1000 * float(np.mean(lengths))})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        window, length = column(data, "W (ms)"), column(data, "T_MS (ms)")
        cubic = np.polynomial.Polynomial.fit(window, length, 3)
        left = 1 - float(((length - cubic(window)) ** 2).sum() / ((length - length.mean()) ** 2).sum())
        growth = float(np.polyfit(np.log(window), np.log(length), 1)[0])
        return (
            POLYNOMIAL.judged(
                left > 0.98 and 1.5 < growth < 3.5,
                f"a cubic explains {left:.1%} of the variance; T_MS grows like W^{growth:.2f}",
                "the curve is no polynomial of low degree",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        lines(canvas.subplots(), data, "W (ms)", "T_MS (ms)", marks=True)
