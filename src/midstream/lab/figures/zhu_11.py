"""Zhu Fig. 11: the length of both stages over the input rate of B."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.zhu import SPEED, set_2, stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

FLAT = Claim("The increase of lambda_B has almost no effect on T_PT.", "Zhu §6.2, Fig. 11")
RISES = Claim("When lambda_B increases, T_MS increases as well.", "Zhu §6.2, Fig. 11")
LINEAR = Claim("T_MS is proportional to lambda_B.", "Zhu §6.2, Equation 8")

X, Y = "lambda_B (rows a second)", "stage (ms)"


class Zhu11(Figure):
    """T_MS and T_PT over lambda_B, Table 2 set 2."""

    name: ClassVar[str] = "zhu_11"
    title: ClassVar[str] = "T_MS and T_PT vs. lambda_B"
    paper: ClassVar[str] = "Zhu"
    source: ClassVar[str] = "Zhu §6.2, Fig. 11"
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state", "parallel_track"})
    setting: ClassVar[str] = (
        "Table 2, set 2: W = 1000 ms, a row every 50 ms from A, C and D; I_B falls from 100 ms to 10 ms; reduction "
        f"factors 0.1, 0.05, 0.02; {SPEED:,} comparisons a second."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for inter_arrival in (100, 50, 25, 12.5, 10):
            setting = set_2(inter_arrival)
            for strategy, quick, full in (("moving_state", 16, 100), ("parallel_track", 1, 8)):
                seeds = range(scale.pick(quick, full))
                lengths = [stage(setting, strategy, SPEED, seed, steps=8).length for seed in seeds]
                rows.append({"case": strategy, X: setting.rate("B"), Y: 1000 * float(np.mean(lengths))})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        rate = column(data, X, case="moving_state")
        moving, parallel = (column(data, Y, case=case) for case in ("moving_state", "parallel_track"))
        explained = float(np.corrcoef(rate, moving)[0, 1] ** 2)
        return (
            FLAT.judged(
                parallel.max() / parallel.min() < 1.15,
                f"T_PT is {parallel.min():,.0f} ms to {parallel.max():,.0f} ms while lambda_B grows tenfold",
                "with few tuples of B, an old pair is rarely made late in the first W, so the second W is not used up",
            ),
            RISES.judged(
                bool((np.diff(moving) > 0).all()),
                f"T_MS grows from {moving[0]:.1f} ms to {moving[-1]:.1f} ms",
                "it falls somewhere",
            ),
            LINEAR.judged(
                explained > 0.97,
                f"a line explains {explained:.1%} of the variance; T_MS grows {moving[-1] / moving[0]:.1f} times",
                "the curve bends",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, X, Y, marks=True)
        axes.set_yscale("log")
