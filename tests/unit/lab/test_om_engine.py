"""OM's queries on one engine: a round each a step, seen as the engine counted it, and reviewed in turn."""

from __future__ import annotations

import numpy as np
import pytest

from midstream.lab.figures.om_05_4 import Scheduled, longest_wait, scheduled
from midstream.lab.om_rounds import JOIN_PLANS, Q1, Q2, Rounds
from midstream.lab.om_streams import real_joined, real_single

STEPS = 24
QUERIES = [Rounds(Q1, real_single(60, 0.2, 1)), *(Rounds(Q2, real_joined(60, 0.2, seed)) for seed in (2, 3))]


@pytest.fixture(scope="module")
def ran() -> list[Scheduled]:
    return scheduled(QUERIES, STEPS)


def test_every_query_has_a_round_in_every_step_and_none_goes_before_its_turn(ran: list[Scheduled]) -> None:
    assert [list(one.ran) for one in ran] == [list(range(STEPS))] * 3
    assert sorted(turn for one in ran for turn in one.turns) == list(range(3 * STEPS))
    assert [longest_wait(one.turns) for one in ran] == [2, 2, 2]


def test_a_round_is_what_the_engine_counted_of_it(ran: list[Scheduled]) -> None:
    for one, query in zip(ran, QUERIES, strict=True):
        given, seen = query.traffic, one.rounds.traffic
        assert (seen.rates == np.round(given.rates[:STEPS])).all()
        assert np.allclose(seen.selectivity, given.selectivity[:STEPS], atol=0.5 / seen.rates.min())


def test_joins_are_reviewed_in_turn_by_a_live_chart(ran: list[Scheduled]) -> None:
    single, *joins = ran
    assert not single.plans and not single.reviewed
    assert all(set(one.plans) <= set(JOIN_PLANS) and len(one.plans) == STEPS for one in joins)
    assert all(len(one.reviewed) > STEPS / 6 for one in joins)
    # A review that excess work pays for comes before its turn, and keeps no other query waiting.
    assert all(max(np.diff(one.reviewed)) <= 3 for one in joins)
