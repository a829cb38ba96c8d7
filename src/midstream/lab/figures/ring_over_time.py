"""Wang Figs. 16.6 and 16.7: a PSP ring whose streams come faster from some second on, adapted and not."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL, draw_rows, mark
from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.ring_cluster import Adaptation, AdaptiveRing, RingArrivals
from midstream.lab.ring_figures import CASE, NODES, RESPONSE, OfRing, by_panel, curves
from midstream.lab.ring_settings import MOST_NODES, RATE, WAYS, WINDOW, costs
from midstream.lab.tidy import cases
from midstream.ring.cost import RingLoad, length

TIME, FULLEST = "time (s)", "fullest / mean node (rows)"
OFF, SMOOTHED, RELOCATED = "off", "slices by count", "slices by count, length"
ADAPTATIONS = {OFF: Adaptation(), SMOOTHED: Adaptation(1.0), RELOCATED: Adaptation(1.0, MOST_NODES)}

STEADY = 3.0
"""Seconds before the rate changes."""

TIMES_OVER = (
    "The ring tuple at a time on a virtual cluster: three streams of 5 rows a second each (a tenth of the paper's), "
    "windows of 10 s, full at the beginning, Poisson arrivals and random predicates; after 3 s so many times as many. "
    "The ring begins with the length for its load. Adapted once a second between two rows: slices of equal rows "
    "(§14.1, the bounds set by what is kept), and with that the length for the present load, rows sent to their new "
    "nodes at once while the ring waits (§14.2). Quick: 12 s after the change, otherwise 30 s. "
    "Response time is the mean over the results of a second, from the reading in of the row."
)

STABLER = 0.95
"""More stable is a ring whose response time grows by at least a twentieth less."""


class OverTime(OfRing, ABC):
    """A figure of this family: one join and selectivity, and how many times the rate becomes in each panel."""

    join: ClassVar[str]
    selectivity: ClassVar[float]
    panels: ClassVar[dict[str, float]]
    claim: ClassVar[Claim]
    spreadings: ClassVar[frozenset[str]] = frozenset({"psp"})

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        after = WINDOW * scale.pick(quick=1.2, full=3.0)
        begin = length(RingLoad.alike(WAYS, RATE * WINDOW, self.selectivity), costs(self.join), MOST_NODES)
        for panel, factor in self.panels.items():
            paces = [(RATE, WINDOW + STEADY), (RATE * factor, after)]
            rows = RingArrivals.paced(WAYS, paces, self.selectivity, seed=16)
            for case, adaptation in ADAPTATIONS.items():
                ring = AdaptiveRing(rows, WINDOW, begin, costs(self.join), begin=WINDOW, selectivity=self.selectivity,
                                    adaptation=adaptation)  # fmt: skip
                yield from _by_second(panel, case, ring)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        responses, fullest, lengths = (curves(data, name) for name in (RESPONSE, FULLEST, NODES))
        steady = int(STEADY)
        grown = {at: float(curve[-steady:].mean() / curve[:steady].mean()) for at, curve in responses.items()}
        shown = by_panel(
            {
                at: f"{at[1]}: response time {found:.2f} times that before, "
                f"fullest node at most {float(fullest[at].max()):.2f} times the mean, "
                f"{int(lengths[at][0])} to {int(lengths[at][-1])} nodes"
                for at, found in grown.items()
            }
        )
        panels = cases(data, PANEL)

        def judged(adapted: str, without: str) -> Verdict:
            claim = Claim(f"{self.claim.text} By {adapted} against {without}.", self.claim.source)
            better = all(grown[panel, adapted] < STABLER * grown[panel, without] for panel in panels)
            return claim.judged(better, shown, "the ring is as fast without")

        # Each mechanism alone: the slices, and what the length adds to them.
        return (judged(SMOOTHED, OFF), judged(RELOCATED, SMOOTHED))

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for _, _, axes in draw_rows(canvas, data, TIME, (RESPONSE, FULLEST)):
            axes.set_ylim(bottom=0)
            mark(axes, STEADY, "the rate")


def _by_second(panel: str, case: str, ring: AdaptiveRing) -> Iterator[dict[str, Any]]:
    counts = ring.run()
    came = np.array([ring.arrivals.times[rows[0][0]][rows[0][1]] for rows in counts.results]) - WINDOW
    latencies = np.array(counts.latencies)
    for second in range(int(came.max())):
        now = [moment for moment in ring.course if second <= moment.time - WINDOW < second + 1]
        here = latencies[(came >= second) & (came < second + 1)]
        yield {
            PANEL: panel,
            CASE: case,
            TIME: second,
            RESPONSE: float(here.mean()) * 1e3 if len(here) else 0.0,
            FULLEST: float(np.mean([moment.fullest for moment in now])) if now else 1.0,
            NODES: now[-1].nodes if now else ring.nodes,
            "rows moved": sum(moment.moved for moment in now),
        }


SOURCE = "Wang §16.5, Fig. 16.6"


class Wang1606(OverTime):
    """Twice the rate, middle join, selectivity 0.05."""

    name: ClassVar[str] = "wang_16_06"
    title: ClassVar[str] = "a ring whose load grows, middle join"
    source: ClassVar[str] = SOURCE
    setting: ClassVar[str] = f"{TIMES_OVER} Middle join, selectivity 0.05."
    claim: ClassVar[Claim] = Claim("Runtime adaptation makes the system more stable and robust to changes.", SOURCE)
    join: ClassVar[str] = "middle join"
    selectivity: ClassVar[float] = 0.05
    panels: ClassVar[dict[str, float]] = {"twice the rate": 2.0}


SOURCE_16_07 = "Wang §16.5, Fig. 16.7"


class Wang1607(OverTime):
    """Twice and three times the rate, small join, selectivity 0.2."""

    name: ClassVar[str] = "wang_16_07"
    title: ClassVar[str] = "a ring whose load grows, small join"
    source: ClassVar[str] = SOURCE_16_07
    setting: ClassVar[str] = f"{TIMES_OVER} Small join, selectivity 0.2."
    claim: ClassVar[Claim] = Claim(
        "So it does with the small join, at twice and at three times the rate.", SOURCE_16_07
    )
    join: ClassVar[str] = "small join"
    selectivity: ClassVar[float] = 0.2
    panels: ClassVar[dict[str, float]] = {"twice the rate": 2.0, "three times the rate": 3.0}
