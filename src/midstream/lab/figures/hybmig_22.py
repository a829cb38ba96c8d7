"""HybMig Fig. 22: GMS, GPT and GHM on black boxes with a median on top."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
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
ONE_A_SECOND = "the median gives one result a second whatever the joins below it do, so no rate can be another one"


class HybMig22(Figure):
    """Output rate and comparisons over time: w = 3, tau = 1, n = 6, to the right-deep plan."""

    name: ClassVar[str] = "hybmig_22"
    title: ClassVar[str] = "GMS, GPT and GHM"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"gms", "gpt", "ghm"})
    setting: ClassVar[str] = (
        f"{SMOOTH} A median over the window is on top of the joins, a result every second. `old` never migrates. The "
        "processor is twice as fast as in Fig. 15, for it has two plans to serve. GHM's budget a step is half of what "
        "the old plan leaves to it on average."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        machine = Machine.smooth(scale)
        task = HybMigTask(replace(machine, speed=2 * machine.speed), ticks=scale.pick(quick=36, full=90))
        old = _play(task, [])
        spare = task.machine.speed * task.tick - old.total("work", task.start) / (SPAN * task.ticks)
        cases: dict[str, dict[str, Any]] = {"gms": {}, "gpt": {}, "ghm": {"budget": max(round(spare / 2), 1)}}
        traces = {DUE: old}
        for case, options in cases.items():
            traces[case] = _play(task, [PlanSwitch(task.start, task.new, case, options)])
        rows = []
        for case, trace in traces.items():
            length = trace.stage.length / task.seconds if trace.stages else 0.0
            middles, rate = trace.rate(1.0, task.end)
            work = trace.rate(1.0, task.end, "comparisons")[1]
            for middle, found, done in zip(middles, rate, work, strict=True):
                if middle > task.start:
                    time = (middle - task.start) / task.seconds
                    rows.append({"case": case, TIME: time, RATE: found, CPU: done, DURATION: length})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        rate = {case: column(data, RATE, case=case) for case in (DUE, "gms", "gpt", "ghm")}
        cpu = {case: column(data, CPU, case=case) for case in rate}
        length = {case: float(column(data, DURATION, case=case)[0]) for case in rate}
        unlike = {case: float(np.abs(np.cumsum(found) - np.cumsum(rate[DUE])).max()) for case, found in rate.items()}
        silent = {case: float(np.argmax(found > 0)) for case, found in rate.items()}
        ghm, gms, gpt = (float(cpu[case].sum()) for case in ("ghm", "gms", "gpt"))
        lengths = ", ".join(f"{case} {length[case]:.3f} w" for case in ("gms", "gpt", "ghm"))
        return (
            SIMILAR.untested(
                f"never more than {unlike['ghm']:g} and {unlike['gpt']:g} results behind the old plan alone",
                ONE_A_SECOND,
            ),
            SUSPENDS.judged(
                silent["gms"] > silent[DUE] + 1,
                f"no result for {silent['gms']:g} s from the beginning on, GPT and GHM for {silent['gpt']:g} and "
                f"{silent['ghm']:g} s",
                "replaying is over within a step",
            ),
            NO_BURST.untested(
                f"at most {rate['gpt'].max():g} results a second, {rate[DUE].max():g} without a migration",
                ONE_A_SECOND,
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
        for axes, measure in zip(canvas.subplots(1, 2), (RATE, CPU), strict=True):
            lines(axes, data, TIME, measure)
            axes.set_xlim(0, SPAN)
            mark(axes, 1.0, "w")
        canvas.axes[1].set_yscale("log")


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
