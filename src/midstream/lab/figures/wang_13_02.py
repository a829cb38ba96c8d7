"""Wang §13.2.1: the output rate of rings that are never idle, over their length, and Eq. 13.4. It has no figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.ring import output_gain
from midstream.lab.drawing import PANEL, draw_rows
from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.ring_figures import CASE, NODES, OfRing, curves, lengths
from midstream.lab.ring_settings import JOINS, LENGTHS, SETTING, WAYS, arrivals, costs, run
from midstream.ring.cost import RingLoad

SOURCE = "Wang §13.2.1"
MONOTONE = Claim("As more nodes are deployed in the ring, the output rate increases monotonically.", SOURCE)
EQUATION = Claim("The gain over one node is that of Eq. 13.4, to within 10 %.", SOURCE)

RATE, GAIN = "rows a second", "gain by Eq. 13.4"
SELECTIVITY = 0.1
NEVER_IDLE = 4
"""So many rows for each node are under way: nodes wait for nothing then."""


class Wang1302(OfRing):
    """PSP-I with so many rows under way that the head's queue is never empty."""

    name: ClassVar[str] = "wang_13_02"
    title: ClassVar[str] = "the most rows a second over the length of the ring"
    source: ClassVar[str] = SOURCE
    spreadings: ClassVar[frozenset[str]] = frozenset({"psp_i"})
    setting: ClassVar[str] = (
        "The ring tuple at a time on a virtual cluster, selectivity 0.1. "
        + SETTING.replace(", one row after another", f", {NEVER_IDLE} rows for each node under way")
        + "The next row is there whenever the ring takes one, as Eq. 13.4 has it. Quick: the rows of 1.5 s, otherwise "
        "of 10 s. The rate is rows read in over the time until the last node has nothing to do any more."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        rows = arrivals(SELECTIVITY, scale)
        for join in JOINS:
            for nodes in (1, *LENGTHS):
                counts = run(rows, join, nodes, concurrent=NEVER_IDLE * nodes, queued=True)
                load = RingLoad.alike(WAYS, float(np.mean(counts.state_rows)) / WAYS, SELECTIVITY)
                yield {
                    PANEL: join,
                    CASE: "PSP-I",
                    NODES: nodes,
                    RATE: len(counts.compared) / counts.finished,
                    GAIN: output_gain(load, costs(join), nodes),
                }

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        rates, gains = curves(data, RATE), curves(data, GAIN)
        falls = [
            f"{panel}: {a} to {b} nodes"
            for (panel, case), rate in rates.items()
            for a, b, before, after in zip(
                lengths(data, (panel, case)), lengths(data, (panel, case))[1:], rate, rate[1:], strict=False
            )
            if after <= before
        ]
        off = {at[0]: rate / rate[0] / (gains[at] / gains[at][0]) for at, rate in rates.items()}
        return (
            MONOTONE.judged(
                not falls,
                "; ".join(
                    f"{at[0]}: {rate[0]:,.0f} rows a second with 1 node, {rate.max():,.0f} at most, {rate[-1]:,.0f} "
                    f"with {lengths(data, at)[-1]}"
                    for at, rate in rates.items()
                )
                + (f"; no increase: {', '.join(falls)}" if falls else ""),
                "every node receives and sends each row, so that the rate tends to a limit; the fullest node sets it",
            ),
            EQUATION.sized(
                not falls,
                all(bool((abs(found - 1) <= 0.1).all()) for found in off.values()),
                "measured over foreseen: "
                + ", ".join(f"{panel} {found.min():.2f} to {found.max():.2f}" for panel, found in off.items()),
                "Eq. 13.4 takes nodes to be balanced and never idle; slices of equal time have unlike numbers of so "
                "few rows, and the fullest node sets the rate (§13.4)",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for _, _, axes in draw_rows(canvas, data, NODES, (RATE,)):
            axes.set_ylim(bottom=0)
