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
from midstream.lab.zhu import MIGRATED, ZhuSetting, four_cases

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

POWER = 40_000
"""Comparisons a second, in both sets: plenty for the low configuration, too little for the high one's old plan."""

TIME, INTERMEDIATE, RATE = "time (s)", "intermediate tuples", "results a second"
WAITING = "waiting tuples"
STAGE_BEGINS, STAGE_ENDS, RUN_ENDS = "stage begins (s)", "stage ends (s)", "run ends (s)"
BIN = 1.0


@dataclass(frozen=True)
class Conditions:
    """What a set of §6.3 runs: a column of Table 2, the seconds of a step, and the streams' length at each scale."""

    setting: ZhuSetting
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
        rows = []
        for case, trace in traces.items():
            seconds, rates = trace.rate(BIN, np.ceil(trace.steps[-1].end))
            counts, queue = (trace.level(name, seconds) for name in ("intermediate_rows", "queue"))
            rows += [
                {
                    "case": case,
                    TIME: float(second),
                    INTERMEDIATE: int(count),
                    WAITING: int(waiting),
                    RATE: float(rate),
                    STAGE_BEGINS: trace.stages[0].began if trace.stages else None,
                    STAGE_ENDS: trace.stages[0].ended if trace.stages else None,
                    RUN_ENDS: trace.steps[-1].end,
                }
                for second, count, waiting, rate in zip(seconds, counts, queue, rates, strict=True)
            ]
        return table(rows)

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, TIME, self.drawn)
        mark(axes, MIGRATED)


@dataclass(frozen=True)
class Course:
    """A case's lines, when its migration began and ended, and when its run did."""

    seconds: Numbers
    intermediate: Numbers
    waiting: Numbers
    rate: Numbers
    stage_begins: float
    stage_ends: float
    run_ends: float

    def within(self, line: Numbers, since: float, until: float) -> Numbers:
        """Select the part of a line within a span."""
        return line[(self.seconds >= since) & (self.seconds < until)]

    def caught_up(self, waiting: float) -> float:
        """Find the last second of the migration with more than `waiting` tuples waiting; its begin if none."""
        return float(self.seconds[(self.waiting > waiting) & (self.seconds >= MIGRATED)].max(initial=MIGRATED))


def courses(data: pa.Table) -> dict[str, Course]:
    """Read the four cases: `new`, `old`, `moving_state`, `parallel_track`."""
    found = {}
    for case in ("new", "old", "moving_state", "parallel_track"):
        time, intermediate, waiting, rate = (
            column(data, name, case=case) for name in (TIME, INTERMEDIATE, WAITING, RATE)
        )
        begins, ends, run = (float(column(data, name, case=case)[0]) for name in (STAGE_BEGINS, STAGE_ENDS, RUN_ENDS))
        found[case] = Course(time, intermediate, waiting, rate, begins, ends, run)
    return found
