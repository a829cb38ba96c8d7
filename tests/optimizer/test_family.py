"""What the optimizer must reach on cases drawn at random, in counted work: the parts of the drift family."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.optimizer import flips, moves, staying
from benchmarks.optimizer.family import ABOVE, KINDS, SEEDS, Case, outcome
from midstream.model.events import MigrationBegun

PAIRS = 200


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_of_200_random_moves_the_strategy_taken_is_nearly_the_best_in_nine_of_ten() -> None:
    found = [one for seed in range(9000, 9000 + PAIRS) if (one := moves.choice(moves.Move.drawn(seed))) is not None]
    assert len(found) >= 0.9 * PAIRS
    assert sum(one.hits for one in found) >= moves.HITS * len(found), [one for one in found if not one.hits]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_flips_are_answered_in_time_in_19_of_20_cases() -> None:
    cases = [case for seed in range(9500, 9560) if (case := flips.drawn(seed)).rate * case.window < 8_000]
    found = [(case.seed, flips.in_time(case, *one)) for case in cases if (one := flips.answer(case)) is not None]
    assert len(found) >= 20
    assert sum(timely for _, timely in found) >= flips.ANSWERED * len(found), found


def test_a_plan_is_not_taken_to_do_in_vain_what_the_one_before_did_while_rows_became_more() -> None:
    case = flips.drawn(8305)
    engine = case.engine("(((B C) A) D)", "auto")
    for step in range(case.phase + 6):
        engine.push(case.batch(step))
    moved = [event.step for event in engine.events if isinstance(event, MigrationBegun)]
    assert len(moved) == 2 and moved[0] < case.phase < moved[1], "the flip is answered within five steps"


@pytest.mark.parametrize("seed", range(3020, 3024))
def test_streams_that_flap_cost_little_more_than_the_best_fixed_plan(seed: int) -> None:
    run, ratio = staying.flapping(seed, 150)
    assert ratio <= staying.FLAPPING and len(run.moves) <= 8


@pytest.mark.parametrize("seed", [3032, 3033])
def test_where_nothing_drifts_the_best_plan_stays(seed: int) -> None:
    run, _ = staying.steady(seed, 400, effort=1.0)  # By the usual effort none of its plans is worth a review.
    assert run.reviews and not run.moves


@pytest.mark.soak
@pytest.mark.parametrize("seed", [3032, 3033])
def test_where_nothing_drifts_reviews_take_their_share(seed: int) -> None:
    _, ratio = staying.steady(seed, 5_000)
    assert ratio <= staying.STEADY


def test_a_choice_that_is_far_from_the_best_is_no_hit() -> None:
    choice = moves.Choice("gms", 140.0, "jisc", 80.0, ())
    assert not choice.hits and replace(choice, figure=130.0).hits


def test_an_answer_after_five_steps_or_a_tenth_of_the_window_is_late() -> None:
    case = replace(flips.drawn(9500), window=20)
    assert flips.in_time(case, 3, 8) and not flips.in_time(case, 3, 9) and not flips.in_time(case, 3, None)
    assert flips.in_time(replace(case, window=100), 3, 13)


def test_the_best_schedule_is_no_worse_than_the_best_fixed_plan() -> None:
    one = outcome(29)
    assert one.by_best >= one.by_fixed and one.by_fixed <= ABOVE
    assert len(one.auto.work) == one.case.steps


def test_sets_are_apart_and_have_every_kind_of_drift() -> None:
    assert not set(SEEDS["training"]) & set(SEEDS["test"])
    for seeds in SEEDS.values():
        cases = [Case.drawn(seed) for seed in seeds]
        assert {case.kind for case in cases} == set(KINDS)
        assert max(case.window for case in cases) >= 50
        assert max(case.rate for case in cases) >= 1_000
        assert max(case.queries for case in cases) >= 5
