"""A plan that is settled is not reviewed again while its streams stay as they are, and at once when they move."""

from __future__ import annotations

from dataclasses import replace

import pytest

import midstream as ms
from midstream.model.codec import decode, encode
from midstream.model.counters import Counters
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization
from midstream.step.reviewing.affordable import SAVED, SHORT, work
from midstream.step.reviewing.carry_out import _is_changing
from midstream.step.reviewing.glance import REMEMBERED, Units, glance, is_new, seen_anew, seen_at
from midstream.step.reviewing.paces import Done, has_moved, lost
from midstream.step.reviewing.plan_group import plan_group
from midstream.step.reviewing.turns import timely
from tests.optimizer.drifting import BAD_FIRST, GOOD_FIRST, SECOND, engine, reviews, rows, run

BEST, RATE, FILLED = "(A (B C))", 60, 24
LOOKS = ("settled", "settled_until", "seen", "counted", "paces", "saved")


def settled(effort: float = 0.03) -> ms.Engine:
    """An engine whose windows are full and whose plan is the best one."""
    made = engine("ABC", BEST)
    made.optimize("q", mode="auto", review="1 second", effort=effort)
    run(made, range(FILLED), BAD_FIRST, rate=RATE)
    return made


def kept(made: ms.Engine) -> Optimization:
    return made.manifest.optimizations["q"]


def reviewed(made: ms.Engine, since: int) -> list[int]:
    return [event.step for event in reviews(made.events) if event.step >= since]


def test_what_stays_as_it_is_is_not_reviewed() -> None:
    made = settled()
    assert kept(made).settled and kept(made).decision == "stay"
    run(made, range(FILLED, FILLED + 20), BAD_FIRST, rate=RATE)
    assert not reviewed(made, FILLED)
    assert kept(made).seen is not None and kept(made).seen > (kept(made).reviewed or 0)


def test_what_moves_is_reviewed_at_once_until_the_query_has_moved() -> None:
    made = settled()
    drifts = range(FILLED, FILLED + 12)
    run(made, drifts, GOOD_FIRST, rate=RATE)
    assert reviewed(made, FILLED)[0] <= FILLED + 3
    assert "switch" in [event.decision for event in reviews(made.events)]
    assert made.manifest.queries["q"].plan != BEST


def test_though_nothing_moves_it_is_reviewed_once_that_is_paid_for_several_times() -> None:
    made = settled(effort=1.0)
    run(made, range(FILLED, FILLED + 20), BAD_FIRST, rate=RATE)
    assert reviewed(made, FILLED)


def test_after_a_command_policies_look_again() -> None:
    made = settled()
    made.optimize("q", review="1 second", margin=0.2, mode="auto")
    run(made, range(FILLED, FILLED + 2), BAD_FIRST, rate=RATE)
    assert reviewed(made, FILLED)


def test_bursts_that_lead_to_no_switch_are_not_reviewed_for_ever_where_a_review_takes_long() -> None:
    made = engine("ABC", BEST)
    made.optimize("q", mode="auto", review="1 second", effort=0.0001)
    for step in range(40):
        made.push(rows(step, dict.fromkeys("ABC", 3_000), rate=1_500 if step % 4 < 2 else 500))
    assert kept(made).price > SHORT
    assert 1 < len(reviews(made.events)) <= 1 + SAVED


def test_what_an_older_version_kept_has_no_looks() -> None:
    text = {name: value for name, value in encode(kept(settled())).items() if name not in LOOKS}
    assert decode(Optimization, text).seen is None and not decode(Optimization, text).settled


def test_little_counted_is_left_to_chance() -> None:
    assert not has_moved((10.0, 20.0, 5.0), (12.0, 26.0, 9.0), 1.0)
    assert has_moved((1e4, 2e4, 5e3), (1e4, 2e4, 2e4), 1.0)


PACE = (1e3, 1e4, 500.0)
OTHER = (3e3, 3e4, 1500.0)
LONG = 10
"""Seconds between two looks."""


@pytest.fixture(scope="module")
def job() -> Manifest:
    return settled().manifest


def looked_at(job: Manifest, pace: tuple[float, ...] = PACE, **kept: object) -> tuple[Optimization, Optimization]:
    """What is kept before and after a look, `LONG` after the last one; since then the query has done so much a second.

    No work pays for a review, and little is saved for one: it takes that the streams have moved.
    """
    entry, before = job.queries["q"], max(one.greatest or 0 for one in job.progress.values())
    rows_in, comparisons, rows_out = (round(LONG * one) for one in pace)
    counted = Counters(rows_in=rows_in, comparisons=comparisons, rows_out=rows_out)
    progress = {name: replace(one, greatest=before + LONG * SECOND) for name, one in job.progress.items()}
    later = replace(job, progress=progress, queries={"q": replace(entry, counters=counted)})
    known = replace(
        job.optimizations["q"], reviewed=before, seen=before, settled=True, settled_until=None, counted=Counters(),
        made=made(job), paces=(PACE,), price=3 * SHORT, saved=1.0, work=work(later, plan_group(later, "q")),
    )  # fmt: skip
    known = replace(known, **kept)  # type: ignore[arg-type]
    looked = replace(later, optimizations={"q": known})
    return known, glance(looked, timely(looked)).optimizations["q"]


def test_a_look_that_finds_nothing_is_what_the_next_one_is_compared_with(job: Manifest) -> None:
    known, seen = looked_at(job)
    counted = Counters(rows_in=10_000, comparisons=100_000, rows_out=5_000)
    assert seen == replace(known, seen=(known.seen or 0) + LONG * SECOND, counted=counted)


def made(job: Manifest) -> tuple[int, ...]:
    """The rows that B and C, which are joined first, have made together."""
    return Units(job).done(plan_group(job, "q")).made


def looked_at_join(job: Manifest, pace: float, before: float, **kept: object) -> tuple[Optimization, Optimization]:
    """As `looked_at`, where the join of B and C has made so many rows a second, and before it did so many."""
    had = made(job)[0] - round(LONG * pace)
    return looked_at(job, made=(had,), paces=((*PACE, before),), **kept)


def test_the_rows_that_an_inner_join_makes_are_counted(job: Manifest) -> None:
    """What no step shows of all that came out: they are as many as a query over these two has as results."""
    both = engine("BC")
    for step in range(FILLED):
        found = rows(step, BAD_FIRST, rate=RATE)
        both.push({name: found[name] for name in "BC"})
    assert made(job) == (both.manifest.queries["q"].counters.rows_out,)
    assert Units(both.manifest).done(plan_group(both.manifest, "q")).made == ()


@pytest.mark.parametrize(("before", "pace", "stays"), [(5e3, 6e3, True), (5e3, 15e3, False), (15e3, 5e3, False)])
def test_an_inner_join_that_makes_more_or_less_has_the_plan_reviewed(
    job: Manifest, before: float, pace: float, stays: bool
) -> None:
    """Though the plan as a whole does what it did: the sum does not tell which of its joins finds many."""
    assert looked_at_join(job, pace, before)[1].settled is stays


def test_a_join_that_makes_little_does_not_matter() -> None:
    assert not has_moved((*PACE, 10.0), (*PACE, 300.0), LONG)
    assert has_moved((*PACE, 10.0, 9e3), (*PACE, 9e3, 10.0), LONG)


def test_what_is_lost_since_a_review_leads_to_the_next_once_it_is_worth_that(job: Manifest) -> None:
    """The join makes a third more than then: no threshold is passed, and yet another plan may be the better one."""
    before, pace = 15e3, 20e3
    loss = LONG * lost((*PACE, before), (*PACE, pace), 0.0)
    assert 0 < loss < 3 * SHORT
    known, seen = looked_at_join(job, pace, before, ahead=0.0)
    assert seen.settled and seen.lost == pytest.approx(loss) and seen.paces == known.paces
    # What it was ahead by must be made up for first; what it is ahead now makes up for what was lost.
    assert looked_at_join(job, pace, before, ahead=1e5)[1].lost == pytest.approx(loss - LONG * 1e5)
    assert looked_at_join(job, pace, before, ahead=1e9, lost=loss)[1].lost == 0.0
    assert looked_at_join(job, pace, before, ahead=-1e9)[1].lost == pytest.approx(loss)
    enough = 3 * SHORT - loss + 1.0
    assert not looked_at_join(job, pace, before, ahead=0.0, lost=enough)[1].settled
    assert looked_at_join(job, pace, before, ahead=0.0, lost=enough - 2.0)[1].settled
    assert looked_at_join(job, pace, before, ahead=0.0, lost=enough, saved=-1.0)[1].settled
    assert looked_at_join(job, pace, before, ahead=None)[1].lost == 0.0


def test_where_other_joins_are_made_than_before_or_an_older_version_counted_none_they_are_not_compared(
    job: Manifest,
) -> None:
    for had in ((), (1, 2), (1 << 40,)):
        _, seen = looked_at(job, made=had, paces=((*PACE, 1.0),), ahead=0.0)
        assert seen.settled and seen.lost == 0.0 and seen.made == made(job)


def test_after_a_review_nothing_is_lost_and_it_is_known_by_what_the_plan_is_ahead() -> None:
    made_of = settled()
    event = reviews(made_of.events)[-1]
    costs = sorted(one["cost"] for one in event.plans if one["plan"] != BEST)
    own = next(one["cost"] for one in event.plans if one["plan"] == BEST)
    assert kept(made_of).ahead == pytest.approx(costs[0] - own, abs=0.001 * own) and kept(made_of).lost == 0.0
    assert seen_at(replace(kept(made_of), lost=5.0), Done(Counters()), 1 << 60).lost == 0.0
    made_of.optimize("q", mode="auto", review="1 second", effort=0.03, objective="memory")
    run(made_of, range(FILLED, FILLED + 3), BAD_FIRST, rate=RATE)
    assert kept(made_of).ahead is None


@pytest.mark.parametrize("times", [0.3, 3.0])
@pytest.mark.parametrize("figure", range(3))
def test_each_figure_that_moves_has_the_plan_reviewed(job: Manifest, figure: int, times: float) -> None:
    pace = tuple(one * (times if at == figure else 1.0) for at, one in enumerate(PACE))
    known, seen = looked_at(job, pace)
    assert (seen.settled, seen.price) == (False, 0.0)
    # The review is to see the pace that led to it.
    assert (seen.seen, seen.counted) == (known.seen, known.counted)


def test_a_pace_like_one_of_those_that_are_known_is_left_alone(job: Manifest) -> None:
    assert looked_at(job, OTHER, paces=(PACE, OTHER))[1].settled
    assert looked_at(job, OTHER, paces=(OTHER, PACE))[1].settled
    assert not looked_at(job, OTHER, paces=(PACE, PACE))[1].settled


def test_where_no_pace_is_known_the_first_one_is_learnt(job: Manifest) -> None:
    seen = looked_at(job, OTHER, paces=())[1]
    assert seen.settled and seen.paces == ((*OTHER, 0.0),)


def test_where_counting_began_anew_or_nothing_was_seen_yet_nothing_is_compared(job: Manifest) -> None:
    for first in ({"counted": Counters(rows_in=1 << 40)}, {"seen": None}):
        known, seen = looked_at(job, OTHER, **first)
        assert seen.settled and seen.paces == known.paces
        assert seen.seen is not None and seen.counted.rows_in == round(LONG * OTHER[0])


def test_what_moves_is_not_reviewed_while_nothing_is_saved_up_unless_that_is_short(job: Manifest) -> None:
    known, seen = looked_at(job, OTHER, saved=-1.0)
    assert seen.settled and seen.paces == known.paces and seen.seen != known.seen
    assert not looked_at(job, OTHER, saved=-1.0, price=SHORT)[1].settled


def test_a_plan_that_is_to_be_judged_is_reviewed_then_and_not_before(job: Manifest) -> None:
    now = looked_at(job)[1].seen or 0
    judged, early = (looked_at(job, settled_until=until)[1] for until in (now, now + 1))
    assert (judged.settled, judged.price) == (False, 0.0) and early.settled


def test_what_is_worth_a_review_anyway_is_not_looked_at(job: Manifest) -> None:
    known, seen = looked_at(job, OTHER, price=1.0, work=0.0)
    assert seen == known


def test_the_newest_paces_at_which_the_plan_was_the_right_one_are_remembered() -> None:
    kept = Optimization(seen=0)
    for number in range(1, REMEMBERED + 3):
        kept = seen_at(kept, Done(Counters(rows_in=number * (number + 1) // 2)), number * SECOND)
    assert [pace[0] for pace in kept.paces] == [REMEMBERED + 2 - at for at in range(REMEMBERED)] and REMEMBERED > 1
    assert seen_anew(kept) == replace(kept, seen=None, paces=())


def test_only_a_pace_unlike_all_that_are_known_is_new() -> None:
    kept, done = Optimization(seen=0, paces=(PACE, OTHER)), Done(Counters(1_000, 10_000, rows_out=500))
    assert not is_new(kept, done, SECOND)
    assert is_new(replace(kept, paces=(OTHER,)), done, SECOND)
    assert not is_new(replace(kept, paces=()), done, SECOND)


def test_a_review_at_a_new_pace_that_finds_nothing_is_followed_by_another() -> None:
    """As long as that is saved up: rows of before are alive, so the first one sees but part of what has changed."""
    made = settled(effort=0.1)
    made.optimize("q", mode="auto", review="900 milliseconds", margin=1000, effort=0.1)
    run(made, range(FILLED, FILLED + 6), BAD_FIRST, rate=RATE)
    assert kept(made).settled and kept(made).saved > 0
    waiting = list[tuple[bool, float]]()
    for step in range(FILLED + 6, FILLED + 10):
        run(made, [step], BAD_FIRST, rate=4 * RATE)
        if step in reviewed(made, step):
            waiting.append((kept(made).settled, kept(made).price))
    found = reviewed(made, FILLED + 6)
    assert len(found) == 2 and found[1] == found[0] + 1
    # Neither the price of the first one nor that the plan is settled puts the second one off.
    assert waiting[0] == (False, 0.0) and waiting[1][0] and waiting[1][1] > 0


def test_a_review_that_is_made_because_a_rest_is_over_is_followed_by_none_however_new_the_pace() -> None:
    """It was not the streams that have called for it, so there is nothing of which it has seen but a part."""
    done = Done(Counters(rows_in=3_000, comparisons=30_000, rows_out=1_500))
    for until, followed in ((None, True), (SECOND, False), (SECOND + 1, True)):
        before = Optimization(seen=0, paces=(PACE,), settled_until=until)
        assert _is_changing(before, done, SECOND) is followed


def test_where_nothing_is_saved_up_a_review_at_a_new_pace_is_followed_by_none() -> None:
    made = settled()
    made.optimize("q", mode="auto", review="900 milliseconds", margin=1000)
    run(made, range(FILLED, FILLED + 2), BAD_FIRST, rate=RATE)
    step = FILLED + 1
    while not reviewed(made, FILLED + 2) and step < FILLED + 8:
        step += 1
        run(made, [step], BAD_FIRST, rate=4 * RATE)
    assert reviewed(made, FILLED + 2) == [step] and kept(made).saved <= 0 and kept(made).settled
