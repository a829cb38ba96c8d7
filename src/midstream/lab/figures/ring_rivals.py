"""Wang Figs. 16.4 and 16.5: ATR and CTR over the number of nodes, beside PSP."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.ring_figures import CASE, RESPONSE, ROWS, Curves, OverNodes, by_panel, curves, lengths, observed
from midstream.lab.ring_routed import MICROSECONDS
from midstream.lab.ring_settings import LENGTHS, RATE, SETTING, WAYS, WINDOW, draws, merged, routed, run
from midstream.lab.tidy import cases

SOURCE = "Wang §16.4, Fig. 16.4"
NOT_FASTER = Claim("The average response time of ATR does not decrease by adding nodes: one node does all the work for "
                   "a row.", SOURCE)  # fmt: skip
GROWING = Claim("The state of ATR increases steadily with the number of nodes.", SOURCE)

SELECTIVITY, PANELS, SEGMENTS = 0.1, ("small join", "middle join"), (10, 20, 30, 40, 50)
NOISE = 0.05
WHOLE = "rows, segments kept whole"


def kept_whole(nodes: int, segment: float) -> int:
    """Count the rows at ATR's nodes when a segment ends, if a node drops one only as its next one begins (§15.1)."""
    random, copies = np.random.default_rng(nodes), 0
    # So late that every node has had a segment with a window of rows before it.
    end = nodes * segment + WINDOW
    for stream in range(WAYS):
        times = random.uniform(0.0, end, random.poisson(RATE * end))
        wider = WINDOW if stream else 0.0
        for begin in end - segment * np.arange(1, nodes + 1):
            copies += int(((times >= begin - wider) & (times < begin + segment + wider)).sum())
    return copies


class Wang1604(OverNodes):
    """ATR itself, one cluster for each join, number of nodes and length of segments, over the same rows."""

    name: ClassVar[str] = "wang_16_04"
    title: ClassVar[str] = "ATR on 4 to 19 nodes"
    source: ClassVar[str] = SOURCE
    spreadings: ClassVar[frozenset[str]] = frozenset({"atr"})
    setting: ClassVar[str] = (
        "ATR tuple at a time on a virtual cluster, selectivity 0.1, the middle stream of the chain as master, segments "
        "of 10 to 50 s. A node of its own sends the rows. " + SETTING + "Quick: the rows of 1.5 s of each of 4 draws, "
        "otherwise of 10 s; the draws begin a quarter of 50 s apart, for segments lie at fixed times. Rows that no "
        "window reaches any more are dropped. The data also count the rows of nodes that keep each segment until their "
        "next one begins, as the formula of §15.1 does."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        drawn = draws(SELECTIVITY, scale)
        for join in PANELS:
            for seconds in SEGMENTS:
                for nodes in LENGTHS:
                    counts = routed("atr", join, nodes, drawn, segment=round(seconds * MICROSECONDS))
                    found = observed(join, f"segments of {seconds} s", nodes, counts)
                    yield {**found, WHOLE: kept_whole(nodes, seconds)}

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        names, responses, states, whole = cases(data, CASE), *(curves(data, name) for name in (RESPONSE, ROWS, WHOLE))
        faster = {at: 1 - float(curve.min() / curve[0]) for at, curve in responses.items()}
        span = lengths(data, next(iter(states)))
        panel = next(iter(states))[0]
        return (
            NOT_FASTER.judged(
                max(faster.values()) <= NOISE,
                f"from {span[0]} nodes on, at most {max(faster.values()):.0%} less",
                "several nodes hold what joins a row, and share its work",
            ),
            GROWING.judged(
                all(bool((np.diff(whole[panel, name]) > 0).all()) for name in names),
                f"{span[0]} to {span[-1]} nodes: rows where a node keeps its segment until its next one begins, as in "
                f"§15.1's formula, {_ends(names, whole, panel)}; where it drops what no window reaches any more "
                f"{_ends(names, states, panel)}",
                "a row is copied to the nodes of the segments that its window meets, however many nodes there are",
            ),
        )


def _ends(names: list[str], states: Curves, panel: str) -> str:
    return ", ".join(f"{states[panel, name][0]:,.0f} to {states[panel, name][-1]:,.0f} ({name})" for name in names)


SOURCE_16_05 = "Wang §16.4, Fig. 16.5"
FALLING = Claim("The response time of CTR decreases with more nodes.", SOURCE_16_05)
MORE_COPIES = Claim("For a fixed number of nodes more copies result in a larger response time.", SOURCE_16_05)
STATE = Claim("The state of CTR is rather stable over the nodes, and increases with more copies.", SOURCE_16_05)
OVERALL = Claim("Overall, PSP with optimal settings performs better than ATR and CTR.", "Wang §16.4")

SELECTIVITY_16_05, PANELS_16_05, COPIES = 0.1, ("small join", "middle join"), (1, 2, 4, 8)
PSP, ATR = "psp", "atr, segments of 20 s"
TWO_WINDOWS = round(2 * WINDOW * MICROSECONDS)


class Wang1605(OverNodes):
    """CTR itself, one cluster for each join, number of nodes and number of copies, over the same rows."""

    name: ClassVar[str] = "wang_16_05"
    title: ClassVar[str] = "CTR on 4 to 19 nodes, and its rivals"
    source: ClassVar[str] = SOURCE_16_05
    spreadings: ClassVar[frozenset[str]] = frozenset({"ctr", "atr", "psp"})
    setting: ClassVar[str] = (
        "CTR tuple at a time on a virtual cluster, selectivity 0.1, segments of a tenth of a window, 1 to "
        "8 copies, at most half as many as nodes, on nodes drawn by hash. Beside it ATR and a "
        "PSP ring over the same rows. A node of its own sends the rows of ATR and CTR. " + SETTING + "Quick: the rows "
        "of 1.5 s of each of 4 draws, otherwise of 10 s."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        drawn = draws(SELECTIVITY_16_05, scale)
        for join in PANELS_16_05:
            for nodes in LENGTHS:
                for copies in (count for count in COPIES if 2 * count <= nodes):
                    counts = routed("ctr", join, nodes, drawn, segment=TWO_WINDOWS // 20, copies=copies)
                    yield observed(join, _copies(copies), nodes, counts)
                yield observed(join, ATR, nodes, routed("atr", join, nodes, drawn, segment=TWO_WINDOWS))
                yield observed(join, PSP, nodes, merged(run(rows, join, nodes) for rows in drawn))

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        responses, states, panels = curves(data, RESPONSE), curves(data, ROWS), cases(data, PANEL)
        ctr = [at for at in responses if at[1] not in (PSP, ATR)]
        falls = {at: float(responses[at][-1] / responses[at][0]) for at in ctr}
        levels = {at: float(states[at].mean()) for at in ctr}
        stable = max(float(states[at].max() / states[at].min()) for at in ctr) - 1
        slower = [
            float(responses[panel, more][-1] / responses[panel, fewer][-1])
            for panel in panels
            for fewer, more in pairwise(name for at, name in ctr if at == panel)
        ]
        best = {at: float(curve.min()) for at, curve in responses.items()}
        margins = [best[panel, name] / best[panel, PSP] for panel, name in best if name != PSP]
        longest = lengths(data, ctr[0])[-1]
        return (
            FALLING.judged(
                all(found < 1 for found in falls.values()),
                "the last over the first length: " + ", ".join(f"{p}, {c} {f:.2f}" for (p, c), f in falls.items()),
                "with 8 copies the shortest ring has 16 nodes already: a few more add messages, and little speed",
            ),
            MORE_COPIES.judged(
                all(found > 1 for found in slower),
                f"at {longest} nodes, each number of copies over the one before: "
                + ", ".join(f"{found:.2f}" for found in slower),
                "fewer nodes suffice for a hop, which saves messages as well as it costs comparisons at a time",
            ),
            STATE.judged(
                stable < 0.1 and all(levels[p, a] < levels[p, b] for p, a in ctr for q, b in ctr if p == q and a < b),
                ", ".join(f"{c} {levels[p, c]:.0f} rows" for p, c in ctr if p == panels[0])
                + f"; over the nodes {stable:.1%} more or less",
                "a row has another number of copies",
            ),
            OVERALL.judged(
                min(margins) > 1,
                by_panel({(p, n): f"{n} {found:.2f} ms" for (p, n), found in best.items()})
                + ", each at its best length",
                "with short segments CTR's nodes compare a part each of what joins a row, as PSP's slices do; a hop "
                "goes straight to them instead of round the ring",
            ),
        )


def _copies(count: int) -> str:
    return f"ctr, {count} {'copy' if count == 1 else 'copies'}"
