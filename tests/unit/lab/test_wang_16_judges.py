"""Wang's claims on Figs. 16.1 to 16.3, judged on made-up data: each verdict can be either."""

from __future__ import annotations

import pyarrow as pa
import pytest

from midstream.lab.drawing import PANEL
from midstream.lab.figures import ring_lengths as interleaved
from midstream.lab.figures import ring_lengths as lengths
from midstream.lab.figures import wang_16_01 as costs
from midstream.lab.ring_figures import CASE, NODES, RESPONSE, ROWS
from midstream.lab.tidy import table


@pytest.mark.parametrize(("last_sent", "last_cost", "expected"), [(7, 4.0, True), (8, 4.0, False), (7, 2.0, False)])
def test_the_network_costs_the_same(last_sent: int, last_cost: float, expected: bool) -> None:
    sent, means = (7, 7, 7, last_sent), (9.0, 1.0, 2.0, last_cost)
    data = table(
        {CASE: case, costs.MEAN: mean, costs.DEVIATION: 0.1, costs.SENT: count}
        for case, mean, count in zip("nsml", means, sent, strict=True)
    )
    assert costs.Wang1601().judge(data)[0].holds == expected


def rings(low: list[float], high: list[float], foreseen: int, state: float = 100.0, right: int = 3) -> pa.Table:
    """Response times of rings of 1, 2, ... nodes at a low and a high selectivity."""
    return table(
        {
            PANEL: "small join",
            CASE: case,
            NODES: nodes,
            RESPONSE: response,
            ROWS: state if nodes > 1 else 100.0,
            lengths.PRINTED: foreseen,
            lengths.PUT_RIGHT: right,
        }
        for case, curve in (("S 0.1", low), ("S 0.5", high))
        for nodes, response in enumerate(curve, 1)
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (rings([4.0, 3.0, 2.0, 3.0], [9.0, 8.0, 9.0, 10.0], 2), (True, True, True, True, True, True)),
        (rings([4.0, 3.0, 2.0, 3.0], [9.0, 8.0, 9.0, 10.0], 2, 120.0), (False, True, True, True, True, True)),
        (rings([4.0, 3.0, 2.0, 3.0], [9.0, 8.0, 9.0, 3.0], 2), (True, False, False, False, False, True)),
        (rings([4.0, 2.0, 3.0, 3.0], [9.0, 8.0, 7.0, 10.0], 2), (True, True, True, False, True, True)),
        (rings([4.0, 3.0, 2.0, 3.0], [9.0, 8.0, 9.0, 10.0], 4), (True, True, True, True, False, True)),
        (rings([4.0, 3.0, 2.0, 3.0], [9.0, 8.0, 9.0, 10.0], 2, right=4), (True, True, True, True, True, False)),
    ],
)
def test_response_time_and_state_of_rings(data: pa.Table, expected: tuple[bool, ...]) -> None:
    """Stable state, more with selectivity, longer is not always better, smaller selectivities, Theorem 9 twice."""
    assert tuple(verdict.holds for verdict in lengths.Wang1602().judge(data)) == expected


def at_once(kept: float, response: float, pace: float) -> pa.Table:
    """PSP beside PSP-I; of the latter the state at 4 nodes, the response time and the rows a second at 7."""
    found = [("PSP", 4, 9.0, 100.0, 5.0), ("PSP", 7, 6.0, 100.0, 5.0)]
    found += [(interleaved.AS_NODES, 4, 9.0, kept, 5.0), (interleaved.AS_NODES, 7, response, 120.0, pace)]
    return table(
        {PANEL: "3-way", CASE: case, NODES: nodes, RESPONSE: latency, ROWS: rows, interleaved.PER_SECOND: rate}
        for case, nodes, latency, rows, rate in found
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (at_once(110.0, 8.0, 7.0), (True, True, True)),
        (at_once(100.0, 8.0, 7.0), (False, True, True)),
        (at_once(110.0, 5.0, 7.0), (True, False, True)),
        (at_once(110.0, 8.0, 5.0), (True, True, False)),
    ],
)
def test_several_rows_at_once(data: pa.Table, expected: tuple[bool, ...]) -> None:
    """More state than PSP, a stable response time, more rows at once with more nodes."""
    assert tuple(verdict.holds for verdict in interleaved.Wang1603().judge(data)) == expected
