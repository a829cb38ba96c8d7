"""JISC's claims, judged on made-up data: each verdict can be either."""

from __future__ import annotations

import pyarrow as pa
import pytest

from midstream.lab.figure import Judgement
from midstream.lab.figures.jisc_frequency import COMPARISONS as COMPARED
from midstream.lab.figures.jisc_frequency import OPERATIONS as DONE
from midstream.lab.figures.jisc_frequency import PERIOD, TRANSITION, Jisc12
from midstream.lab.figures.jisc_transition import COMPARISONS, JOINS, OPERATIONS, WINDOW, Jisc07, Jisc08
from midstream.lab.tidy import table


def transitions(pt: float, cacq: float, completion: float = 1.2) -> pa.Table:
    costs = {"jisc": {"best": 1.0, "worst": completion}, "parallel_track": {"best": pt, "worst": pt}}
    costs["cacq"] = {"best": cacq, "worst": cacq}
    return table(
        {
            "case": case,
            "transition": transition,
            JOINS: joins,
            OPERATIONS: cost * joins**2 if case == "parallel_track" else cost * joins,
            COMPARISONS: cost * joins,
        }
        for case, by in costs.items()
        for transition, cost in by.items()
        for joins in (5, 100)
        if case != "cacq" or joins < 100
    )


def test_the_paper_s_figure_7_would_hold() -> None:
    assert [v.claim.text for v in Jisc07().judge(transitions(0.5, 2.0)) if not v.holds] == []


@pytest.mark.parametrize(
    ("pt", "cacq", "lost"), [(0.02, 2.0, [True, True, False, True]), (0.5, 0.9, [True, False, False, True])]
)
def test_figure_7_by_the_ratios(pt: float, cacq: float, lost: list[bool]) -> None:
    assert [not v.holds for v in Jisc07().judge(transitions(pt, cacq))] == lost


def test_the_missing_factor_is_given_in_looks_through_the_states() -> None:
    often, rows = Jisc07().checks(transitions(0.02, 2.0), "best", 10.0)
    assert often == pytest.approx((10 * 100 - 0.02 * 100**2) / (200 * WINDOW))
    assert rows == round(2 * 10_000 * 101 / often)


def test_a_difference_that_no_figure_would_show_is_one_in_direction_only() -> None:
    """JISC Fig. 8: the paper's speedups differ by factors, not by 2 %."""
    found = [Jisc08().judge(transitions(0.5, 2.0, completion=more))[1].finding for more in (1.2, 1.02, 0.9)]
    assert found == [Judgement.HOLDS, Judgement.DIRECTION, Judgement.FAILS]


def test_figure_8_compares_with_figure_7() -> None:
    assert all(v.holds for v in Jisc08().judge(transitions(0.5, 2.0)))
    verdicts = Jisc08().judge(transitions(0.5, 2.0, completion=0.9))
    assert [v.holds for v in verdicts] == [True, False, True]


def frequencies(jisc: dict[str, tuple[float, float]], cacq: float) -> pa.Table:
    costs = {
        "jisc": jisc,
        "cacq": dict.fromkeys(jisc, (cacq, cacq)),
        "parallel_track": dict.fromkeys(jisc, (30.0, 20.0)),
    }
    return table(
        {"case": case, TRANSITION: transition, PERIOD: period, DONE: cost, COMPARED: cost}
        for case, by in costs.items()
        for transition, found in by.items()
        for period, cost in zip((1, 10), found, strict=True)
    )


def test_frequencies() -> None:
    paper = frequencies({"best": (12.0, 10.0), "worst": (15.0, 10.0)}, cacq=26.0)
    assert [v.claim.text for v in Jisc12().judge(paper) if not v.holds] == [
        "CACQ and PT have almost the same performance."
    ]
    other = frequencies({"best": (40.0, 10.0), "worst": (15.0, 10.0)}, cacq=26.0)
    assert [v.holds for v in Jisc12().judge(other)] == [False, True, True, True, False, False]
