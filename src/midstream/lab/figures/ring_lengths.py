"""Wang Figs. 16.2 and 16.3: response time and state of PSP rings over their length, and Theorem 9 beside them."""

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
from midstream.lab.ring_settings import (
    JOINS,
    LENGTHS,
    MOST_NODES,
    SELECTIVITIES,
    SETTING,
    WAYS,
    arrivals,
    costs,
    draws,
    merged,
    run,
)
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


SOURCE_16_03 = "Wang §16.3, Fig. 16.3"
DUPLICATED = Claim("PSP-I has some duplicated states: it keeps more than PSP in all the experiments.", SOURCE_16_03)
STABLE = Claim("The response time of PSP-I is pretty stable: more nodes do not reduce it.", SOURCE_16_03)
MORE_AT_ONCE = Claim("More nodes increase the rows that are processed at the same time.", SOURCE_16_03)

ALONE, PER_SECOND = "PSP", "rows a second"
AT_ONCE = (2, 4, 8)
"""How many rows PSP-I processes at once; with the number of nodes for one more case."""

AS_NODES = "PSP-I, as many rows as nodes"
SELECTIVITY = 0.05
PANELS = {**{f"3-way, {join}": (3, join) for join in JOINS}, "5-way, small join": (5, "small join")}
STABLY = 1.5
"""A curve that never goes further up and down than so many times its least is called stable."""


class Wang1603(OverNodes):
    """One ring for each join, number of nodes and number of rows at once, over the same rows."""

    name: ClassVar[str] = "wang_16_03"
    title: ClassVar[str] = "PSP rings with several rows at once"
    source: ClassVar[str] = SOURCE_16_03
    spreadings: ClassVar[frozenset[str]] = frozenset({"psp", "psp_i"})
    setting: ClassVar[str] = (
        "The ring tuple at a time on a virtual cluster, selectivity 0.05; five streams likewise for 5-way. "
        + SETTING.replace(", one row after another", "")
        + "The next row is there whenever the ring takes one, or else no two would ever be under way. Quick: the rows "
        "of 1.5 s, otherwise of 10 s. Response time is the mean over results, from the reading in of the row."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        for panel, (ways, join) in PANELS.items():
            rows = arrivals(SELECTIVITY, scale, ways=ways)
            for nodes in LENGTHS:
                at_once = {ALONE: 0, **{f"PSP-I, {count} rows": count for count in AT_ONCE}, AS_NODES: nodes}
                for case, concurrent in at_once.items():
                    counts = run(rows, join, nodes, concurrent=concurrent, queued=True)
                    yield {
                        **observed(panel, case, nodes, counts),
                        PER_SECOND: len(counts.compared) / counts.finished,
                    }

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        states, responses, paces = (curves(data, name) for name in (ROWS, RESPONSE, PER_SECOND))
        interleaved = [at for at in states if at[1] != ALONE]
        kept = {at: states[at] / states[at[0], ALONE] for at in interleaved}
        swing = {at: float(responses[at].max() / responses[at].min()) for at in interleaved}
        growth = {at: float(paces[at][-1] / paces[at][0]) for at in interleaved}
        shortest, longest = lengths(data, interleaved[0])[0], lengths(data, interleaved[0])[-1]
        names = [case for case in cases(data, CASE) if case != ALONE]
        return (
            DUPLICATED.judged(
                all(float(found.min()) > 1 for found in kept.values()),
                _ranges(names, {at: (float(f.min()), float(f.max())) for at, f in kept.items()}, "times PSP's state"),
                "somewhere nothing is kept for a probe under way",
            ),
            STABLE.judged(
                all(found <= STABLY for found in swing.values()),
                _ranges(names, {at: (f, f) for at, f in swing.items()}, "from least to most"),
                "with so many rows at once, whatever the nodes, more nodes leave less work to each, as in PSP, until "
                "the network's rounds take longer",
            ),
            MORE_AT_ONCE.judged(
                all(found > 1 for at, found in growth.items() if at[1] == AS_NODES),
                f"rows a second at {longest} over those at {shortest} nodes: "
                + _ranges(names, {at: (f, f) for at, f in growth.items()}, "times"),
                "the network's rounds grow as fast as the rows at once",
            ),
        )


def _ranges(names: list[str], found: dict[tuple[str, str], tuple[float, float]], unit: str) -> str:
    # Over the panels, the least and the most of every case.
    parts = []
    for name in names:
        here = [span for (_, case), span in found.items() if case == name]
        parts.append(f"{name} {min(low for low, _ in here):.2f} to {max(high for _, high in here):.2f}")
    return f"{', '.join(parts)} {unit}"
