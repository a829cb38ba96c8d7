"""HybMig Fig. 22: GMS, GPT and GHM on black boxes with a median on top."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute
from typing_extensions import override

from midstream.lab.drawing import lines, mark
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.generator import Workload
from midstream.lab.hybmig_settings import SMOOTH, SPAN, HybMigTask, Machine
from midstream.lab.tidy import column, table
from midstream.lab.trace import Trace
from midstream.lab.virtual_processor import PlanSwitch, Processor

SOURCE = "HybMig §5.3, Fig. 22"
SIMILAR = Claim("The output rates of GHM and GPT are similar.", SOURCE)
SUSPENDS = Claim("GMS suspends the output stream during the migration.", SOURCE)
NO_BURST = Claim("GPT does not suffer from the bursty behavior of PT.", SOURCE)
ALIKE = Claim("The CPU overhead of GHM and GMS is similar, since both recompute states in the new plan.", SOURCE)
EARLIER = Claim("The migration ends much earlier in GHM and GMS than in GPT.", SOURCE)

TIME, RATE, CPU, DURATION = "time (windows)", "results a second", "comparisons a second", "duration (windows)"
DUE = "old"
BUSY, LOAD = ", busy processor", 1.3
"""The busy processor is so many times as fast as the old plan needs."""
LATE = 1 / 3
"""A rate is similar if so many results at most are late as where GMS suspends the output."""


class HybMig22(Figure):
    """Output rate and comparisons over time: w = 3, tau = 1, n = 6, to the right-deep plan."""

    name: ClassVar[str] = "hybmig_22"
    title: ClassVar[str] = "GMS, GPT and GHM"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"gms", "gpt", "ghm"})
    setting: ClassVar[str] = (
        f"{SMOOTH} A median over the window is on top of the joins, a result every second. `old` never migrates. The "
        "processor is twice as fast as in Fig. 15, for it has two plans to serve. GHM's budget a step is half of what "
        "the old plan leaves to it on average. There is a median every second whatever the joins below it do, unless "
        f"it is late: all of them also run on a busy processor, {LOAD:g} times as fast as the old plan needs."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        machine = Machine.smooth(scale)
        fast = HybMigTask(replace(machine, speed=2 * machine.speed), ticks=scale.pick(quick=36, full=90))
        needed = _play(fast, []).total("work", fast.start) / (SPAN * fast.seconds)
        busy = fast.at(machine=replace(machine, speed=LOAD * needed))
        return table([*_observed(fast, ""), *_observed(busy, BUSY)])

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        rate = {case: column(data, RATE, case=case) for case in (DUE, "gms", "gpt", "ghm")}
        busy = {case: column(data, RATE, case=case + BUSY) for case in rate}
        cpu = {case: column(data, CPU, case=case) for case in rate}
        length = {case: float(column(data, DURATION, case=case)[0]) for case in rate}
        behind = {case: float((np.cumsum(busy[DUE]) - np.cumsum(found)).max()) for case, found in busy.items()}
        silent = {case: float(np.argmax(found > 0)) for case, found in rate.items()}
        ghm, gms, gpt = (float(cpu[case].sum()) for case in ("ghm", "gms", "gpt"))
        lengths = ", ".join(f"{case} {length[case]:.3f} w" for case in ("gms", "gpt", "ghm"))
        return (
            SIMILAR.judged(
                max(behind["ghm"], behind["gpt"]) <= LATE * behind["gms"],
                f"on the busy processor never more than {behind['ghm']:g} and {behind['gpt']:g} results behind the old "
                f"plan alone, GMS {behind['gms']:g}",
                "the processor is too busy for what one of them does besides",
            ),
            SUSPENDS.judged(
                silent["gms"] > silent[DUE] + 1,
                f"no result for {silent['gms']:g} s from the beginning on, GPT and GHM for {silent['gpt']:g} and "
                f"{silent['ghm']:g} s",
                "replaying is over within a step",
            ),
            NO_BURST.judged(
                busy["gpt"].max() <= busy[DUE].max() + 1,
                f"on the busy processor at most {busy['gpt'].max():g} results a second, {busy[DUE].max():g} without a "
                f"migration, GMS {busy['gms'].max():g}",
                "results that were late come out together",
            ),
            ALIKE.judged(
                abs(ghm / gms - 1) < 0.25,
                f"comparisons within {SPAN} w: GHM {ghm:.4g}, GMS {gms:.4g}, GPT {gpt:.4g}",
                "GHM feeds the new plan beside the old one, which goes on meanwhile, and rows die before they are fed",
            ),
            EARLIER.judged(max(length["gms"], length["ghm"]) < 0.5 * length["gpt"], lengths, "the budget is too small"),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        busy = pa.array(case.endswith(BUSY) for case in data["case"].to_pylist())
        fast = data.filter(pa.compute.invert(busy))
        panels = (fast, RATE), (data.filter(busy), RATE), (fast, CPU)
        for axes, (part, measure) in zip(canvas.subplots(1, 3), panels, strict=True):
            lines(axes, part, TIME, measure)
            axes.set_xlim(0, SPAN)
            mark(axes, 1.0, "w")
        axes.set_yscale("log")


def _observed(task: HybMigTask, tag: str) -> Iterator[dict[str, Any]]:
    old = _play(task, [])
    spare = task.machine.speed * task.tick - old.total("work", task.start) / (SPAN * task.ticks)
    cases: dict[str, dict[str, Any]] = {"gms": {}, "gpt": {}, "ghm": {"budget": max(round(spare / 2), 1)}}
    traces = {DUE: old}
    for case, options in cases.items():
        traces[case] = _play(task, [PlanSwitch(task.start, task.new, case, options)])
    for case, trace in traces.items():
        length = trace.stage.length / task.seconds if trace.stages else 0.0
        middles, rate = trace.rate(1.0, task.end)
        work = trace.rate(1.0, task.end, "comparisons")[1]
        for middle, found, done in zip(middles, rate, work, strict=True):
            if middle > task.start:
                time = (middle - task.start) / task.seconds
                yield {"case": case + tag, TIME: time, RATE: found, CPU: done, DURATION: length}


def _play(task: HybMigTask, switches: list[PlanSwitch]) -> Trace:
    plain = task.workload()
    text = (
        f"SELECT MEDIAN(A.v) AS middle FROM {', '.join(f'{name} [{task.range}]' for name in task.names)} "
        f"WHERE {' AND '.join(task.predicates(nested=True))} EVERY 1 SECOND"
    )
    first, *rest = plain.sources
    sources = (replace(first, columns={**first.columns, "v": 1000}), *rest)
    workload = Workload(sources, text, plain.seed)
    return Processor(task.machine.speed, task.tick).play(workload, task.old, task.end, switches)
