"""Wang Figs. 12.6 and 12.7: what a dynamic head and tail save, with one row under way and with several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.ring_cluster import DynamicRing, RingCluster
from midstream.lab.ring_figures import CASE, PAIRS, RESPONSE, RESULTS, SENT, OverNodes, curves, lengths, observed
from midstream.lab.ring_settings import LENGTHS, SETTING, WINDOW, arrivals, costs
from midstream.lab.tidy import cases

SOURCE = "Wang §12.5, §12.6, Fig. 12.6, Fig. 12.7"
ONCE = Claim("PSP-D avoids the repeated insertion into and purging from a slice: PSP has both once for each slice.",
             SOURCE)  # fmt: skip
ALIKE = Claim("Probing and propagation of intermediate results are exactly as in PSP: equal pairs and results.", SOURCE)
HEADS = Claim("With several rows under way there are several heads and tails, on several nodes.", SOURCE)
SOONER = Claim("What is saved shows in the response time.", SOURCE)

PSP, PSP_D, PSP_I, PSP_DI = "PSP", "PSP-D", "PSP-I, 8 rows", "PSP-D, 8 rows"
RINGS: dict[str, tuple[type[RingCluster], int]] = {
    PSP: (RingCluster, 0),
    PSP_D: (DynamicRing, 0),
    PSP_I: (RingCluster, 8),
    PSP_DI: (DynamicRing, 8),
}
INSERTED, PURGED, MOST_HEADS = "insertions of a row", "purges of a row", "heads at once"
SELECTIVITY = 0.05
TOUCH = 5e-6
"""T_i and T_p in seconds, as T_s."""


class Wang1207(OverNodes):
    """Each scheme with each number of nodes, over the same rows."""

    name: ClassVar[str] = "wang_12_07"
    title: ClassVar[str] = "what a moving head and tail save"
    source: ClassVar[str] = SOURCE
    spreadings: ClassVar[frozenset[str]] = frozenset({"psp", "psp_i", "psp_d"})
    setting: ClassVar[str] = (
        "The ring tuple at a time on a virtual cluster, selectivity 0.05, small join, T_i and T_p 5 us. "
        + SETTING.replace(", one row after another", "")
        + "The next row is there whenever the ring takes one. Quick: the rows of 1.5 s, otherwise of 10 s. Insertions "
        "and purges are over the rows read in; in so few seconds a row of PSP goes through some of the slices only, "
        "and as many rows as come go through each."
    )

    @override
    def runs(self, scale: Scale) -> Iterator[dict[str, Any]]:
        rows, priced = arrivals(SELECTIVITY, scale), replace(costs("small join"), insert=TOUCH, purge=TOUCH)
        for nodes in LENGTHS:
            for case, (ring, concurrent) in RINGS.items():
                counts = ring(rows, WINDOW, nodes, priced, begin=WINDOW, concurrent=concurrent, queued=True).run()
                read = len(counts.compared)
                yield {
                    **observed(f"selectivity {SELECTIVITY:g}", case, nodes, counts),
                    INSERTED: counts.inserted / read,
                    PURGED: counts.purged / read,
                    SENT: sum(counts.sent.values()) / read,
                    PAIRS: sum(counts.compared.values()),
                    RESULTS: len(set(map(frozenset, counts.results))) if not counts.violations else 0,
                    MOST_HEADS: int(np.max(counts.heads)),
                }

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        (panel,) = {at[0] for at in curves(data, RESPONSE)}
        inserted, purged, sent, heads, pairs, results, responses = (
            {case: curves(data, name)[panel, case] for case in cases(data, CASE)}
            for name in (INSERTED, PURGED, SENT, MOST_HEADS, PAIRS, RESULTS, RESPONSE)
        )
        nodes = np.array(lengths(data, (panel, PSP)))
        moving, staying = (PSP, PSP_I), (PSP_D, PSP_DI)
        alike = results[PSP].min() > 0 and all(
            bool((found[case] == found[PSP]).all()) for found in (pairs, results) for case in RINGS
        )
        faster = {one: responses[one] / responses[other] for one, other in zip(staying, moving, strict=True)}
        return (
            ONCE.judged(
                # In a full ring as many rows go through each slice as come; which ones are in between is chance.
                all(bool((inserted[case] == 1).all() and (purged[case] <= 1.2).all()) for case in staying)
                and all(bool((abs(inserted[case] / nodes - 1) < 0.2).all()) for case in moving),
                "; ".join(
                    f"{case} {inserted[case][0]:.2f} to {inserted[case][-1]:.2f} insertions and "
                    f"{purged[case][0]:.2f} to {purged[case][-1]:.2f} purges of a row, "
                    f"{sent[case][0]:.1f} to {sent[case][-1]:.1f} tuples sent"
                    for case in RINGS
                )
                + f" with {nodes[0]} to {nodes[-1]} nodes",
                "rows are put into other numbers of states",
            ),
            ALIKE.judged(
                alike,
                f"{pairs[PSP][0]:,.0f} pairs and {results[PSP][0]:,.0f} results of each, with any number of nodes",
                "the rings differ in what they compare or find",
            ),
            HEADS.judged(
                bool((heads[PSP_DI] > 1).any()) and all(bool((heads[c] == 1).all()) for c in (PSP, PSP_I, PSP_D)),
                f"at most {heads[PSP_DI].max():.0f} nodes were heads at once with 8 rows under way, 1 with one row",
                "the rows under way are of one slice",
            ),
            SOONER.judged(
                all(bool((found < 1).all()) for found in faster.values()),
                "; ".join(f"{case} {found.min():.2f} to {found.max():.2f} times" for case, found in faster.items())
                + " the response time of PSP, and of PSP-I",
                "where several rows are under way, a node may be the head of one while partial results of others wait",
            ),
        )
