"""Wang's claims on the analytic figures, judged on made-up data: each verdict can be either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pytest import approx

from midstream.lab.figures.wang_join_tree import Wang0604, Wang0605, Wang0606, Wang0607
from midstream.lab.figures.wang_two_queries import AT_FAST, AT_SLOW, CASES, RIVALS, Wang0508, Wang0509, Wang0510
from midstream.lab.tidy import column, table
from midstream.lab.wang_settings import ENGINE, MEASURED, MIDDLES, TABLE_6_2, Map, OfTree

INNER, EDGE = (0.25, 0.75), 1.0


def saved_everywhere(figure: Map, shares: Mapping[str, float], at_edge: float, **more: float) -> pa.Table:
    """Each case saves the same share wherever both ratios are below 1, and another at the edge."""
    return table(
        {"case": case, figure.x: x, figure.y: y, figure.saved: share if max(x, y) < 1 else at_edge, **more}
        for case, share in shares.items()
        for x in (*INNER, EDGE)
        for y in (*INNER, EDGE)
    )


def holds(figure: Map, data: pa.Table) -> tuple[bool, ...]:
    return tuple(verdict.holds for verdict in figure.judge(data))


@pytest.mark.parametrize(
    ("saved", "at_edge", "expected"),
    [
        (0.25, 0.0, (True, False, True, True)),
        (0.5, 0.0, (False, True, True, True)),
        (0.1, 0.1, (False, False, False, True)),
        (-0.1, 0.0, (False, False, True, False)),
    ],
)
def test_memory_of_two_queries(saved: float, at_edge: float, expected: tuple[bool, ...]) -> None:
    """On average, at most, without selection, always."""
    assert holds(Wang0508(), saved_everywhere(Wang0508(), dict.fromkeys(RIVALS, saved), at_edge)) == expected


@pytest.mark.parametrize(
    ("saved", "slow", "fast", "expected"),
    [
        (0.2, 0.1, 0.15, (True, True, True, True)),
        (0.6, 0.5, 0.5, (False, True, True, False)),
        (0.2, -0.1, 0.1, (True, True, False, True)),
        (-0.1, -0.2, -0.3, (False, False, False, False)),
    ],
)
def test_cpu_of_two_queries(saved: float, slow: float, fast: float, expected: tuple[bool, ...]) -> None:
    """On average, always, with lambda, with rising lambda."""
    figure = Wang0510()
    data = saved_everywhere(figure, dict.fromkeys(CASES, saved), 0.1, **{AT_SLOW: slow, AT_FAST: fast})
    assert holds(figure, data) == expected


def test_the_saving_without_selection_would_have_to_grow_as_the_join_selectivity_does() -> None:
    figure = Wang0509()
    for factor, expected in ((1.0, True), (0.2, False)):
        data = pa.concat_tables(
            saved_everywhere(figure, {case: 0.95}, at_edge, **{AT_SLOW: 0.1, AT_FAST: 0.2})
            for (case, s_join), most in zip(CASES.items(), (1, 1, factor), strict=True)
            for at_edge in [s_join * most]
        )
        assert holds(figure, data)[-2:] == (True, expected)


def tree(figure: OfTree, printed: float, in_full: float, at_edge: float, worked: float) -> pa.Table:
    shares = dict.fromkeys(figure.panels, in_full) | {figure.printed: printed}
    example: dict[str, Any] = {"case": TABLE_6_2, figure.x: 1 / 60, figure.y: 0.5, figure.saved: worked}
    measured = [{"case": ENGINE, figure.x: m, figure.y: 0.5, figure.saved: in_full} for m in MEASURED]
    return pa.concat_tables([saved_everywhere(figure, shares, at_edge), table([example, *measured])])


@pytest.mark.parametrize(
    ("figure", "in_full", "at_edge", "worked", "expected"),
    [
        (Wang0604(), 0.25, 0.0, 2 / 3, (True, True, True, True)),
        (Wang0604(), -0.4, -0.001, 0.5, (False, False, False, False)),
        (Wang0605(), 0.25, 0.28, 0.009, (True, True, True, True)),
        (Wang0605(), -0.1, -0.01, 0.2, (False, False, False, False)),
    ],
)
def test_memory_of_a_tree(
    figure: OfTree, in_full: float, at_edge: float, worked: float, expected: tuple[bool, ...]
) -> None:
    """On average, lowest, in the example, on the engine; the closed form does not count."""
    assert holds(figure, tree(figure, 0.9, in_full, at_edge, worked)) == expected


@pytest.mark.parametrize(
    ("figure", "printed", "in_full", "worked", "expected"),
    [
        (Wang0606(), 0.5, 0.5, 0.8, (True, True, True, True)),
        (Wang0606(), 0.5, 0.05, 0.5, (False, False, False, False)),
        (Wang0607(), 0.5, 0.5, -0.1, (True, True, True, True)),
        (Wang0607(), 0.5, -0.1, 0.1, (False, False, False, False)),
    ],
)
def test_cpu_of_a_tree(
    figure: OfTree, printed: float, in_full: float, worked: float, expected: tuple[bool, ...]
) -> None:
    """Closed form like the equations, significant savings, the example, the engine."""
    assert holds(figure, tree(figure, printed, in_full, -0.2, worked)) == expected


def test_the_middles_average_like_the_interval() -> None:
    assert sum(MIDDLES) / len(MIDDLES) == approx(0.5)
    assert sum(x * x for x in MIDDLES) / len(MIDDLES) == approx(1 / 3, abs=0.001)


def test_averages_leave_the_edges_out() -> None:
    figure = Wang0508()
    data = saved_everywhere(figure, {"over pull_up": 0.2}, at_edge=0.9)
    assert figure.over_all(data, "over pull_up") == approx([0.2] * 4)
    assert column(data, figure.saved).max() == 0.9
