"""Wang's claims on Figs. 12.6 and 12.7 and of §13.2.1, judged on made-up data: each verdict can be either."""

from __future__ import annotations

import pyarrow as pa
import pytest

from midstream.lab.drawing import PANEL
from midstream.lab.figure import Judgement
from midstream.lab.figures import wang_12_07 as dynamic
from midstream.lab.figures import wang_13_02 as longest
from midstream.lab.ring_figures import CASE, NODES, PAIRS, RESPONSE, RESULTS, ROWS, SENT
from midstream.lab.tidy import table


def rings(inserted: float = 1.0, pairs: int = 90, heads: int = 2, response: float = 3.0) -> pa.Table:
    """Rings of 4 and 8 nodes; of PSP-D with 8 nodes what is given."""
    return table(
        {
            PANEL: "one",
            CASE: case,
            NODES: nodes,
            RESPONSE: 4.0 if case in (dynamic.PSP, dynamic.PSP_I) else response,
            ROWS: 100,
            dynamic.INSERTED: nodes if case in (dynamic.PSP, dynamic.PSP_I) else inserted,
            dynamic.PURGED: nodes if case in (dynamic.PSP, dynamic.PSP_I) else 1.0,
            SENT: 20.0,
            PAIRS: pairs if case == dynamic.PSP_D else 90,
            RESULTS: 7,
            dynamic.MOST_HEADS: heads if case == dynamic.PSP_DI else 1,
        }
        for nodes in (4, 8)
        for case in dynamic.RINGS
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (rings(), (True, True, True, True)),
        (rings(inserted=2.0), (False, True, True, True)),
        (rings(pairs=91), (True, False, True, True)),
        (rings(heads=1), (True, True, False, True)),
        (rings(response=4.5), (True, True, True, False)),
    ],
)
def test_what_a_dynamic_head_saves(data: pa.Table, expected: tuple[bool, ...]) -> None:
    """Insertions and purges, equal pairs and results, several heads, response time."""
    assert tuple(verdict.holds for verdict in dynamic.Wang1207().judge(data)) == expected


def rates(*found: float) -> pa.Table:
    """Rows a second of rings of 1, 4 and 7 nodes, where Eq. 13.4 has 10, 40 and 60."""
    return table(
        {PANEL: "one", CASE: "PSP-I", NODES: nodes, longest.RATE: rate, longest.GAIN: gain}
        for nodes, rate, gain in zip((1, 4, 7), found, (1.0, 4.0, 6.0), strict=True)
    )


@pytest.mark.parametrize(
    ("data", "monotone", "equation"),
    [
        (rates(10.0, 39.0, 61.0), Judgement.HOLDS, Judgement.HOLDS),
        (rates(10.0, 30.0, 40.0), Judgement.HOLDS, Judgement.DIRECTION),
        (rates(10.0, 40.0, 39.0), Judgement.FAILS, Judgement.FAILS),
    ],
)
def test_the_output_rate_over_the_length(data: pa.Table, monotone: Judgement, equation: Judgement) -> None:
    assert [one.finding for one in longest.Wang1302().judge(data)] == [monotone, equation]
