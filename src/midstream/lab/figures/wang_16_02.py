"""Wang Fig. 16.2: response time and state of PSP rings of many lengths, and Theorem 9 beside them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.ring_settings import JOINS, MOST_NODES, SELECTIVITIES, SETTING, arrivals, costs, load, run
from midstream.lab.tidy import cases, column, table
from midstream.ring.cost import length

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

SOURCE = "Wang §16.2, Fig. 16.2"
STATE = Claim("PSP has no duplicated states: memory is pretty stable among all the experiments.", SOURCE)
LARGER = Claim("The average response time increases for larger join selectivities.", SOURCE)
LONGER = Claim("With more nodes the response time does not decrease all the time: it increases when the cluster is "
               "too large.", SOURCE)  # fmt: skip
SMALLER = Claim("For smaller join selectivities the optimal number of nodes is larger.", SOURCE)
THEOREM_9 = Claim("The best length is that of Theorem 9, to within one node.", "Wang §13.2.2, Theorem 9")

PANEL, CASE, NODES = "join", "case", "nodes"
RESPONSE, ROWS, FORESEEN = "response time (ms)", "state (rows)", "nodes by Theorem 9"


class Wang1602(Figure):
    """One ring for each selectivity, join cost and number of nodes, over the same rows."""

    name: ClassVar[str] = "wang_16_02"
    title: ClassVar[str] = "PSP rings of 1 to 19 nodes"
    paper: ClassVar[str] = "Wang"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset()
    setting: ClassVar[str] = (
        "The ring tuple at a time on a virtual cluster. " + SETTING + "Quick: the rows of 1.5 s, otherwise of 10 s. "
        "Response time is the mean over results, from the reading in of the row that completes a result; a dotted line "
        "is the length by Theorem 9. State is the mean over the ends of cycles."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        found = []
        for selectivity in SELECTIVITIES:
            rows = arrivals(selectivity, scale)
            for join in JOINS:
                best = length(load(selectivity), costs(join), MOST_NODES)
                for nodes in range(1, MOST_NODES + 1):
                    counts = run(rows, join, nodes)
                    found.append(
                        {
                            PANEL: join,
                            CASE: f"S {selectivity:g}",
                            NODES: nodes,
                            RESPONSE: float(np.mean(counts.latencies)) * 1e3,
                            ROWS: float(np.mean(counts.state_rows)),
                            FORESEEN: best,
                        }
                    )
        return table(found)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        state = column(data, ROWS)
        panels, names = cases(data, PANEL), cases(data, CASE)
        curves = {(p, c): column(data, RESPONSE, **{PANEL: p, CASE: c}) for p in panels for c in names}
        lengths = column(data, NODES, **{PANEL: panels[0], CASE: names[0]})
        best = {at: int(lengths[int(np.argmin(curve))]) for at, curve in curves.items()}
        foreseen = {(p, c): int(column(data, FORESEEN, **{PANEL: p, CASE: c})[0]) for p, c in curves}
        level = [
            f"{p}, {int(nodes)} nodes"
            for p in panels
            for a, b in pairwise(names)
            for nodes in lengths[curves[p, a] >= curves[p, b]]
        ]
        falling = [best[p, a] > best[p, b] for p in panels for a, b in pairwise(names)]
        off = {at: foreseen[at] - best[at] for at in curves}
        lost = max(float(curves[at][list(lengths).index(foreseen[at])] / curves[at].min()) for at in curves) - 1
        optima = "; ".join(f"{p}: " + ", ".join(f"{best[p, c]} at {c}" for c in names) for p in panels)
        return (
            STATE.judged(
                float(state.max() / state.min()) < 1.1,
                f"{state.min():g} to {state.max():g} rows on average",
                "it changes with the ring",
            ),
            LARGER.judged(
                not level,
                "; ".join(f"{p}: " + ", ".join(f"{curves[p, c].min():.2f} ms at {c}" for c in names) for p in panels)
                + ", each at its best length"
                + (f"; no increase with {'; '.join(level)}" if level else ""),
                "where a round of the network takes longer than the work of a node, the response time is that of the "
                "network, whatever matches",
            ),
            LONGER.judged(
                all(float(curve[-1]) > float(curve.min()) for curve in curves.values()),
                f"best lengths {min(best.values())} to {max(best.values())}; at {lengths[-1]} nodes "
                f"{min(float(c[-1] / c.min()) for c in curves.values()):.2f} to "
                f"{max(float(c[-1] / c.min()) for c in curves.values()):.2f} times the least",
                "the longest ring is still the best one",
            ),
            SMALLER.judged(
                all(falling),
                f"best lengths for {optima}",
                "it is smaller: the fewer pairs match, the less work there is to divide, while a round of the ring "
                "takes as long; Theorem 9 says so too, for N_1 grows with L_C",
            ),
            THEOREM_9.judged(
                all(abs(found) <= 1 for found in off.values()),
                f"foreseen less measured: {', '.join(f'{p}, {c}: {off[p, c]:+d}' for p, c in off)}; the response "
                f"time at the length foreseen is at most {lost:.0%} above the least",
                "Eq. 13.5 counts M rounds of the network and has a result wait for all of them, where the protocol has "
                "M - 1, and results come out all along the last of them",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        panels = cases(data, PANEL)
        for y, row in zip((RESPONSE, ROWS), canvas.subplots(2, len(panels), sharex=True, squeeze=False), strict=True):
            for axes, panel in zip(row, panels, strict=True):
                here = data.filter(pa.array([found == panel for found in data[PANEL].to_pylist()]))
                lines(axes, here, NODES, y)
                axes.set_title(panel, fontsize="small")
                if y == RESPONSE:
                    for drawn, case in zip(axes.get_lines()[:], cases(here, CASE), strict=True):
                        foreseen = float(column(here, FORESEEN, **{CASE: case})[0])
                        axes.axvline(foreseen, color=drawn.get_color(), linewidth=0.8, linestyle=":")
                else:
                    axes.set_ylim(bottom=0)
