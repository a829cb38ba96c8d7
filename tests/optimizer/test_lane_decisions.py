"""How many lanes are decided for by made-up loads: damped, never flapping, and honest where lanes cannot help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from midstream.model.lane_choice import LaneTrend
from midstream.optimizer.lane_advice import IN_A_ROW, LATE, GroupLoad, LaneFigures, changed, decided, wanted

EVEN = (GroupLoad(1.0, 1.0),)


def figures(lanes: int, took: float | None, hot: float = 0.0, workers: int = 8) -> LaneFigures:
    """Lanes of which one key loads one by a share of the work."""
    groups = (GroupLoad(1.0, hot + (1 - hot) / lanes),)
    return LaneFigures(lanes, workers, groups, 1e9, 1e9, took, None if took is None else 1.0)


def course(took: Callable[[int, int], float], reviews: int, lanes: int = 1) -> list[int]:
    """The number of lanes after each review, where a step takes so long at a review with so many lanes."""
    trend, found = LaneTrend(), []
    for review in range(reviews):
        now = figures(lanes, took(review, lanes))
        decision, trend = decided(now, trend)
        if decision.lanes is not None:
            trend, lanes = changed(now, trend, decision.lanes), decision.lanes
        found.append(lanes)
    return found


def changes(found: list[int]) -> int:
    return sum(one != other for one, other in pairwise(found))


def test_steps_that_are_late_get_as_many_lanes_as_make_them_timely() -> None:
    assert wanted(figures(1, 1.5))[0] == 2
    assert wanted(figures(1, 3.0))[0] == 4
    assert wanted(figures(2, 3.0, workers=3))[0] == 4, "beyond that the workers are the limit"


def test_it_takes_reviews_in_a_row() -> None:
    assert course(lambda review, lanes: 1.5 / lanes, IN_A_ROW) == [1] * (IN_A_ROW - 1) + [2]
    assert set(course(lambda review, lanes: 1.5 if review % IN_A_ROW else 0.5, 100)) == {1}


def test_idle_lanes_are_given_up_and_stay_so() -> None:
    found = course(lambda review, lanes: 0.16 / lanes, 100, lanes=8)
    assert found[-1] == 1 and changes(found) == 1


def test_what_is_neither_late_nor_idle_stays() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(1.0, 0.1, 5_000)
    assert set(course(lambda review, lanes: 0.6 * noise[review] * 4 / lanes, 5_000, lanes=4)) == {4}


def test_noise_about_the_limit_does_not_flap() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(1.0, 0.2, 5_000)
    found = course(lambda review, lanes: LATE * noise[review] * 2 / lanes, 5_000, lanes=2)
    assert changes(found) <= 1


@pytest.mark.parametrize("every", [4, 7, 15])
def test_a_load_that_flaps_is_followed_less_and_less(every: int) -> None:
    found = course(lambda review, lanes: (1.6 if review // every % 2 else 0.2) / lanes, 2_000)
    assert changes(found[:200]) > 0 and changes(found[200:]) <= changes(found[:200])
    assert changes(found) <= 24, "a change that is reversed soon doubles the reviews that must agree"


def test_lanes_that_do_not_help_are_taken_back_and_tried_again_ever_more_rarely() -> None:
    found = course(lambda review, lanes: 1.5, 1_000)
    tried = [at for at, (one, other) in enumerate(pairwise(found)) if other > one]
    gaps = np.diff(tried)
    assert found[IN_A_ROW - 1] == 2 and found[2 * IN_A_ROW - 1] == 1
    assert (gaps[:4] < gaps[1:5]).all() and len(tried) < 20


def test_one_key_is_not_divided() -> None:
    late = figures(4, 2.0, hot=0.7)
    assert late.groups[0].one_key(4) == pytest.approx(0.7)
    lanes, reason = wanted(late)
    assert lanes == 4 and reason.endswith("70% of the work is of one key, and stays in one lane")


def test_lanes_cannot_help_queries_without_a_common_key() -> None:
    alone = LaneFigures(1, 8, (GroupLoad(1.0, 1.0, splits=False),), 1e9, 1e9, 2.0, 1.0)
    assert wanted(alone) == (1, "no key joins all streams of a query, so one lane has all its rows")
    mostly = replace(alone, groups=(GroupLoad(0.9, 0.9, splits=False), GroupLoad(0.1, 0.1)))
    lanes, reason = wanted(mostly)
    assert lanes == 1 and "90% of the work is of queries without a key that ties all their streams" in reason


def test_lanes_beyond_the_workers_do_not_help() -> None:
    lanes, reason = wanted(figures(2, 2.0, workers=2))
    assert lanes == 2 and "all 2 workers are busy" in reason


def test_without_a_trigger_the_busiest_lane_decides() -> None:
    assert wanted(figures(4, None))[0] == 4
    lanes, reason = wanted(figures(4, None, hot=0.2))
    assert lanes == 8 and reason.startswith("the busiest lane does 1.60 times the mean")
    moved_in_vain = replace(figures(4, None, hot=0.2), state=1e13)
    assert wanted(moved_in_vain) == (
        4, "the busiest lane does 1.60 times the mean; moving the state to 8 lanes would cost more than it saves",
    )  # fmt: skip
