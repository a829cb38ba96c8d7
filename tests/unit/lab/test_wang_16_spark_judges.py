"""Wang's claims on Figs. 16.2 to 16.7 on Spark, judged on made-up data: each verdict can be either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from midstream.lab.drawing import PANEL
from midstream.lab.figure import Judgement
from midstream.lab.figures.ring_over_time import OFF, RELOCATED, SMOOTHED
from midstream.lab.figures.wang_16_spark import (
    AFTER,
    BOTH,
    BURSTS,
    BUSIEST,
    COPIES,
    FIVE,
    HOST,
    LENGTHS,
    MOVED,
    PAIRS,
    RINGS_OF,
    ROUTED,
    SEGMENTS,
    STEADY,
    TIME,
    VISITS,
    Wang16Spark,
)  # fmt: skip
from midstream.lab.ring_figures import CASE, NODES, RESULTS, ROWS
from midstream.lab.ring_on_spark import CLUSTER, SPARK
from midstream.lab.ring_settings import SELECTIVITIES
from midstream.lab.tidy import table

AS_CLAIMED = {OFF: 4.0, SMOOTHED: 3.0, RELOCATED: 2.0}


def rings() -> Iterator[dict[str, Any]]:
    """Every ring with any number of nodes, as the claims have it."""
    for selectivity in SELECTIVITIES:
        for scheme in ("psp", "psp_d", *(("psp_i",) if selectivity == SELECTIVITIES[0] else ())):
            for nodes in LENGTHS:
                yield observed(RINGS_OF.format(selectivity), scheme, nodes, busiest=100 * selectivity / nodes)
    for scheme in ("psp", "psp_d", "psp_i"):
        for nodes in LENGTHS[:2]:
            yield observed(FIVE, scheme, nodes, busiest=400 / nodes)
    for nodes in LENGTHS:
        for seconds in SEGMENTS:
            yield observed(ROUTED, f"atr, segments of {seconds} s", nodes, busiest=90.0)
        for copies in (count for count in COPIES if 2 * count <= nodes):
            busiest = 90 * copies / nodes
            yield observed(ROUTED, f"ctr, copies {copies}", nodes, busiest=busiest, rows=100.0 * copies)
    for panel in BURSTS:
        for case, last in AS_CLAIMED.items():
            for step in range(STEADY + AFTER):
                found = observed(panel, case, 5, busiest=last if step >= STEADY else 1.0)
                yield {**found, TIME: step}


def observed(panel: str, case: str, nodes: int, *, busiest: float, rows: float = 100.0) -> dict[str, Any]:
    rows = 120.0 if case == "psp_i" else rows
    found = {PANEL: panel, CASE: case, NODES: nodes, TIME: 3, PAIRS: 50.0, BUSIEST: busiest, VISITS: 9.0, ROWS: rows}
    return {**found, MOVED: float(case == "psp"), RESULTS: 7, BOTH: 7}


def of(host: str = SPARK, since: int = 0, **where: Any) -> Any:
    """Whether a row is of a host, of these values, and not before a time; a text is the beginning of one."""
    named = {"panel": PANEL, "case": CASE, "nodes": NODES}

    def chosen(row: dict[str, Any]) -> bool:
        values = ((row[named[name]], value) for name, value in where.items())
        return (
            row[HOST] == host
            and row[TIME] >= since
            and all(str(found).startswith(str(value)) for found, value in values)
        )

    return chosen


BURST = tuple(BURSTS)


@pytest.mark.parametrize(
    ("claim", "where", "column", "factor"),
    [
        ("PSP has no duplicated states", of(case="psp_d", nodes=19), ROWS, 1.2),
        ("The average response time increases for larger", of(panel="16.2, S 0.1", case="psp"), BUSIEST, 0.4),
        ("PSP-I keeps more than PSP", of(panel=FIVE, case="psp_i", nodes=10), ROWS, 0.5),
        ("More nodes do not make ATR faster", of(case="atr", nodes=19), BUSIEST, 0.9),
        ("The response time of CTR decreases", of(case="ctr, copies 2", nodes=19), BUSIEST, 9.0),
        ("For a fixed number of nodes more copies", of(case="ctr, copies 8"), BUSIEST, 0.1),
        ("The state of CTR is rather stable", of(case="ctr, copies 1", nodes=10), ROWS, 1.2),
        ("Overall, PSP with optimal settings", of(panel=RINGS_OF.format(0.1), case="psp"), BUSIEST, 99.0),
        (
            "Fig. 16.6: runtime adaptation makes the system more stable, by slices by count against",
            of(since=STEADY, panel=BURST[0], case=OFF),
            BUSIEST,
            0.1,
        ),
        (
            "Fig. 16.7: runtime adaptation makes the system more stable, by slices by count, length",
            of(since=STEADY, panel=BURST[2], case=RELOCATED),
            BUSIEST,
            9.0,
        ),
        ("equal results", of(CLUSTER, case="ctr"), RESULTS, 2),
        ("within 5 %", of(panel=FIVE, case="psp_d"), PAIRS, 1.2),
        ("within 5 %", of(panel=FIVE, case="psp_d"), BUSIEST, 1.3),
        ("PSP-D moves no row", of(panel=FIVE, case="psp", nodes=4), MOVED, 0),
    ],
)
def test_a_claim_that_holds_fails_of_other_data(claim: str, where: Any, column: str, factor: float) -> None:
    rows = [{HOST: host, **row} for row in rings() for host in (SPARK, CLUSTER)]
    before = {v.claim: v.finding for v in Wang16Spark().judge(table(rows))}
    assert set(before.values()) == {Judgement.HOLDS, Judgement.UNTESTED}
    for row in (row for row in rows if where(row)):
        row[column] *= factor
    after = {v.claim: v.finding for v in Wang16Spark().judge(table(rows))}
    changed = [one.text for one in after if after[one] is not before[one]]
    assert any(claim in text for text in changed), changed
