"""HybMig's claims, judged on made-up data: each verdict can be either."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from midstream.lab.figure import Judgement
from midstream.lab.figures.hybmig_21 import BSC, DURATION, SLOW, TAU, HybMig21
from midstream.lab.figures.hybmig_21 import CPU as TOTAL
from midstream.lab.figures.hybmig_overhead import CPU, MEMORY, PLAIN, SHAPES, SHARED, HybMig19, HybMig20
from midstream.lab.tidy import table


def overhead(costs: Mapping[str, tuple[float, float]]) -> pa.Table:
    return table(
        {"case": case, "new plan": shape, "n": n, MEMORY: memory * n, CPU: cpu * n}
        for case, (memory, cpu) in costs.items()
        for shape in SHAPES
        for n in (4, 5)
    )


@pytest.mark.parametrize(
    ("costs", "holds"),
    [
        ({"moving_state": (3, 3), "parallel_track": (2, 2), "hybmig": (1, 1)}, (True, True, True, True)),
        ({"moving_state": (1, 3), "parallel_track": (2, 2), "hybmig": (1, 1)}, (False, True, True, True)),
        ({"moving_state": (3, 3), "parallel_track": (2, 0.5), "hybmig": (1, 1)}, (True, True, True, False)),
    ],
)
def test_hybmig_must_be_below_each_rival_in_each_measure(
    costs: Mapping[str, tuple[float, float]], holds: tuple[bool, ...]
) -> None:
    verdicts = HybMig19().judge(overhead(costs))
    assert tuple(v.holds for v in verdicts) == holds
    assert all("n" not in v.reason for v in verdicts if v.holds)


def test_a_few_percent_are_no_wide_margin() -> None:
    costs = {"moving_state": (1.1, 3.0), "parallel_track": (2.0, 1.03), "hybmig": (1.0, 1.0)}
    verdicts = HybMig19().judge(overhead(costs))
    assert [v.finding for v in verdicts] == [Judgement.DIRECTION, Judgement.HOLDS, Judgement.HOLDS, Judgement.DIRECTION]
    assert "a wide margin is a factor of 1.5" in verdicts[0].reason


def test_one_setting_is_enough_to_lose() -> None:
    good = overhead({"moving_state": (3, 3), "parallel_track": (2, 2), "hybmig": (1, 1)}).to_pylist()
    good[-1][CPU] = 100.0
    verdicts = HybMig19().judge(table(good))
    assert [v.holds for v in verdicts] == [True, True, False, False]
    assert "bushy 5" in verdicts[-1].reason and "right" not in verdicts[-1].reason.partition(":")[0]


@pytest.mark.parametrize(("factor", "holds"), [(1.0, False), (1.9, True), (5.0, False)])
def test_sharing_is_judged_by_its_greatest_factor(factor: float, holds: bool) -> None:
    data = table(
        {"case": case, "n": n, MEMORY: f, CPU: f} for n in (4, 5) for case, f in ((PLAIN, factor), (SHARED, 1.0))
    )
    assert HybMig20().judge(data)[0].holds is holds


def durations(ms: tuple[float, ...], bsc: tuple[float, ...], slow: tuple[float, ...] = (1.0,) * 4) -> pa.Table:
    found = {"hybmig": (1.0,) * 4, "moving_state": ms, "parallel_track": (1.0, 1.0, 1.0, 2.0), BSC: bsc}
    found |= {"moving_state" + SLOW: ms, "parallel_track" + SLOW: slow, "hybmig" + SLOW: slow}
    return table(
        {"case": case, TAU: tau, DURATION: length, TOTAL: 1.0 if case == BSC else 2.0}
        for case, lengths in found.items()
        for tau, length in zip((0.4, 0.7, 1.0, 1.6), lengths, strict=True)
    )


def test_the_paper_s_figure_21_would_hold() -> None:
    verdicts = HybMig21().judge(durations((0.001, 0.01, 0.1, 5.0), (0.001, 0.01, 0.5, 1.0)))
    assert all(v.holds for v in verdicts)


def test_moving_state_must_be_slow_where_the_others_are_not() -> None:
    data = durations((0.001, 0.01, 0.1, 0.5), (0.001, 0.01, 0.5, 1.0), (1.0, 1.0, 5.0, 100.0))
    assert [v.finding for v in HybMig21().judge(data)[:2]] == [Judgement.FAILS] * 2


def test_background_work_that_takes_long_at_low_rates_does_not() -> None:
    verdicts = HybMig21().judge(durations((0.001, 0.01, 0.1, 5.0), (0.5, 0.5, 0.5, 0.5)))
    assert sum(v.finding is Judgement.FAILS for v in verdicts) == 2
