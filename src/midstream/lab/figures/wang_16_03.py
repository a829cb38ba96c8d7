"""Wang Fig. 16.3: PSP rings that process several rows at once, over their length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.ring_figures import CASE, RESPONSE, ROWS, OverNodes, curves, lengths, observed
from midstream.lab.ring_settings import JOINS, LENGTHS, SETTING, arrivals, run
from midstream.lab.tidy import cases

SOURCE = "Wang §16.3, Fig. 16.3"
DUPLICATED = Claim("PSP-I has some duplicated states: it keeps more than PSP in all the experiments.", SOURCE)
STABLE = Claim("The response time of PSP-I is pretty stable: more nodes do not reduce it.", SOURCE)
MORE_AT_ONCE = Claim("More nodes increase the rows that are processed at the same time.", SOURCE)

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
    source: ClassVar[str] = SOURCE
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
