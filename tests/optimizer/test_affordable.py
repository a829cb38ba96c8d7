"""Reviews that take long are paid for by the work of the queries, and the others are never put off."""

from __future__ import annotations

from itertools import pairwise

import pytest

import midstream as ms
from midstream.model.optimization import Optimization
from midstream.step.reviewing.affordable import SHORT
from tests.optimizer.drifting import engine, reviews, rows

KEYS = {"A": 2_000, "B": 2_000, "C": 2_000}
STEPS = 20


def course(rate: int, effort: float) -> list[tuple[float, float]]:
    """Of each review after the first the price of the one before and the work since that, both as foreseen.

    By a policy that wants to see every one of them: `test_glance` has those that need not.
    """
    made = engine("ABC")
    made.optimize("q", policy="static", mode="suggest", review="1 second", effort=effort)
    kept = list[Optimization]()
    for step in range(STEPS):
        made.push(rows(step, KEYS, rate=rate))
        now = made.manifest.optimizations["q"]
        if now.decision and (not kept or now.reviewed != kept[-1].reviewed):
            kept.append(now)
    return [(before.price, after.work - before.work) for before, after in pairwise(kept)]


def test_a_short_review_is_never_put_off() -> None:
    seldom, often = course(rate=50, effort=0.0001), course(rate=50, effort=1)
    assert seldom == often and len(often) >= STEPS / 2
    assert all(price <= SHORT for price, _ in often)


@pytest.mark.parametrize("effort", [0.1, 0.3])
def test_a_long_review_waits_until_it_is_the_share_of_the_work_that_is_allowed(effort: float) -> None:
    found = course(rate=1_000, effort=effort)
    assert 0 < len(found) < STEPS / 2
    assert all(SHORT < price <= effort * done for price, done in found)


def test_with_more_effort_there_are_more_reviews() -> None:
    some, more = (course(rate=1_000, effort=effort) for effort in (0.1, 0.5))
    assert len(some) < len(more)


@pytest.mark.parametrize("effort", [0, -1, 1.5, True, "much"])
def test_an_effort_that_is_no_share_is_refused(effort: object) -> None:
    with pytest.raises(ms.QueryError, match="effort is"):
        engine("ABC").optimize("q", effort=effort)  # type: ignore[arg-type]


def test_a_review_that_confirms_a_better_plan_is_not_put_off() -> None:
    """The first one finds it, the second one, as soon as it is due, moves the query there."""
    keys = {"A": 300, "B": 300, "C": 9_000}
    made = engine("ABC", "((A B) C)")
    made.optimize("q", review="500 milliseconds", effort=0.001, horizon="10 minutes")
    for step in range(6):
        made.push(rows(step, keys, rate=3_000))
    decided = reviews(made.events)
    assert [event.decision for event in decided[:2]] == ["stay", "switch"]
    assert decided[1].step == decided[0].step + 1
