"""Wang Fig. 16.4: ATR with segments of several lengths, over the number of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.ring_figures import CASE, RESPONSE, ROWS, OverNodes, curves, lengths, listed, observed
from midstream.lab.ring_routed import MICROSECONDS
from midstream.lab.ring_settings import LENGTHS, SETTING, draws, routed
from midstream.lab.tidy import cases

SOURCE = "Wang §16.4, Fig. 16.4"
NOT_FASTER = Claim("The average response time of ATR does not decrease by adding nodes: one node does all the work for "
                   "a row.", SOURCE)  # fmt: skip
GROWING = Claim("The state of ATR increases steadily with the number of nodes.", SOURCE)

SELECTIVITY, PANELS, SEGMENTS = 0.1, ("small join", "middle join"), (10, 20, 30, 40, 50)
NOISE = 0.05


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
        "window reaches any more are dropped."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        drawn = draws(SELECTIVITY, scale)
        for join in PANELS:
            for seconds in SEGMENTS:
                for nodes in LENGTHS:
                    counts = routed("atr", join, nodes, drawn, segment=round(seconds * MICROSECONDS))
                    yield observed(join, f"segments of {seconds} s", nodes, counts)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        names, responses, states = cases(data, CASE), curves(data, RESPONSE), curves(data, ROWS)
        faster = {at: 1 - float(curve.min() / curve[0]) for at, curve in responses.items()}
        span = lengths(data, next(iter(states)))
        panel = next(iter(states))[0]
        return (
            NOT_FASTER.judged(
                max(faster.values()) <= NOISE,
                f"from {span[0]} nodes on, at most {max(faster.values()):.0%} less",
                "several nodes hold what joins a row, and share its work",
            ),
            GROWING.untested(
                f"{span[0]} to {span[-1]} nodes: rows on average "
                + listed((f"{name} {low}", high) for name in names
                         for low, high in [_ends(float(states[panel, name][0]), float(states[panel, name][-1]))]),
                "a row is copied to the nodes of the segments that its window meets, however many nodes there are; the "
                "formula of §15.1 has each node keep its segment whole until its next one comes",
            ),
        )  # fmt: skip


def _ends(first: float, last: float) -> tuple[str, float]:
    return f"{first:.0f} to", last
