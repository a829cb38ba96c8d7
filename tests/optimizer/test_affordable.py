"""Reviews that take long are paid for by the work of the queries, and the others are never put off."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import midstream as ms
from midstream.model.counters import Counters
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization
from midstream.step.reviewing.affordable import (
    ANY_STEP,
    RESTING,
    SAVED,
    SHORT,
    UNITS,
    allowance,
    is_affordable,
    is_paid_for,
    is_saved_for,
    saved_after,
    savings,
    work,
)
from midstream.step.reviewing.plan_group import PlanGroup, plan_group
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
    made.optimize("q", review="500 milliseconds", effort=0.001, horizon="10 minutes", at_once=1000)
    for step in range(6):
        made.push(rows(step, keys, rate=3_000))
    decided = reviews(made.events)
    assert [event.decision for event in decided[:2]] == ["stay", "switch"]
    assert decided[1].step == decided[0].step + 1


PRICE = 4 * SHORT
"""Of a review that is not short."""

EFFORT = 0.1


@pytest.fixture(scope="module")
def job() -> Manifest:
    """A query that has run for two steps."""
    made = engine("ABC")
    made.optimize("q", effort=EFFORT)
    for step in range(2):
        made.push(rows(step, KEYS))
    return made.manifest


def reviewed(job: Manifest, done: float, **kept: object) -> PlanGroup:
    """The query with so much work done since its last review, which took `PRICE`."""
    one = plan_group(job, "q")
    last = Optimization(decision="stay", price=PRICE, work=work(job, one) - done)
    return replace(one, kept=replace(last, **kept))  # type: ignore[arg-type]


def test_the_work_of_a_query_is_what_its_joins_did_and_its_steps_take_however_few_their_rows_are(job: Manifest) -> None:
    one, entry = plan_group(job, "q"), job.queries["q"]
    more = {"rows_in": 5, "comparisons": 700, "rows_out": 11, "inserted": 13}
    counters = entry.counters + Counters(**more)
    busier = replace(job, queries={"q": replace(entry, counters=counters)})
    joined = 5 * UNITS.probe + 700 * UNITS.comparison + 11 * UNITS.result + 13 * UNITS.insert
    assert work(busier, one) - work(job, one) == pytest.approx(joined)
    steps = work(replace(job, step=job.step + 3), one) - work(job, one)
    assert steps == pytest.approx(3 * (ANY_STEP + 2 * UNITS.operator_step))


def test_a_settled_plan_rests_until_the_work_is_worth_several_reviews(job: Manifest) -> None:
    needed = PRICE / EFFORT
    for settled, times in ((False, 1.0), (True, RESTING)):
        for share, paid in ((0.99, False), (1.01, True)):
            one = reviewed(job, share * times * needed, settled=settled)
            assert is_affordable(job, one) is paid
    assert RESTING > 1


def test_a_short_review_is_affordable_at_any_time_where_the_plan_is_not_settled(job: Manifest) -> None:
    assert is_affordable(job, reviewed(job, 0, price=SHORT))
    assert not is_affordable(job, reviewed(job, 0, price=SHORT + 1))
    assert not is_affordable(job, reviewed(job, 0, price=SHORT, settled=True))


def test_where_the_query_that_had_done_most_has_left_its_chain_counting_begins_anew(job: Manifest) -> None:
    """What is left has done less than was counted at the last review."""
    assert is_paid_for(job, reviewed(job, -1.0))
    assert not is_paid_for(job, reviewed(job, 0.0))


def test_what_is_not_spent_on_reviews_is_saved_for_when_streams_move(job: Manifest) -> None:
    done = 30 * SHORT
    one = reviewed(job, done, saved=2.5 * PRICE, settled=True)
    assert savings(job, one) == pytest.approx(2.5 * PRICE + EFFORT * done)
    assert saved_after(job, one, PRICE, worthwhile=False) == pytest.approx(1.5 * PRICE + EFFORT * done)
    assert is_saved_for(job, one)
    assert not is_saved_for(job, reviewed(job, 0, saved=0.0)) and is_saved_for(job, reviewed(job, 0, price=SHORT))


def test_savings_are_worth_some_reviews_at_most_and_all_of_them_after_one_that_led_to_a_switch(job: Manifest) -> None:
    rich, poor = reviewed(job, 1e15), reviewed(job, 0, saved=-PRICE)
    full = (SAVED - 1) * PRICE
    assert saved_after(job, rich, PRICE, worthwhile=False) == full
    assert saved_after(job, poor, PRICE, worthwhile=False) == -2 * PRICE
    assert saved_after(job, poor, PRICE, worthwhile=True) == full
    assert saved_after(job, reviewed(job, 0, saved=-PRICE, decision=""), PRICE, worthwhile=False) == full


def test_all_queries_together_pay_for_the_reviews_of_a_step() -> None:
    assert allowance([0.03]) == SHORT
    assert allowance([0.03] * 1000) == pytest.approx(30 * ANY_STEP)
