"""Zhu §1: why pause-drain-resume cannot carry a join. The paper argues it without a figure; this draws one."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.embedded.stream_generator import Schedule
from midstream.lab.drawing import lines, mark
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.generator import Workload
from midstream.lab.tidy import column, table
from midstream.lab.virtual_processor import PlanSwitch, Processor
from midstream.lab.zhu import LOW, NEW, OLD
from midstream.model.errors import StrategyError

DEADLOCK = Claim(
    "The migration waits for all old tuples in states to be purged, while those wait for new tuples to purge them: a "
    "deadlock.",
    "Zhu §1",
)
REFUSED = Claim("It is adequate only for a plan that consists of stateless operators.", "Zhu §1")

DONE = "done, in no time"
PAUSE, RESUME, END = 5.0, 10.0, 15.0
TIME, ROWS = "time (s)", "rows in states"
STATEFUL, STATELESS = "asked for joins", "asked for a selection"

SELECTION = Workload((LOW.workload().sources[0],), "SELECT A.ts FROM A WHERE A.ab > 3")
"""A stateless query; its two plans differ in form only."""


class Zhu00(Figure):
    """Rows in states while the input is paused."""

    name: ClassVar[str] = "zhu_00"
    title: ClassVar[str] = "what a pause drains from the states of a join"
    source: ClassVar[str] = "Zhu §1"
    strategies: ClassVar[frozenset[str]] = frozenset({"pause_drain_resume"})
    setting: ClassVar[str] = (
        "The query and the old plan of §6.3, low configuration, W = 1 s. Once the input goes on; once it is paused for "
        f"five windows, from {PAUSE:.0f} s to {RESUME:.0f} s. Then the engine is asked to migrate, by "
        "pause_drain_resume, the joins, and a query that is one selection. The paper argues this without a figure."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        steady = LOW.workload()
        rows = []
        for case, workload in (("input goes on", steady), ("input paused", _paused(steady))):
            trace = Processor(1e6, tick=scale.pick(quick=0.5, full=0.1)).play(workload, OLD, END)
            seconds = np.arange(0.75, END, 0.5)
            answers = {STATEFUL: _asked(steady, OLD, NEW), STATELESS: _asked(SELECTION, "A", "[A: ]")}
            for second, held in zip(seconds, trace.level("state_rows", seconds), strict=True):
                rows.append({"case": case, TIME: float(second), ROWS: int(held), **answers})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        seconds, held = (column(data, name, case="input paused") for name in (TIME, ROWS))
        # A step purges by the watermark it begins with: the first one without input still does, by the last input.
        during = held[(seconds > PAUSE + 0.5) & (seconds < RESUME)]
        stateful, stateless = (str(column(data, name)[0]) for name in (STATEFUL, STATELESS))
        return (
            DEADLOCK.judged(
                bool(during[0] > 0 and (during == during[0]).all()),
                f"once the last input has been counted, {during[0]} rows stay, and {during[-1]} are left at the end",
                "something purges without input",
            ),
            REFUSED.judged(
                stateful != DONE and stateless == DONE,
                f"asked for the selection: {stateless}; asked for the joins: {stateful}",
                "it carries what it should refuse, or refuses what it should carry",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, TIME, ROWS)
        mark(axes, PAUSE, "pause")
        mark(axes, RESUME, "input goes on")


def _paused(workload: Workload) -> Workload:
    sources = [
        replace(source, rate=Schedule(((0, float(rate)), (PAUSE, 0), (RESUME, float(rate)))))
        for source in workload.sources
        if not isinstance(rate := source.rate, Schedule)
    ]
    return replace(workload, sources=tuple(sources))


def _asked(workload: Workload, old: str, new: str) -> str:
    try:
        trace = Processor(1e6, tick=0.5).play(workload, old, 2.0, [PlanSwitch(1.0, new, "pause_drain_resume")])
    except StrategyError as error:
        return error.message.partition(": ")[2]
    return DONE if trace.stage.length == 0 else f"done in {trace.stage.length} s"
