"""Wang's claims on §14.1 and Figs. 16.4 to 16.7, judged on made-up data: each verdict can be either."""

from __future__ import annotations

import pyarrow as pa
import pytest

from midstream.lab.drawing import PANEL
from midstream.lab.figures.ring_over_time import FULLEST, OFF, RELOCATED, SMOOTHED, STEADY, TIME, Wang1606, Wang1607
from midstream.lab.figures.ring_rivals import ATR, PSP, SEGMENTS, WHOLE, Wang1604, Wang1605, kept_whole
from midstream.lab.figures.wang_14_01 import BUSIEST, CASES, Wang1401
from midstream.lab.figures.wang_14_01 import STEPS as BURST_STEPS
from midstream.lab.ring_figures import CASE, NODES, RESPONSE, ROWS
from midstream.lab.ring_settings import RATE, WAYS, WINDOW
from midstream.lab.tidy import table


def over_nodes(found: dict[str, list[tuple[float, float]]]) -> pa.Table:
    """Response time and rows of cases at 4, 7, ... nodes."""
    return table(
        {PANEL: "small join", CASE: case, NODES: 4 + 3 * place, RESPONSE: response, ROWS: rows}
        for case, curve in found.items()
        for place, (response, rows) in enumerate(curve)
    )


@pytest.mark.parametrize(
    ("curve", "whole", "expected"),
    [
        ([(2.0, 100.0), (2.0, 100.0)], (300, 500), (True, True)),
        ([(2.0, 100.0), (1.8, 150.0)], (300, 300), (False, False)),
    ],
)
def test_atr_is_no_faster_and_grows_where_segments_are_kept_whole(
    curve: list[tuple[float, float]], whole: tuple[int, int], expected: tuple[bool, bool]
) -> None:
    data = over_nodes({"segments of 10 s": curve}).append_column(WHOLE, pa.array(whole))
    assert tuple(verdict.holds for verdict in Wang1604().judge(data)) == expected


@pytest.mark.parametrize("segment", SEGMENTS)
def test_segments_kept_whole_have_the_rows_of_the_formula(segment: float) -> None:
    for nodes in (4, 19):
        foreseen = RATE * nodes * (segment + (WAYS - 1) * (segment + 2 * WINDOW))
        assert kept_whole(nodes, segment) == pytest.approx(foreseen, rel=0.05)


ONE, TWO = "ctr, 1 copy", "ctr, 2 copies"
GOOD = {ONE: [(2.0, 100.0), (1.5, 100.0)], TWO: [(2.2, 200.0), (1.8, 200.0)], ATR: [(3.0, 150.0)], PSP: [(1.0, 90.0)]}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, (True, True, True, True)),
        ({ONE: [(1.5, 100.0), (1.6, 100.0)]}, (False, True, True, True)),
        ({TWO: [(1.7, 200.0), (1.4, 200.0)]}, (True, False, True, True)),
        ({TWO: [(2.2, 200.0), (1.8, 230.0)]}, (True, True, False, True)),
        ({TWO: [(2.2, 90.0), (1.8, 90.0)]}, (True, True, False, True)),
        ({ATR: [(0.9, 150.0)]}, (True, True, True, False)),
    ],
)
def test_ctr_and_its_rivals(changed: dict[str, list[tuple[float, float]]], expected: tuple[bool, ...]) -> None:
    """Faster with nodes, slower with copies, stable state that grows with copies, PSP best."""
    assert tuple(verdict.holds for verdict in Wang1605().judge(over_nodes({**GOOD, **changed}))) == expected


@pytest.mark.parametrize(
    ("smoothed", "adapted", "expected"),
    [(3.5, 3.0, [True, True]), (4.1, 3.0, [False, True]), (3.5, 3.6, [True, False]), (3.9, 3.8, [False, False])],
)
@pytest.mark.parametrize("figure", [Wang1606(), Wang1607()], ids=lambda figure: figure.name)
def test_adaptation(figure: Wang1606 | Wang1607, smoothed: float, adapted: float, expected: list[bool]) -> None:
    """Each mechanism alone: slices of equal rows, and the length with them."""
    seconds = 2 * int(STEADY)
    data = table(
        {PANEL: panel, CASE: case, TIME: second, RESPONSE: last if second >= STEADY else 1.0, FULLEST: 1.2, NODES: 4}
        for panel in figure.panels
        for case, last in ((OFF, 4.0), (SMOOTHED, smoothed), (RELOCATED, adapted))
        for second in range(seconds)
    )
    assert [verdict.holds for verdict in figure.judge(data)] == expected


@pytest.mark.parametrize(("bounded", "expected"), [(1.4, True), (2.1, False)])
def test_slices_bounded_by_count_smooth_a_burst(bounded: float, expected: bool) -> None:
    """Before and long after the burst nothing is judged."""
    worst = {case: bounded if case == "psp_d, bounded" else 1.2 if "half" in case else 2.0 for case in CASES}
    begin, end = BURST_STEPS[1], BURST_STEPS[1] + BURST_STEPS[2] + 10
    data = table(
        {PANEL: "4 nodes", CASE: case, BUSIEST: high if begin <= step < end else 9.0}
        for case, high in worst.items()
        for step in range(sum(BURST_STEPS[1:]))
    )
    assert [verdict.holds for verdict in Wang1401().judge(data)] == [expected]
