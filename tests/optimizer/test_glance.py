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
from midstream.step.reviewing.glance import REMEMBERED, glance, has_moved, is_new, seen_anew, seen_at
from midstream.step.reviewing.plan_group import plan_group
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
        paces=(PACE,), price=3 * SHORT, saved=1.0, work=work(later, plan_group(later, "q")),
    )  # fmt: skip
    known = replace(known, **kept)  # type: ignore[arg-type]
    return known, glance(replace(later, optimizations={"q": known})).optimizations["q"]


def test_a_look_that_finds_nothing_is_what_the_next_one_is_compared_with(job: Manifest) -> None:
    known, seen = looked_at(job)
    counted = Counters(rows_in=10_000, comparisons=100_000, rows_out=5_000)
    assert seen == replace(known, seen=(known.seen or 0) + LONG * SECOND, counted=counted)


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
    assert seen.settled and seen.paces == (OTHER,)


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
        kept = seen_at(kept, Counters(rows_in=number * (number + 1) // 2), number * SECOND)
    assert [pace[0] for pace in kept.paces] == [REMEMBERED + 2 - at for at in range(REMEMBERED)] and REMEMBERED > 1
    assert seen_anew(kept) == replace(kept, seen=None, paces=())


def test_only_a_pace_unlike_all_that_are_known_is_new() -> None:
    kept, counted = Optimization(seen=0, paces=(PACE, OTHER)), Counters(rows_in=1_000, comparisons=10_000, rows_out=500)
    assert not is_new(kept, counted, SECOND)
    assert is_new(replace(kept, paces=(OTHER,)), counted, SECOND)
    assert not is_new(replace(kept, paces=()), counted, SECOND)


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


def test_a_review_that_is_made_because_a_rest_is_over_is_followed_by_none_however_new_the_pace(job: Manifest) -> None:
    """It was not the streams that have called for it, so there is nothing of which it has seen but a part."""
    entry = replace(job.queries["q"], counters=Counters(rows_in=3_000, comparisons=30_000, rows_out=1_500))
    for until, followed in ((None, True), (SECOND, False), (SECOND + 1, True)):
        before = Optimization(seen=0, paces=(PACE,), settled_until=until)
        assert _is_changing(before, entry, SECOND) is followed


def test_where_nothing_is_saved_up_a_review_at_a_new_pace_is_followed_by_none() -> None:
    made = settled()
    made.optimize("q", mode="auto", review="900 milliseconds", margin=1000)
    run(made, range(FILLED, FILLED + 2), BAD_FIRST, rate=RATE)
    step = FILLED + 1
    while not reviewed(made, FILLED + 2) and step < FILLED + 8:
        step += 1
        run(made, [step], BAD_FIRST, rate=4 * RATE)
    assert reviewed(made, FILLED + 2) == [step] and kept(made).saved <= 0 and kept(made).settled
