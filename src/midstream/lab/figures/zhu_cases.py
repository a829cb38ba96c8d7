"""Zhu Figs. 13 to 16: the cases beside each other over time, as intermediate tuples and as output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute
from typing_extensions import override

from midstream.lab.drawing import lines, mark
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.tidy import cases, column, table
from midstream.lab.trace import Numbers, Trace
from midstream.lab.zhu import DRAINED, HIGH, LOW, MIGRATED, ZhuSetting, all_cases

POWER = 40_000
"""Comparisons a second, in both sets: plenty for the low configuration, too little for the high one's old plan."""

SLOW, SLOW_UNTIL = 4_000, 16.0
"""Comparisons a second that are too few for the high configuration's new plan, too, and the seconds of arrivals."""

SPEED = "comparisons a second"
TIME, INTERMEDIATE, RATE = "time (s)", "intermediate tuples", "results a second"
STAGE_BEGINS, STAGE_ENDS, RUN_ENDS = "stage begins (s)", "stage ends (s)", "run ends (s)"
BIN = 1.0


@dataclass(frozen=True)
class Conditions:
    """Settings of a set of §6.3: a column of Table 2, the seconds of a step, and the streams' length at each scale.

    With `slow` it runs on the processor `SLOW`, too.
    """

    setting: ZhuSetting
    tick: float
    quick: float
    full: float
    slow: bool = False

    def traces(self, scale: Scale) -> Iterator[tuple[int, str, Trace]]:
        """Run every case: comparisons a second, name, trace."""
        for speed, until in ((POWER, scale.pick(self.quick, self.full)), (SLOW, SLOW_UNTIL))[: 1 + self.slow]:
            for case, trace in all_cases(self.setting, speed, self.tick, until).items():
                yield speed, case, trace


class CasesFigure(Figure):
    """One of the four figures: both figures of a set rest on the same runs and draw another column."""

    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state", "parallel_track"})
    conditions: ClassVar[Conditions]
    drawn: ClassVar[str]

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for speed, case, trace in self.conditions.traces(scale):
            seconds, rates = trace.rate(BIN, np.ceil(trace.steps[-1].end))
            counts = trace.level("intermediate_rows", seconds)
            rows += [
                {
                    "case": case,
                    SPEED: speed,
                    TIME: float(second),
                    INTERMEDIATE: int(count),
                    RATE: float(rate),
                    STAGE_BEGINS: trace.stages[0].began if trace.stages else None,
                    STAGE_ENDS: trace.stages[0].ended if trace.stages else None,
                    RUN_ENDS: trace.steps[-1].end,
                }
                for second, count, rate in zip(seconds, counts, rates, strict=True)
            ]
        return table(rows)

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        speeds = cases(data, SPEED)
        for axes, speed in zip(canvas.subplots(1, len(speeds), squeeze=False).flat, speeds, strict=True):
            lines(axes, data.filter(pa.compute.equal(data[SPEED], speed)), TIME, self.drawn)
            mark(axes, MIGRATED)
            axes.set_title(f"{speed:,} {SPEED}" if len(speeds) > 1 else "", fontsize="small")


@dataclass(frozen=True)
class Course:
    """A case's lines, when its migration began and ended, and when its run did."""

    seconds: Numbers
    intermediate: Numbers
    rate: Numbers
    stage_begins: float
    stage_ends: float
    run_ends: float

    def within(self, line: Numbers, since: float, until: float) -> Numbers:
        """Select the part of a line within a span."""
        return line[(self.seconds >= since) & (self.seconds < until)]

    def while_migrating(self, other: Course) -> float:
        """Average the intermediate tuples over the migration of another case."""
        return float(self.within(self.intermediate, MIGRATED, other.stage_ends).mean())


def courses(data: pa.Table, speed: int = POWER) -> dict[str, Course]:
    """Read the cases on a processor: `new`, `old`, `moving_state`, `parallel_track` and `DRAINED`."""
    found = {}
    for case in cases(data, "case"):
        at = {"case": case, SPEED: speed}
        time, intermediate, rate = (column(data, name, **at) for name in (TIME, INTERMEDIATE, RATE))
        begins, ends, run = (float(column(data, name, **at)[0]) for name in (STAGE_BEGINS, STAGE_ENDS, RUN_ENDS))
        found[case] = Course(time, intermediate, rate, begins, ends, run)
    return found


CASES = ("new", "old", "moving_state", "parallel_track", DRAINED)

SMALLER = Claim(
    "The new plan has a much smaller intermediate tuple count than the old plan throughout.", "Zhu §6.3, Fig. 13"
)
OVERLAP = Claim("During the first 10,000 ms the other three lines overlap.", "Zhu §6.3, Fig. 13")
EARLIER = Claim(
    "Moving state comes to the new plan's intermediate tuple count earlier than parallel track.", "Zhu §6.3, Fig. 13"
)
SAME = Claim("Both strategies eventually have the count of the new plan alone.", "Zhu §6.3, Fig. 13")


class Zhu13(CasesFigure):
    """Intermediate tuples over time, low configuration."""

    name: ClassVar[str] = "zhu_13"
    title: ClassVar[str] = "intermediate tuple counts, low configuration"
    source: ClassVar[str] = "Zhu §6.3, Fig. 13"
    conditions: ClassVar[Conditions] = Conditions(LOW, tick=0.1, quick=20, full=50)
    drawn: ClassVar[str] = INTERMEDIATE
    setting: ClassVar[str] = (
        "Table 2, §6.3 set 1: W = 1000 ms, a row every 100 ms from each stream, reduction factors 0.1, 0.02, 0.02; "
        f"{POWER:,} comparisons a second. Counted are the living combinations of two or three streams in all states, "
        "at the middle of each second."
    )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        lines = courses(data)
        new, old, moving, parallel, _ = (lines[case] for case in CASES)
        ratio = new.intermediate.mean() / old.intermediate.mean()
        throughout = float((new.intermediate <= old.intermediate).mean())
        before = [line.within(line.intermediate, 0, MIGRATED) for line in (old, moving, parallel)]
        apart = max(float(abs(other - before[0]).max()) for other in before[1:])
        since = [joins(line, new) for line in (moving, parallel)]
        return (
            SMALLER.judged(
                bool(ratio < 0.5 and throughout > 0.9),
                f"{ratio:.0%} of the old plan's on average, and not above it in {throughout:.0%} of the seconds",
                "the reduction factors are too alike",
            ),
            OVERLAP.judged(apart == 0, f"they differ by at most {apart:.0f} tuples", "the runs are not alike"),
            EARLIER.judged(
                since[0] < since[1],
                f"moving state from {since[0]:.1f} s on, parallel track from {since[1]:.1f} s on",
                "parallel track's empty new plan is filled, and its old plan gone, as soon as moving state is done",
            ),
            SAME.judged(
                bool(np.isfinite(since).all()),
                "in every second from then on the counts are equal",
                "the counts differ at the end",
            ),
        )


def joins(line: Course, other: Course) -> float:
    """Find the first second after the migration's begin from which on both counts are equal."""
    unequal: Numbers = line.seconds[(line.intermediate != other.intermediate) & (line.seconds >= MIGRATED)]
    later = line.seconds[line.seconds > unequal.max(initial=MIGRATED)]
    return float(later[0]) if len(later) else float("inf")


NEITHER = Claim("No strong advantage in output rate can be observed for either strategy.", "Zhu §6.3, Fig. 14")
NEGLECTED = Claim("Moving state's output silence is short enough to be neglected.", "Zhu §6.3, Fig. 14")

SETTLED = 5.0
"""Seconds after which both migrations are long over."""


class Zhu14(CasesFigure):
    """Output rate over time, low configuration."""

    name: ClassVar[str] = "zhu_14"
    title: ClassVar[str] = "output rate, low configuration"
    source: ClassVar[str] = "Zhu §6.3, Fig. 14"
    conditions: ClassVar[Conditions] = Conditions(LOW, tick=0.1, quick=20, full=50)
    drawn: ClassVar[str] = RATE
    setting: ClassVar[str] = (
        f"As Fig. 13: Table 2, §6.3 set 1, {POWER:,} comparisons a second; results in each second of virtual time. "
        "Parallel track holds the new plan's results until the old plan is gone, as in the paper."
    )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        lines = courses(data)
        moving, parallel = lines["moving_state"], lines["parallel_track"]
        during = [line.within(line.rate, MIGRATED, MIGRATED + SETTLED).sum() for line in (moving, parallel)]
        stage = 1000 * (moving.stage_ends - moving.stage_begins)
        return (
            NEITHER.judged(
                abs(during[0] - during[1]) <= 0.1 * during[0],
                f"in the {SETTLED:.0f} s from the migration on, moving state gives {during[0]:.0f} results, parallel "
                f"track {during[1]:.0f}",
                "the results that parallel track holds back are not out yet",
            ),
            NEGLECTED.judged(stage < 100, f"the stage lasts {stage:.1f} ms", "it lasts longer than a step"),
        )


DRAMATIC = Claim(
    "The new plan and both migrated ones outperform the old plan dramatically.", "Zhu §6.3, Figs. 15 and 16"
)
FEWER = Claim(
    "Parallel track has a smaller intermediate tuple count than moving state during the migration stage.",
    "Zhu §6.3, Fig. 15",
)
SHORTER = Claim(
    "The total time for the migration stage is smaller for moving state, which ends the overall execution earlier.",
    "Zhu §6.3, Fig. 15",
)


class Zhu15(CasesFigure):
    """Intermediate tuples over time, high configuration."""

    name: ClassVar[str] = "zhu_15"
    title: ClassVar[str] = "intermediate tuple counts, high configuration"
    source: ClassVar[str] = "Zhu §6.3, Fig. 15"
    conditions: ClassVar[Conditions] = Conditions(HIGH, tick=0.2, quick=24, full=50, slow=True)
    drawn: ClassVar[str] = INTERMEDIATE
    setting: ClassVar[str] = (
        "Table 2, §6.3 set 2: W = 2000 ms, a row every 50 ms from each stream, reduction factors 0.2, 0.05, 0.05; "
        f"{POWER:,} comparisons a second, about half of what the old plan needs; {SLOW_UNTIL:.0f} s of arrivals also "
        f"at {SLOW:,}, a fifth of what the new plan needs. Counted as in Fig. 13. A run ends when every arrival is "
        f"processed. `{DRAINED}` is Algorithm 2: the old plan first processes what has arrived by then. The engine's "
        "moving state does not."
    )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        lines = courses(data)
        new, old, moving, parallel, drained = (lines[case] for case in CASES)
        faster = [old.run_ends / line.run_ends for line in (new, moving, parallel)]
        counts = [
            [on[case].while_migrating(on["parallel_track"]) for case in ("parallel_track", DRAINED, "moving_state")]
            for on in (lines, courses(data, SLOW))
        ]
        return (
            DRAMATIC.judged(
                min(faster) > 1.5,
                f"the old plan ends after {old.run_ends:.0f} s; the new plan {faster[0]:.1f} times, moving state "
                f"{faster[1]:.1f} times and parallel track {faster[2]:.1f} times earlier",
                "parallel track runs both plans on the queue that the old one left behind, so it first falls further "
                "back before it can catch up",
            ),
            FEWER.judged(
                all(count < min(others) for count, *others in counts),
                "intermediate tuples while parallel track migrates: "
                + "; ".join(
                    f"{count:,.0f} on average at {speed:,} comparisons a second, moving state {drain:,.0f} (undrained "
                    f"{undrained:,.0f})"
                    for speed, (count, drain, undrained) in zip((POWER, SLOW), counts, strict=True)
                ),
                "parallel track holds the states of both plans. Moving state has those of the old plan while that "
                "processes the accumulated tuples, and then those of the new one",
            ),
            SHORTER.judged(
                drained.stage_ends < parallel.stage_ends and drained.run_ends <= parallel.run_ends,
                f"moving state's stage ends at {drained.stage_ends:.1f} s, parallel track's at "
                f"{parallel.stage_ends:.1f} s, the runs at {drained.run_ends:.1f} s and {parallel.run_ends:.1f} s; "
                f"undrained, moving state's stage ends at {moving.stage_ends:.1f} s and its run at "
                f"{moving.run_ends:.1f} s",
                "moving state first has the old plan process the accumulated tuples (§4.1.3), for which that one is "
                "too slow. The claim holds of a moving state that does not, as the engine's: base rows outlive all "
                "that could join them, so tuples in the queue may count as new",
            ),
        )


HIGHER = Claim(
    "Parallel track has a higher output rate than moving state at the initial stage of migration.", "Zhu §6.3, Fig. 16"
)
SILENCE = Claim(
    "There is a noticeable output silence between 10,000 ms and 20,000 ms for moving state.", "Zhu §6.3, Fig. 16"
)
SILENT = 10.0
"""The seconds of silence in Fig. 16."""
GENERATED = Claim("Parallel track generates output while the migration is ongoing.", "Zhu §6.3, Fig. 16")


class Zhu16(CasesFigure):
    """Output rate over time, high configuration."""

    name: ClassVar[str] = "zhu_16"
    title: ClassVar[str] = "output rate, high configuration"
    source: ClassVar[str] = "Zhu §6.3, Fig. 16"
    conditions: ClassVar[Conditions] = Conditions(HIGH, tick=0.2, quick=24, full=50, slow=True)
    drawn: ClassVar[str] = RATE
    setting: ClassVar[str] = (
        "The runs of Fig. 15: Table 2, §6.3 set 2; results in each second of virtual time. "
        "Parallel track holds the new plan's results until the old plan is gone, as in the paper."
    )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        lines, slow = courses(data), courses(data, SLOW)
        moving, parallel, drained = (lines[case] for case in ("moving_state", "parallel_track", DRAINED))
        initial = (MIGRATED, MIGRATED + HIGH.seconds)
        first = [line.within(line.rate, *initial).mean() for line in (parallel, drained, moving)]
        rates = [line.within(line.rate, MIGRATED, drained.stage_ends).mean() for line in (parallel, drained)]
        quiet, slower = (on[DRAINED].stage_ends - on[DRAINED].stage_begins for on in (lines, slow))
        # Seconds that the new plan takes for a second of arrivals, on a processor that is silent for ten.
        lasting = slow["new"].run_ends / SLOW_UNTIL * SILENT / slower
        by_second = parallel.within(parallel.rate, MIGRATED, np.floor(parallel.stage_ends))
        return (
            HIGHER.judged(
                rates[0] > rates[1],
                f"until moving state's stage ends at {drained.stage_ends:.1f} s, parallel track gives {rates[0]:,.0f} "
                f"results a second, moving state {rates[1]:,.0f}; in the first W they give {first[0]:,.0f} and "
                f"{first[1]:,.0f}, moving state undrained {first[2]:,.0f}",
                "parallel track runs the old plan, which was too slow before, and the new one beside it, and holds the "
                "new one's results",
            ),
            SILENCE.judged(
                max(quiet, slower) >= HIGH.seconds,
                f"recomputing the states silences moving state for {quiet:.2f} s at {POWER:,} comparisons a second, "
                f"and for {slower:.2f} s at {SLOW:,}",
                "recomputing S_BC and S_BCD takes at most half of what the new plan compares in a window (see Fig. "
                "12), and before that the old plan gives the results of the accumulated tuples. A processor that "
                f"recomputes for {SILENT:.0f} s is so slow that the new plan takes {lasting:.0f} s for a second of "
                "arrivals",
            ),
            GENERATED.judged(
                bool((by_second > 0).sum() > len(by_second) / 2),
                f"in {int((by_second > 0).sum())} of the {len(by_second)} seconds of its stage",
                "toward the end of the stage the old plan has only few results with an old tuple left, and the new "
                "plan's are held",
            ),
        )


def longest_zero(rates: np.ndarray) -> int:
    """Find the length of the longest run of zeros."""
    longest = run = 0
    for rate in rates:
        run = 0 if rate else run + 1
        longest = max(longest, run)
    return longest
