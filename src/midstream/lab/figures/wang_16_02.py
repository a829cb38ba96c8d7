"""Wang Fig. 16.2: response time and state of PSP rings of many lengths, and Theorem 9 beside them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.ring import theorem_9
from midstream.lab.drawing import PANEL
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.ring_figures import (
    CASE,
    RESPONSE,
    ROWS,
    OverNodes,
    best_lengths,
    by_panel,
    curves,
    lengths,
    observed,
    values,
)
from midstream.lab.ring_settings import JOINS, MOST_NODES, SELECTIVITIES, SETTING, WAYS, costs, draws, merged, run
from midstream.lab.tidy import cases, column
from midstream.ring.cost import RingLoad, length

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SOURCE = "Wang §16.2, Fig. 16.2"
STATE = Claim("PSP has no duplicated states: memory is pretty stable among all the experiments.", SOURCE)
LARGER = Claim("The average response time increases for larger join selectivities.", SOURCE)
LONGER = Claim("With more nodes the response time does not decrease all the time: it increases when the cluster is "
               "too large.", SOURCE)  # fmt: skip
SMALLER = Claim("For smaller join selectivities the optimal number of nodes is larger.", SOURCE)
THEOREM_9 = Claim("The best length is that of Theorem 9, to within one node.", "Wang §13.2.2, Theorem 9")
MEAN = Claim("The best length is that of Theorem 9, to within one node, where latency is the mean over results as in "
             "§16.1: half a round for each step (§12.2.2), half of the last step's work, most results where "
             "most match.",
             "Wang §13.2.2, Theorem 9, put right")  # fmt: skip

DRAWS = {0.05: 16, 0.1: 16, 0.5: 4}
"""By selectivity: where less matches there are fewer results to take the mean of."""

PRINTED, PUT_RIGHT = "nodes by Theorem 9", "nodes by Theorem 9, put right"


class Wang1602(OverNodes):
    """One ring for each selectivity, join cost and number of nodes, over the same rows."""

    name: ClassVar[str] = "wang_16_02"
    title: ClassVar[str] = "PSP rings of 1 to 19 nodes"
    source: ClassVar[str] = SOURCE
    spreadings: ClassVar[frozenset[str]] = frozenset({"psp"})
    setting: ClassVar[str] = (
        "The ring tuple at a time on a virtual cluster. " + SETTING + "Quick: the rows of 1.5 s of each of 4 draws (16 "
        "at the smaller selectivities, which make fewer results), otherwise of 10 s. Response time is the mean over "
        "results, from the reading in of the row that completes a result; a dotted line is the length by Theorem 9, "
        "put right, which is given the rows that the windows held. State is the mean over the ends of cycles."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        for selectivity in SELECTIVITIES:
            drawn = draws(selectivity, scale, DRAWS[selectivity])
            for join in JOINS:
                for nodes in range(1, MOST_NODES + 1):
                    counts = merged(run(rows, join, nodes) for rows in drawn)
                    load = RingLoad.alike(WAYS, float(np.mean(counts.state_rows)) / WAYS, selectivity)
                    yield {
                        **observed(join, f"S {selectivity:g}", nodes, counts),
                        PRINTED: theorem_9(load, costs(join)),
                        PUT_RIGHT: length(load, costs(join), MOST_NODES),
                    }

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        state, measured, best = column(data, ROWS), curves(data, RESPONSE), best_lengths(data)
        panels, names = cases(data, PANEL), cases(data, CASE)
        nodes = lengths(data, (panels[0], names[0]))
        level = [
            f"{p}, {count} nodes"
            for p in panels
            for a, b in pairwise(names)
            for count, smaller, larger in zip(nodes, measured[p, a], measured[p, b], strict=True)
            if smaller >= larger
        ]
        falling = [best[p, a] > best[p, b] for p in panels for a, b in pairwise(names)]
        over = [float(curve[-1] / curve.min()) for curve in measured.values()]
        optima = by_panel({(p, c): f"{count} at {c}" for (p, c), count in best.items()})
        return (
            STATE.judged(
                float(state.max() / state.min()) < 1.1,
                f"{state.min():g} to {state.max():g} rows on average",
                "it changes with the ring",
            ),
            LARGER.judged(
                not level,
                by_panel({(p, c): f"{curve.min():.2f} ms at {c}" for (p, c), curve in measured.items()})
                + ", each at its best length"
                + (f"; no increase with {'; '.join(level)}" if level else ""),
                "where a round of the network takes longer than the work of a node, the response time is that of the "
                "network, whatever matches",
            ),
            LONGER.judged(
                min(over) > 1,
                f"best lengths {min(best.values())} to {max(best.values())}; at {nodes[-1]} nodes "
                f"{min(over):.2f} to {max(over):.2f} times the least",
                "the longest ring is still the best one",
            ),
            SMALLER.judged(
                all(falling),
                f"best lengths for {optima}",
                "it is smaller: the fewer pairs match, the less work there is to divide, while a round of the ring "
                "takes as long; Theorem 9 says so too, for N_1 grows with L_C",
            ),
            _within_one(
                THEOREM_9,
                data,
                PRINTED,
                "Eq. 13.5 has a result wait for M rounds of the network and for all the work of a node; but the "
                "protocol has M - 1 rounds (Theorem 7), results come out all along the last of them, and most results "
                "are those of rows that match much",
            ),
            _within_one(MEAN, data, PUT_RIGHT, "steps overlap otherwise than evenly"),
        )

    @override
    def mark(self, axes: Axes, data: pa.Table, panel: str) -> None:
        for drawn, case in zip(axes.get_lines()[:], cases(data, CASE), strict=True):
            found = float(column(data, PUT_RIGHT, **{PANEL: panel, CASE: case})[0])
            axes.axvline(found, color=drawn.get_color(), linewidth=0.8, linestyle=":")


def _within_one(claim: Claim, data: pa.Table, by: str, reason: str) -> Verdict:
    # A model's length must nowhere be further than one node from what was measured to be best.
    best, measured = best_lengths(data), curves(data, RESPONSE)
    named = {at: int(found) for at, found in values(data, by).items()}
    off = {at: named[at] - best[at] for at in best}
    lost = max(float(measured[at][lengths(data, at).index(named[at])] / measured[at].min()) for at in best) - 1
    return claim.judged(
        all(abs(found) <= 1 for found in off.values()),
        f"within one node at {sum(abs(found) <= 1 for found in off.values())} of {len(off)} settings; foreseen less "
        f"measured: {', '.join(f'{p}, {c}: {found:+d}' for (p, c), found in off.items())}; the response time at the "
        f"length foreseen is at most {lost:.0%} above the least",
        reason,
    )
