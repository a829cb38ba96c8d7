"""Wang Fig. 15.1: ATR, CTR and PSP beside one another; the table's words as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.ring_figures import CASE, PAIRS, RESULTS, SENT, OfRing, listed, steps_of_spread
from midstream.lab.ring_spread import SpreadStreams, spread
from midstream.lab.tidy import column
from midstream.ring.columns import StreamRows
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import Spreading, spreadings

SOURCE = "Wang §15.1, Fig. 15.1"
MEMORY = Claim("ATR keeps 2 (W / T) (M - 1) / M copies beside each row, CTR L in all; PSP never duplicates.", SOURCE)
EXTRA = Claim("Where W is comparable with T, ATR takes extra CPU for what it duplicates.", "Wang §15.1")
DUPLICATES = Claim("Duplicates must be removed with CTR, and with neither ATR nor PSP.", SOURCE)
BALANCE = Claim("The granularity of load balancing is large with ATR, small with CTR and PSP.", SOURCE)
NETWORK = Claim("Network transmission is low with ATR, middle with CTR, high with PSP.", SOURCE)

LABELS, WINDOW, NODES, COPIES = "ABC", 1_000_000, 4, 2
SEGMENT = 2 * WINDOW
RIVALS = ("one_lane", "atr", "ctr", "psp", "psp_d")
RINGS = ("psp", "psp_d")
SHORT = "ctr, short segments"
KEPT, TWICE, BUSIEST = "copies of a row", "met twice", "busiest / mean node"
SLAVES = "nodes that hold a pair of two slaves"
EVEN = 2.0
"""The busiest node does at most so many times the mean where the granularity of load balancing is small."""


def nodes_of_a_pair(spreading: Spreading, streams: SpreadStreams, deployment: Deployment, window: int) -> float:
    """Average over the pairs of rows of two slaves, a window or less apart, the nodes that hold both."""
    times = [streams.times[label] for label in LABELS[1:]]
    held = [np.zeros((len(ts), deployment.nodes), np.int64) for ts in times]
    for at, label in enumerate(LABELS[1:]):
        copies = spreading.home(deployment, label, StreamRows(times[at], {}))
        held[at][copies.row, copies.node] = 1
    near = np.abs(times[0][:, None] - times[1][None, :]) <= window
    return float((held[0] @ held[1].T)[near].mean())


class Wang1501(OfRing):
    """The spreadings themselves over one set of rows, in the sets of a step."""

    name: ClassVar[str] = "wang_15_01"
    title: ClassVar[str] = "ATR, CTR and PSP over the same streams"
    source: ClassVar[str] = SOURCE
    spreadings: ClassVar[frozenset[str]] = frozenset(RIVALS)
    setting: ClassVar[str] = (
        "The ways of spreading a join over nodes, by the sets of rows and visits of each step: three streams of 50"
        " rows in a window, every pair that is compared matches with probability 0.1, a step is a tenth of a "
        "window, four nodes, segments of two windows, two copies for CTR; CTR also with segments of a tenth of a "
        "window. A node compares a partial result with every row of the stream that it keeps. Sent is every row to a "
        "node that comes to keep it, and every partial result to a node that it visits but its own. Quick: 5 windows, "
        "otherwise 30, after one that fills."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        steps = steps_of_spread(scale)
        streams = SpreadStreams.drawn(LABELS, 50, 0.1, WINDOW, steps, seed=15)
        windows = dict.fromkeys(LABELS, WINDOW)
        deployment = Deployment(windows, NODES, master=LABELS[0], segment=SEGMENT, copies=COPIES)
        short = replace(deployment, segment=WINDOW // 10)
        for case, at in (*((name, deployment) for name in RIVALS), (SHORT, short)):
            spreading = spreadings()[case.partition(",")[0]]
            counts = spread(spreading, streams, at, steps)
            yield {
                CASE: case,
                KEPT: counts.copies,
                PAIRS: counts.compared,
                TWICE: counts.twice,
                BUSIEST: counts.busiest,
                SENT: counts.sent,
                RESULTS: counts.results,
                SLAVES: nodes_of_a_pair(spreading, streams, at, WINDOW) if case == "atr" else None,
            }

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        def of(name: str) -> dict[str, float]:
            return {case: float(column(data, name, case=case)[0]) for case in (*RIVALS, SHORT)}

        copies, pairs, twice, busiest, sent = map(of, (KEPT, PAIRS, TWICE, BUSIEST, SENT))
        slaves = float(column(data, SLAVES, case="atr")[0])
        foreseen = 1 + 2 * (WINDOW / SEGMENT) * (len(LABELS) - 1) / len(LABELS)
        return (
            MEMORY.judged(
                abs(copies["atr"] / foreseen - 1) < 0.03
                and copies["ctr"] == COPIES
                and all(copies[ring] == 1 for ring in RINGS),
                f"{listed(copies.items())}; by the formula {foreseen:.3g} for atr",
                "they keep other numbers of copies",
            ),
            EXTRA.judged(
                slaves > 1,
                f"{slaves:.2f} nodes hold a pair of rows of two slaves, and compare it unless a slave's row visits the "
                f"master first, as the engine's does: pairs compared there {listed(pairs.items())}",
                "no two nodes hold the same pair",
            ),
            DUPLICATES.judged(
                twice[SHORT] > 0 and not any(twice[name] for name in ("atr", *RINGS)),
                f"pairs that meet more than once: {listed(twice.items())}",
                "other nodes of a cover hold nothing of what one of them answers for",
            ),
            BALANCE.judged(
                busiest["atr"] > EVEN and max(busiest[name] for name in (SHORT, *RINGS)) < EVEN,
                f"{listed(busiest.items())}; with long segments CTR's probes go to the few nodes that hold the newest",
                "the shares of the nodes are others",
            ),
            NETWORK.judged(
                sent["atr"] < sent["ctr"] < min(sent[ring] for ring in RINGS),
                listed(sent.items()),
                "the order is another one",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for axes, name in zip(canvas.subplots(1, 4), (KEPT, PAIRS, BUSIEST, SENT), strict=True):
            axes.bar(data[CASE].to_pylist(), column(data, name), 0.7)
            axes.set_title(name, fontsize="small")
            axes.tick_params(axis="x", rotation=60, labelsize="x-small")
            axes.tick_params(axis="y", labelsize="x-small")
            axes.spines[["top", "right"]].set_visible(False)
