"""The figures of Zhu §6.3: four cases beside each other over time, as intermediate tuples and as output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines, mark
from midstream.lab.figure import Figure, Scale
from midstream.lab.tidy import column, table
from midstream.lab.trace import Numbers
from midstream.lab.zhu import MIGRATED, Setting, four_cases

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

POWER = 40_000
"""Comparisons a second, in both sets: plenty for the low configuration, too little for the high one's old plan."""

TIME, INTERMEDIATE, RATE, SO_FAR = "time (s)", "intermediate tuples", "results a second", "results so far"
STAGE_ENDS, RUN_ENDS = "stage ends (s)", "run ends (s)"
BIN = 1.0


@dataclass(frozen=True)
class Conditions:
    """What a set of §6.3 runs: a column of Table 2, the seconds of a step, and the streams' length at each scale."""

    setting: Setting
    tick: float
    quick: float
    full: float


class CasesFigure(Figure):
    """One of the four figures: both figures of a set rest on the same runs and draw another column."""

    paper: ClassVar[str] = "Zhu"
    strategies: ClassVar[frozenset[str]] = frozenset({"moving_state", "parallel_track"})
    conditions: ClassVar[Conditions]
    drawn: ClassVar[str]

    @override
    def measure(self, scale: Scale) -> pa.Table:
        runs = self.conditions
        traces = four_cases(runs.setting, POWER, runs.tick, scale.pick(runs.quick, runs.full))
        end = max(trace.steps[-1].end for trace in traces.values())
        rows = []
        for case, trace in traces.items():
            seconds, rates = trace.rate(BIN, np.ceil(end))
            told = zip(seconds, rates, trace.level("intermediate_rows", seconds), np.cumsum(rates) * BIN, strict=True)
            rows += [
                {
                    "case": case,
                    TIME: float(second),
                    INTERMEDIATE: int(count),
                    RATE: float(rate),
                    SO_FAR: round(so_far),
                    STAGE_ENDS: trace.stages[0].ended if trace.stages else None,
                    RUN_ENDS: trace.steps[-1].end,
                }
                for second, rate, count, so_far in told
            ]
        return table(rows)

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, TIME, self.drawn)
        mark(axes, MIGRATED)


@dataclass(frozen=True)
class Course:
    """A case's line, and when its migration and its run ended."""

    seconds: Numbers
    intermediate: Numbers
    rate: Numbers
    so_far: Numbers
    stage_ends: float
    run_ends: float

    def within(self, line: Numbers, since: float, until: float) -> Numbers:
        """The part of a line within a span."""
        return line[(self.seconds >= since) & (self.seconds < until)]


def courses(data: pa.Table) -> dict[str, Course]:
    """The four cases: `new`, `old`, `moving_state`, `parallel_track`."""
    found = {}
    for case in ("new", "old", "moving_state", "parallel_track"):
        time, intermediate, rate, so_far, stage, run = (
            column(data, name, case=case) for name in (TIME, INTERMEDIATE, RATE, SO_FAR, STAGE_ENDS, RUN_ENDS)
        )
        found[case] = Course(time, intermediate, rate, so_far, float(stage[0]), float(run[0]))
    return found
