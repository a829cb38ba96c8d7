"""Zhu Figs. 9 to 12: how long the stages of parallel track and moving state last."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.zhu_costs import t_ms_left_deep, t_ms_left_deep_as_printed, t_pt
from midstream.lab.drawing import lines
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.trace import Numbers
from midstream.lab.zhu import SPEED, predicted, set_1, set_2, set_3, stage, t_pt_by_lemma

LINEAR = Claim("T_PT has a linear relationship with W.", "Zhu §6.2, Fig. 9")
TWICE = Claim("T_PT is statistically equivalent to 2W (Equation 4, h > 1).", "Zhu §6.2, Fig. 9")
ONCE = Claim("Under max ordering W is enough, whatever the height of the plan.", "HybMig §3.5")

ZHU, WATERMARK = "parallel_track", "parallel_track, purge by watermark"
LEMMA, MODEL = "Lemma 2.2, tuple by tuple", "model: Equation 4"

LAG = 500
"""Milliseconds by which a watermark may lag: five times what passes between two rows of a stream."""


class Zhu09(Figure):
    """T_PT over W, Table 2 set 1."""

    name: ClassVar[str] = "zhu_09"
    title: ClassVar[str] = "T_PT vs. W"
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
        beyond = (once - 1) * windows
        return (
            LINEAR.judged(explained > 0.99, f"a line explains {explained:.2%} of the variance", "the curve bends"),
            TWICE.judged(
                bool((abs(ratio - 2) < 0.2).all()),
                f"by Lemma 2.2 T_PT is {ratio.min():.2f} W to {ratio.max():.2f} W; the engine's stage is "
                f"{waited.min():.2f} W to {waited.max():.2f} W",
                "2W is a bound: it is reached only if new tuples still join old ones at the end of the first W",
            ),
            ONCE.judged(
                bool((beyond < LAG).all()),
                f"purged by the watermark, the stage is {once.min():.2f} W to {once.max():.2f} W long, W and "
                f"{beyond.min():.0f} to {beyond.max():.0f} ms: the watermark waits for a row of every stream",
                f"it takes {LAG} ms more than W, or longer",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        lines(canvas.subplots(), data, "W (ms)", "T_PT (ms)", marks=True)


POLYNOMIAL = Claim("The curve of T_MS indicates a close to polynomial relationship with W.", "Zhu §6.2, Fig. 10")
CONFIRMED = Claim("The results confirm the analytical model (Equation 8).", "Zhu §6.2 and §8")

MEASURED, PRINTED, RIGHT = "moving_state", "model: Equation 8 as printed", "model, put right"


class Zhu10(Figure):
    """T_MS over W, Table 2 set 1."""

    name: ClassVar[str] = "zhu_10"
    title: ClassVar[str] = "T_MS vs. W"
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


FLAT = Claim("The increase of lambda_B has almost no effect on T_PT.", "Zhu §6.2, Fig. 11")
RISES = Claim("When lambda_B increases, T_MS increases as well.", "Zhu §6.2, Fig. 11")
LINEAR_11 = Claim("T_MS is proportional to lambda_B.", "Zhu §6.2, Equation 8")

X, Y = "lambda_B (rows a second)", "stage (ms)"


class Zhu11(Figure):
    """T_MS and T_PT over lambda_B, Table 2 set 2."""

    name: ClassVar[str] = "zhu_11"
    title: ClassVar[str] = "T_MS and T_PT vs. lambda_B"
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
            LINEAR_11.judged(
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


SMALL = Claim("At small windows the moving state strategy migrates faster.", "Zhu §6.2, Fig. 12")
TWICE_12 = Claim("The parallel track migration time increases linearly and stays at about 2W.", "Zhu §6.2, Fig. 12")
OVERTAKES = Claim(
    "After a certain window size, parallel track surpasses moving state and becomes the faster one.",
    "Zhu §6.2, Fig. 12",
)

POWER = 60_000
MS, PT, STREAMS, MODEL_12 = "moving_state", "parallel_track", "parallel_track, in the streams' time", "model: 2W"


class Zhu12(Figure):
    """T_MS and T_PT over W, Table 2 set 3."""

    name: ClassVar[str] = "zhu_12"
    title: ClassVar[str] = "comparison of T_MS and T_PT vs. W"
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
                (MODEL_12, t_pt(setting.seconds, h=3)),
            ):
                rows.append({"case": case, "W (ms)": window, "stage (s)": seconds})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        window = column(data, "W (ms)", case=MS)
        moving, parallel, arrived = (column(data, "stage (s)", case=case) for case in (MS, PT, STREAMS))
        twice = parallel / column(data, "stage (s)", case=MODEL_12)
        return (
            SMALL.judged(
                bool(moving[0] < parallel[0]),
                f"at W = {window[0]} ms T_MS is {moving[0]:.3f} s and T_PT {parallel[0]:.3f} s",
                "recomputing takes longer than 2W",
            ),
            TWICE_12.judged(
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
