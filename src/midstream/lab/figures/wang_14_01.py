"""Wang §14.1: workload smoothing, slices bounded by count in a burst. The section has no figure of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL, draw_rows, mark
from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.ring_figures import CASE, OfRing, by_panel, curves
from midstream.lab.ring_spread import SpreadStreams, spread
from midstream.lab.tidy import cases
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import spreadings

SOURCE = "Wang §14.1"
SMOOTHED = Claim("An upper bound on the rows of a slice smooths the workload during short term load bursts.", SOURCE)

LABELS, WINDOW, ROWS, STEPS = "ABC", 1_000_000, 96, (10, 20, 5, 25)
"""Rows in a window, and the steps before what is measured, before the burst, in it and after it."""

BURST, NODES = 4, (4,)
TIME, BUSIEST = "time (windows)", "busiest / mean node (pairs)"
BOUNDED = {"psp_d, bounded": ("psp_d", 1), "psp_d, bounded at half": ("psp_d", 2)}
CASES = {"psp": ("psp", 0), "psp_d": ("psp_d", 0), **BOUNDED}
"""The spreadings, and into how many parts a node's rows without a burst are divided; 0 is no bound."""


class Wang1401(OfRing):
    """The spreadings themselves, in the sets of a step, through a burst."""

    name: ClassVar[str] = "wang_14_01"
    title: ClassVar[str] = "workload smoothing in a burst"
    source: ClassVar[str] = SOURCE
    spreadings: ClassVar[frozenset[str]] = frozenset({"psp", "psp_d"})
    setting: ClassVar[str] = (
        "The ways of spreading a join by the sets of rows and visits of each step, as in Fig. 15.1: three streams of "
        "96 rows in a window, four times as many for half a window, every pair that is compared matches with "
        "probability 0.01, a step is a tenth of a window, four nodes. Bounded: a slice has at most the rows that it "
        "has on average without a burst, or half of them. The busiest node of each step is compared with the mean one. "
        "Quick and full are the same."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        filling, before, burst, after = STEPS
        paces = [(ROWS, filling + before), (BURST * ROWS, burst), (ROWS, after)]
        streams = SpreadStreams.paced(LABELS, paces, 0.01, WINDOW, seed=14)
        for nodes in NODES:
            deployment = Deployment(dict.fromkeys(LABELS, WINDOW), nodes)
            for case, (name, parts) in CASES.items():
                most = ROWS // (nodes * parts) if parts else None
                counts = spread(spreadings()[name], streams, deployment, sum(STEPS), most)
                for step, busiest in enumerate(counts.course):
                    yield {PANEL: f"{nodes} nodes", CASE: case, TIME: step / 10, BUSIEST: busiest}

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        # A burst is felt until its rows have left the window.
        begin, end = STEPS[1], STEPS[1] + STEPS[2] + 10
        found = {at: float(curve[begin:end].max()) for at, curve in curves(data, BUSIEST).items()}
        panels = cases(data, PANEL)
        return (
            SMOOTHED.judged(
                all(found[p, case] < found[p, "psp_d"] for p in panels for case in BOUNDED),
                by_panel({(p, case): f"{case} {most:.2f}" for (p, case), most in found.items()})
                + " times the mean node at most, until the burst has left the window",
                "slices of equal rows do not mean equal work",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for _, _, axes in draw_rows(canvas, data, TIME, [BUSIEST]):
            axes.set_ylim(bottom=0)
            mark(axes, STEPS[1] / 10, "burst")
