"""Zhu Fig. 10: the length of the moving state stage over the window."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.zhu_costs import t_ms_left_deep, t_ms_left_deep_as_printed
from midstream.lab.drawing import lines
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.zhu import SPEED, predicted, set_1, stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

POLYNOMIAL = Claim("The curve of T_MS indicates a close to polynomial relationship with W.", "Zhu §6.2, Fig. 10")
CONFIRMED = Claim("The results confirm the analytical model (Equation 8).", "Zhu §6.2 and §8")

MEASURED, PRINTED, RIGHT = "moving_state", "model: Equation 8 as printed", "model, put right"


class Zhu10(Figure):
    """T_MS over W, Table 2 set 1."""

    name: ClassVar[str] = "zhu_10"
    title: ClassVar[str] = "T_MS vs. W"
    paper: ClassVar[str] = "Zhu"
    source: ClassVar[str] = "Zhu §6.2, Fig. 10"
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state"})
    setting: ClassVar[str] = (
        "Table 2, set 1: four streams, a row every 100 ms each, reduction factors 0.1, 0.05, 0.02; W varies; "
        f"{SPEED:,} comparisons a second, so T_j = {1e6 / SPEED:g} µs; T_s = 0. Each point is the mean over seeds."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for window in (1000, 2000, 3000, 4000, 5000, 6000, 7000):
            setting = set_1(window)
            lengths = [
                stage(setting, "moving_state", SPEED, seed).length for seed in range(scale.pick(quick=16, full=100))
            ]
            for case, seconds in (
                (MEASURED, float(np.mean(lengths))),
                (PRINTED, predicted(t_ms_left_deep_as_printed, setting, SPEED)),
                (RIGHT, predicted(t_ms_left_deep, setting, SPEED)),
            ):
                rows.append({"case": case, "W (ms)": window, "T_MS (ms)": 1000 * seconds})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        window, length = column(data, "W (ms)", case=MEASURED), column(data, "T_MS (ms)", case=MEASURED)
        cubic = np.polynomial.Polynomial.fit(window, length, 3)
        left = float(((length - cubic(window)) ** 2).sum() / ((length - length.mean()) ** 2).sum())
        growth = float(np.polyfit(np.log(window), np.log(length), 1)[0])
        printed, right = (column(data, "T_MS (ms)", case=case) / length for case in (PRINTED, RIGHT))
        return (
            POLYNOMIAL.judged(
                left < 0.02 and 1.5 < growth < 3.5,
                f"a cubic explains {1 - left:.1%} of the variance; T_MS grows like W^{growth:.2f}",
                "the curve is not a polynomial of low degree",
            ),
            CONFIRMED.judged(
                bool((abs(printed - 1) < 0.25).all()),
                f"Equation 8 is {printed.min():.2f} to {printed.max():.2f} times what was measured; put right, it is "
                f"{right.min():.2f} times at W = {window[0]} ms and {right[-1]:.2f} times at W = {window[-1]} ms",
                "Equation 8 takes lambda_BC W tuples for the state S_BC. But a pair does not live for W after it was "
                "made: it dies with its older component. By the text's own Equation 1 the state holds |S_B||S_C| "
                "sigma_BC tuples, half as many, so the cubic term is counted twice. What is left after that is the "
                "engine's: it purges by watermark, some 200 ms later than W here, which shows at small windows",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        lines(canvas.subplots(), data, "W (ms)", "T_MS (ms)", marks=True)
