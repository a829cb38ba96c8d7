"""HybMig Fig. 21: what background state computation does to duration and comparisons."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute
from typing_extensions import override

from midstream.embedded.stream_generator import Schedule
from midstream.lab.drawing import bars, legend_below
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.hybmig_settings import METHODS, RATES, SETTING, SPAN, HybMigTask, Machine
from midstream.lab.tidy import cases, column, table
from midstream.lab.virtual_processor import PlanSwitch, Processor

SOURCE = "HybMig §5.2, Fig. 21"
SHORTEST = Claim("MS has the shortest duration for tau up to 1, and the longest for larger values.", SOURCE)
SEVERAL = Claim("For tau > 1 the duration of MS may exceed w several times (about 5 for tau = 1.6).", SOURCE)
PT_W = Claim("The duration of PT is always w, except when the system is overloaded (tau = 1.6).", SOURCE)
HYBMIG_W = Claim("HybMig without BSC requires w in all cases, for the system can handle all rates tested.", SOURCE)
NEGLIGIBLE = Claim("With BSC the duration is negligible for tau = 0.4 and 0.7.", SOURCE)
FADES = Claim("As the rates increase, the effect of BSC decreases.", SOURCE)
CHEAPER = Claim("Even with the application of BSC, HybMig has a lower cost than MS and PT.", SOURCE)

TAU, DURATION, CPU = "tau (rows a second)", "duration (windows)", "CPU (comparisons)"
BSC = "hybmig+bsc"
SLOW = ", slow processor"
AT_MOST, SEVERAL_W = 1.6, 5.0
"""The highest tau, and the windows that MS takes there, in the paper and on the slow processor."""


OTHERS = ("parallel_track", "hybmig")


class HybMig21(Figure):
    """Duration and comparisons over tau: w = 3, n = 6, to the right-deep plan."""

    name: ClassVar[str] = "hybmig_21"
    title: ClassVar[str] = "effect of background state computation"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"hybmig", "moving_state", "parallel_track"})
    setting: ClassVar[str] = (
        f"{SETTING} BSC's budget a step is what the processor could do in it, less the mean work of a step of HybMig "
        "without BSC; none is left where that is more. The duration is in the time of the processor, queues included. "
        f"The slow processor takes {SEVERAL_W:g} w for MS at tau = {AT_MOST:g}, as the paper's; up to the migration it "
        "is as fast as need be, so that no queue is left from before."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        most = HybMigTask(Machine.of(scale), rate=AT_MOST, span=2.0)
        slow = most.method("moving_state").stage.length / (SEVERAL_W * most.seconds) * most.machine.speed
        for rate in scale.pick(quick=(*RATES[:3], RATES[4]), full=RATES):
            task = most.at(rate=rate)
            phase = task.start + SPAN * task.seconds
            for case in (*METHODS, BSC):
                trace = task.play("hybmig", {"background": idle(task)}) if case == BSC else task.method(case)
                rows.append(
                    {
                        "case": case,
                        TAU: rate,
                        DURATION: trace.stage.length / task.seconds,
                        CPU: sum(step.comparisons for step in trace.steps if task.start <= step.upto <= phase),
                    }
                )
            processor = Processor(Schedule(((0.0, 1e12), (task.start, slow))), task.tick)
            for case, (strategy, options) in METHODS.items():
                switch = PlanSwitch(task.start, task.new, strategy, options)
                stage = processor.play(task.workload(), task.old, task.end, [switch], settle=True).stage
                rows.append({"case": case + SLOW, TAU: rate, DURATION: stage.length / task.seconds, CPU: None})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        taus = cases(data, TAU)
        length = {case: column(data, DURATION, case=case) for case in cases(data, "case")}
        cpu = {case: column(data, CPU, case=case) for case in (*METHODS, BSC)}
        low = [at for at, tau in enumerate(taus) if tau <= 1]
        shown = {case: f"{case}: " + ", ".join(f"{x:.3g}" for x in found) for case, found in length.items()}
        head = f"durations in w at tau = {', '.join(f'{tau:g}' for tau in taus)}: "
        dearer = [c for c in ("moving_state", "parallel_track") if (cpu[c] <= cpu[BSC]).any()]
        ratios = "; ".join(
            f"{c}: {', '.join(f'{r:.2f}' for r in cpu[c] / cpu[BSC])}" for c in ("moving_state", "parallel_track")
        )
        above = {tag: {m: length[m + tag][len(low) :] for m in METHODS} for tag in ("", SLOW)}
        rebuilt = (
            "what MS rebuilds at once the new plan compares again in every w (see Zhu's Fig. 12). So a processor that "
            f"MS keeps busy for {SEVERAL_W:g} w is far too slow for the new plan, and HybMig and PT, which need "
            "w of arrivals, take much longer than MS; the paper has both at w or little more"
        )
        return (
            SHORTEST.judged(
                any(
                    all((length["moving_state" + tag] < length[m + tag])[low].all() for m in OTHERS)
                    and all((above[tag]["moving_state"] > above[tag][m]).all() for m in OTHERS)
                    for tag in above
                ),
                head + "; ".join(shown.values()),
                "MS is the shortest at every tau: " + rebuilt,
            ),
            SEVERAL.judged(
                any(found["moving_state"][-1] > 2 and found["hybmig"][-1] < 1.25 for found in above.values()),
                head + "; ".join(shown[case + tag] for tag in above for case in ("moving_state", "hybmig")),
                rebuilt,
            ),
            PT_W.judged(
                bool((np.abs(length["parallel_track"][low] - 1) < 0.25).all()),
                head + shown["parallel_track"],
                "the plan ends when every stream's clock has passed w, which slow streams delay",
            ),
            HYBMIG_W.judged(
                bool((np.abs(length["hybmig"] - 1) < 0.25).all()),
                head + shown["hybmig"],
                "at the highest rate the processor falls behind with HybMig too",
            ),
            NEGLIGIBLE.judged(
                bool((length[BSC][:2] < 0.1).all()), head + shown[BSC], "the budget does not suffice for the states"
            ),
            FADES.judged(
                bool((np.diff(length[BSC]) >= 0).all() and length[BSC][-1] > 10 * length[BSC][1]),
                head + shown[BSC],
                "the processor has time left at every rate",
            ),
            CHEAPER.judged(
                not dearer,
                f"comparisons within 1.2 w, against HybMig with BSC: {ratios}",
                f"not against {' and '.join(dearer)}: BSC computes all that MS rebuilds, of which HybMig alone needs "
                "the part that new rows meet",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        fast = pa.array(not case.endswith(SLOW) for case in data["case"].to_pylist())
        panels = (
            (data.filter(fast), DURATION),
            (data.filter(pa.compute.invert(fast)), DURATION),
            (data.filter(fast), CPU),
        )
        for axes, (part, measure) in zip(canvas.subplots(1, 3), panels, strict=True):
            bars(axes, part, TAU, measure)
            axes.set_yscale("log")
            axes.get_legend().remove()
        canvas.axes[1].set_title("slow processor", fontsize="small")
        legend_below(canvas, canvas.axes[0])


def idle(task: HybMigTask) -> int:
    """Count the comparisons a step that HybMig without BSC leaves to the processor."""
    trace = task.method("hybmig")
    steps = [step.work for step in trace.steps if task.start <= step.upto <= task.start + task.seconds]
    return max(0, round(task.machine.speed * task.tick - sum(steps) / len(steps)))
