"""How well the rounds of OM can be foreseen: looking ahead beats a mean of the past, the bound beats both."""

from __future__ import annotations

import numpy as np
import pytest

from midstream.lab.om_foresight import foreseen
from midstream.lab.om_rounds import ADAPTIVE, AHEAD, BOUND, Q1, Q2, OmQuery, Rounds
from midstream.lab.om_streams import Traffic, real_joined, real_single, urnd

ROUNDS = 300


@pytest.fixture(params=[Q1, Q2], ids=["Q1", "Q2"])
def rounds(request: pytest.FixtureRequest) -> Rounds:
    query: OmQuery = request.param
    return Rounds(query, (real_single if query is Q1 else real_joined)(ROUNDS, 0.21, seed=1))


def test_who_knows_more_runs_the_best_plan_more_often(rounds: Rounds) -> None:
    chart = rounds.chart(2)
    by_means, ahead, bound = (rounds.course(case, chart)[0].fidelity for case in (ADAPTIVE, AHEAD, BOUND))
    assert by_means < ahead < bound < 1


def test_without_damping_adaptive_runs_the_plan_that_is_expected_to_be_the_cheapest(rounds: Rounds) -> None:
    _, chosen = rounds.course(ADAPTIVE, rounds.chart(2))
    expected = rounds.query.costs(rounds.estimated).argmin(axis=1)
    assert chosen == [rounds.query.plans[place] for place in expected]


def test_an_estimate_knows_nothing_of_its_own_round_and_those_after(rounds: Rounds) -> None:
    other = rounds.observed.copy()
    other[200:] *= 3
    known = slice(0, 201)
    assert (foreseen(other, rounds.estimated)[known] == rounds.foreseen[known]).all()
    assert (foreseen(other, rounds.estimated)[201] != rounds.foreseen[201]).all()


def test_rounds_drawn_again_differ_by_their_newest_second_only(rounds: Rounds) -> None:
    again = drawn_again(rounds.traffic, seed=1)
    moved = np.abs(again.rates / rounds.traffic.rates - 1)
    assert 0 < np.median(moved) < 0.03
    assert (drawn_again(rounds.traffic, seed=1).rates == again.rates).all()
    assert (drawn_again(rounds.traffic, seed=2).rates != again.rates).all()


def test_what_is_drawn_for_itself_in_each_round_nobody_foresees() -> None:
    found = Rounds(Q2, urnd(ROUNDS, 0.21, seed=1))
    assert found.course(BOUND, found.chart(2))[0].fidelity < 0.45


def test_the_bound_needs_rounds_whose_drawing_is_known() -> None:
    known = real_joined(ROUNDS, 0.21, seed=1)
    with pytest.raises(ValueError, match="drawn"):
        _ = Rounds(Q2, Traffic(known.rates, known.selectivity)).surest


def drawn_again(traffic: Traffic, seed: int) -> Traffic:
    assert traffic.drawn_again is not None
    return traffic.drawn_again(np.random.default_rng(seed))
