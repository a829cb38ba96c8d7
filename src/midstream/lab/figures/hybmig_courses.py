"""HybMig Figs. 15 and 16: output rate and overhead over time, by run and by method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines, mark
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.hybmig_settings import METHODS, SMOOTH, SPAN, HybMigTask, Machine
from midstream.lab.tidy import column, table
from midstream.lab.trace import Numbers, Trace

SOURCE = "HybMig §5.1, Fig. 15"
ZERO = Claim("The output rate of MS is zero while it recomputes states (the first 50 of 180 seconds).", SOURCE)
SOARS = Claim("After that, MS processes delayed input and its output rate soars.", SOURCE)
FALLS = Claim("The output rate of PT constantly decreases, reaching zero at w.", SOURCE)
BURST = Claim("A burst after the end of the migration occurs when PT releases the contents of its buffer.", SOURCE)
STEADY = Claim("HybMig has a steady output rate.", SOURCE)
SECOND = Claim("With HybMig no output tuple is delayed more than 1 second.", SOURCE)

TIME, RATE, DELAY, DUE = "time (windows)", "results a second", "greatest delay (s)", "due"
"""`due` is the case of the results as they fall due, whatever the plan."""

EARLY = 0.2
"""In windows: when MS has caught up."""


class HybMig15(Figure):
    """Output rate over time: w = 3, tau = 1, n = 6, to the right-deep plan."""

    name: ClassVar[str] = "hybmig_15"
    title: ClassVar[str] = "output rate over time"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state", "parallel_track", "hybmig"})
    setting: ClassVar[str] = f"{SMOOTH} w = 3, tau = 1, n = 6, to the right-deep plan; a step every half second."

    @override
    def measure(self, scale: Scale) -> pa.Table:
        task = HybMigTask(Machine.smooth(scale), ticks=scale.pick(quick=72, full=180))
        rows = []
        for case, trace in [(DUE, task.undisturbed()), *((name, task.method(name)) for name in METHODS)]:
            ends, greatest = trace.column("end"), trace.column("delay_greatest")
            middles, rate = trace.rate(1.0, max(task.end, float(ends[-1])) + 1.0)
            for middle, found in zip(middles, rate, strict=True):
                if middle > task.start:
                    within = (ends >= middle - 0.5) & (ends < middle + 0.5)
                    rows.append(
                        {
                            "case": case,
                            TIME: (middle - task.start) / task.seconds,
                            RATE: found,
                            DELAY: float(greatest[within].max(initial=0.0)),
                        }
                    )
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        times = {case: column(data, TIME, case=case) for case in (DUE, *METHODS)}
        rates = {case: column(data, RATE, case=case) for case in (DUE, *METHODS)}
        ms, pt, hybmig, due = (rates[case] for case in ("moving_state", "parallel_track", "hybmig", DUE))
        early = times["moving_state"] < EARLY
        quiet = times["moving_state"][np.flatnonzero(ms)[0]]
        missed = due[times[DUE] < quiet].sum()
        soars = ms[early].max() / due[early[: len(due)]].max()
        quarters = [_share(times, rates, "parallel_track", at / 4, (at + 1) / 4) for at in range(4)]
        last = _share(times, rates, "parallel_track", 0.96, 1.0)
        burst = pt[times["parallel_track"] > 1.0].max()
        usual = due[(times[DUE] > 0.9) & (times[DUE] < 1.1)].mean()
        size = min(len(hybmig), len(due))
        unlike = np.abs(np.cumsum(hybmig[:size]) - np.cumsum(due[:size])).max() / due.sum()
        delay = column(data, DELAY, case="hybmig").max()
        return (
            ZERO.judged(
                missed > 0,
                f"no result during the first {quiet:.2f} w (paper: 0.28 w), in which {missed:.0f} fall due",
                "recomputation is over before results are missed",
            ),
            SOARS.judged(
                soars > 1.2,
                f"within {EARLY} w at most {soars:.2f} times the results a second that fall due",
                "a rebuilding costs no more than a few seconds of the load that follows, so little input is delayed",
            ),
            FALLS.judged(
                quarters == sorted(quarters, reverse=True) and last < 0.3,
                f"of the results due in each quarter of w it gives {', '.join(f'{q:.0%}' for q in quarters)}; "
                f"in the last 4 % of w {last:.0%}",
                "the share does not fall",
            ),
            BURST.judged(
                burst > 2 * usual,
                f"{burst:g} results in the second after the end, where {usual:.0f} a second fall due",
                "nothing was held back",
            ),
            STEADY.judged(
                unlike < 0.02,
                f"at any second it has given all results due but {unlike:.2%} of the run's",
                "results lag behind",
            ),
            SECOND.judged(
                delay <= 1.0,
                f"greatest delay {delay:.2f} s, a row's wait for its step included; with MS "
                f"{column(data, DELAY, case='moving_state').max():.2f} s, with PT "
                f"{column(data, DELAY, case='parallel_track').max():.2f} s",
                "the old plan lags",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, TIME, RATE)
        axes.set_yscale("symlog", linthresh=10)
        axes.set_xlim(0, SPAN + 0.1)
        mark(axes, 1.0, "w")


def _share(times: Mapping[str, Numbers], rates: Mapping[str, Numbers], case: str, start: float, end: float) -> float:
    # The share of the results due within a span that a case gives in it.
    given, due = (rates[c][(times[c] > start) & (times[c] <= end)].sum() for c in (case, DUE))
    return float(given / due)


SOURCE_16 = "HybMig §5.1, Fig. 16"
SATURATED = Claim("For MS the system is initially saturated due to the state recomputation.", SOURCE_16)
DROPS = Claim("After that, both memory and CPU cost of MS drop until w.", SOURCE_16)
EARLIER = Claim("The memory of MS starts decreasing earlier than its CPU cost.", SOURCE_16)
GROWS = Claim("The memory and CPU overhead of PT constantly increases until w.", SOURCE_16)
LOWER = Claim("HybMig has a lower overall cost than both algorithms.", SOURCE_16)
ALWAYS = Claim("HybMig outperforms PT at every timestamp.", SOURCE_16)
SUDDEN = Claim("The overhead of HybMig and PT decreases suddenly at w, when the old plan goes.", SOURCE_16)

TIME_16, MEMORY, CPU = "time (windows)", "memory (rows)", "comparisons a second"
QUARTER = 0.25


class HybMig16(Figure):
    """Overhead over time: w = 3, tau = 1, n = 6, to the right-deep plan."""

    name: ClassVar[str] = "hybmig_16"
    title: ClassVar[str] = "overhead over time"
    source: ClassVar[str] = SOURCE_16
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state", "parallel_track", "hybmig"})
    setting: ClassVar[str] = f"{SMOOTH} The runs of Fig. 15; memory at the end, comparisons in the course of a second."

    @override
    def measure(self, scale: Scale) -> pa.Table:
        task = HybMigTask(Machine.smooth(scale), ticks=scale.pick(quick=72, full=180))
        rows = []
        for case in METHODS:
            trace = task.method(case)
            seconds = np.arange(task.start + 1.0, task.end + 0.01)
            memory = trace.level("state_rows", seconds)
            done = np.diff(_done(trace, np.concatenate([[task.start], seconds])))
            for second, held, work in zip(seconds, memory, done, strict=True):
                time = (second - task.start) / task.seconds
                rows.append({"case": case, TIME_16: time, MEMORY: held, CPU: float(work)})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        ms, pt, hybmig = (_Course(data, case) for case in METHODS)
        most, rest = ms.cpu[0], float(np.median(ms.cpu))
        ms_memory, ms_cpu = ms.quarters(ms.memory), ms.quarters(ms.cpu)
        pt_memory, pt_cpu = pt.quarters(pt.memory), pt.quarters(pt.cpu)
        above = [int((hybmig.memory > pt.memory).sum()), int((hybmig.cpu > pt.cpu).sum())]
        return (
            SATURATED.judged(
                most >= ms.cpu.max() and most > 2 * rest,
                f"{most:g} comparisons in the first second, the median second has {rest:g}",
                "the processor is not saturated by the recomputation alone",
            ),
            DROPS.judged(
                _falls(ms_memory) and _falls(ms_cpu),
                f"by quarters of w: memory {_told(ms_memory)}, comparisons a second {_told(ms_cpu)}",
                "while A's rare rows expire faster than the last stream's frequent ones, states grow",
            ),
            EARLIER.judged(
                ms.peak(ms.memory) < ms.peak(ms.cpu),
                f"memory falls from {ms.peak(ms.memory):.2f} w, comparisons from {ms.peak(ms.cpu):.2f} w",
                "the backlog is short",
            ),
            GROWS.judged(
                _falls(pt_memory[::-1]) and _falls(pt_cpu[::-1]),
                f"by quarters of w: memory {_told(pt_memory)}, comparisons a second {_told(pt_cpu)}",
                "memory does; but Zhu's root does not compare new with new (§4.2.2), so the largest part of the "
                "comparisons falls as old rows expire",
            ),
            LOWER.judged(
                all(hybmig.sum(kind) < min(ms.sum(kind), pt.sum(kind)) for kind in ("memory", "cpu")),
                "mean memory and sum of comparisons: "
                + "; ".join(f"{c.case} {c.memory.mean():.4g}, {c.cpu.sum():.4g}" for c in (ms, pt, hybmig)),
                "not in both",
            ),
            ALWAYS.judged(
                above == [0, 0],
                f"of {len(pt.time)} seconds HybMig takes more memory in {above[0]} and more comparisons in {above[1]}",
                "HybMig's new plan takes over at once and joins new rows with old ones, which still have the "
                "distribution that the old plan was made for; PT leaves those to the old plan. HybMig is the cheaper "
                "one once old rows are few",
            ),
            SUDDEN.judged(
                all(c.after() < 0.5 for c in (pt, hybmig)),
                "comparisons after w against the quarter before: "
                + ", ".join(f"{c.case} {c.after():.2f}" for c in (pt, hybmig)),
                "the old plan has little left to do when it goes",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for axes, measure in zip(canvas.subplots(1, 2), (MEMORY, CPU), strict=True):
            lines(axes, data, TIME_16, measure)
            axes.set_yscale("log")
            axes.set_xlim(0, SPAN)
            mark(axes, 1.0, "w")


class _Course:
    """The course of one case."""

    def __init__(self, data: pa.Table, case: str) -> None:
        self.case = case
        self.time = column(data, TIME_16, case=case)
        self.memory: Numbers = column(data, MEMORY, case=case)
        self.cpu: Numbers = column(data, CPU, case=case)

    def sum(self, kind: str) -> float:
        return float(getattr(self, kind).sum())

    def quarters(self, values: Numbers) -> list[float]:
        # Quarters of w.
        spans = [(self.time > at * QUARTER) & (self.time <= (at + 1) * QUARTER) for at in range(4)]
        return [float(values[span].mean()) for span in spans]

    def peak(self, values: Numbers) -> float:
        # When the values are last within 2 % of their greatest.
        return float(self.time[np.flatnonzero(values >= 0.98 * values.max())[-1]])

    def after(self) -> float:
        # Comparisons a second after w, against the last quarter before it.
        return float(self.cpu[self.time > 1.03].mean() / self.cpu[(self.time > 0.75) & (self.time <= 1.0)].mean())


def _done(trace: Trace, seconds: Numbers) -> Numbers:
    # A step does its comparisons evenly between its beginning and its end.
    begin, end = trace.column("begin"), trace.column("end")
    known = np.stack([begin, np.maximum(end, begin + 1e-9)], 1).ravel()
    total = np.cumsum(trace.column("comparisons"))
    sums = np.stack([np.concatenate([[0.0], total[:-1]]), total], 1).ravel()
    found: Numbers = np.interp(seconds, known, sums)
    return found


def _falls(values: list[float]) -> bool:
    return values == sorted(values, reverse=True)


def _told(values: list[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
