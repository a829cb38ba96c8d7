"""How well the rounds of OM can be foreseen: looking ahead beats a mean of the past, the bound beats both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from midstream.lab.figures.om_three_way import CASES, DEC, RANDOM, REGIONS, URND, Om04B
from midstream.lab.om_figures import CASE, FIDELITY
from midstream.lab.om_rounds import ADAPTIVE, AHEAD, BOUND, INFORMED, Q1, Q2, OmQuery, Rounds, foreseen
from midstream.lab.om_streams import Traffic, _filtered, real_joined, real_single, urnd
from midstream.lab.tidy import table

ROUNDS = 300


@pytest.fixture(params=[Q1, Q2], ids=["Q1", "Q2"])
def rounds(request: pytest.FixtureRequest) -> Rounds:
    query: OmQuery = request.param
    return Rounds(query, (real_single if query is Q1 else real_joined)(ROUNDS, 0.21, seed=1))


def test_who_knows_more_runs_the_best_plan_more_often(rounds: Rounds) -> None:
    chart = rounds.chart(2)
    by_means, ahead, bound = (rounds.course(case, chart)[0].fidelity for case in (ADAPTIVE, AHEAD, BOUND))
    assert by_means < ahead < bound < 1


def test_a_chart_that_knows_the_rates_misses_only_where_it_is_coarse(rounds: Rounds) -> None:
    coarse, fine = (rounds.course(INFORMED, rounds.chart(k))[0].fidelity for k in (2, 30))
    assert coarse < fine and fine > 0.9


@pytest.mark.parametrize(("beyond", "holds"), [(0.87, True), (0.92, False)])
def test_the_saturation_point_of_figure_4b(beyond: float, holds: bool) -> None:
    known = {2: 0.6, 5: 0.8, 8: 0.86, 10: beyond}
    data = table({CASE: kind + tag, "k": k, FIDELITY: fidelity, REGIONS: k**3}
                 for kind in (DEC, URND) for tag in CASES.values() for k, fidelity in known.items())  # fmt: skip
    assert [v.holds for v in Om04B().judge(data) if v.claim == RANDOM] == [holds]


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


CONSTANT, FAR = np.full((6, 1), 10.0), np.full((6, 1), 1000.0)


@pytest.mark.parametrize(
    ("seen", "means", "expected"),
    [
        pytest.param([40, 30, 10, 8], FAR, 5, id="what falls steeply is expected to be half of what it was"),
        pytest.param([10, 20, 10, 5, 5], CONSTANT, 10, id="the errors of all rounds count and not of the last alone"),
        pytest.param([10, 12, 14, 16], CONSTANT, 16, id="what rises goes on to rise"),
        pytest.param([10, 12, 10, 12], CONSTANT, 10, id="what comes and goes does not"),
    ],
)
def test_the_next_round_by_those_before(seen: list[float], means: np.ndarray, expected: float) -> None:
    observed = np.array(seen, float)[:, None]
    assert foreseen(observed, means[: len(seen)])[-1].tolist() == [expected]


def test_each_column_is_foreseen_in_its_own_way() -> None:
    rises, comes_and_goes = [10.0, 12.0, 14.0, 16.0, 18.0], [10.0, 12.0, 10.0, 12.0, 10.0]
    means = np.full((5, 2), 11.0)
    found = foreseen(np.array([rises, comes_and_goes]).T, means)
    assert found[-1].tolist() == [18.0, 11.0]


def test_many_drawings_are_surer_than_any_one() -> None:
    rounds = Rounds(Q2, real_joined(ROUNDS, 0.21, seed=1))

    def share(chosen: Sequence[str]) -> float:
        return float(np.mean([plan == best for plan, best in zip(chosen, rounds.best, strict=True)]))

    def once(seed: int) -> list[str]:
        points = rounds.query.points(drawn_again(rounds.traffic, seed))
        return [rounds.query.plans[place] for place in rounds.query.costs(points).argmin(axis=1)]

    assert share(rounds.surest) > max(share(once(seed)) for seed in range(8))


def test_the_newest_second_is_the_one_that_no_round_before_has() -> None:
    """Averaging twice over w seconds, differenced twice, leaves the seconds that come in: one new, two that leave."""
    found = _filtered(np.random.default_rng(5), ROUNDS, np.array([300.0, 200.0]), 0.21)
    new, w = found.newest, found.width
    assert w > 2
    came = new[2 * w :] - 2 * new[w:-w] + new[: -2 * w]
    assert np.allclose(np.diff(found.averaged, 2, axis=0)[2 * w - 2 :], came)


def test_rounds_drawn_again_differ_by_their_newest_second_only(rounds: Rounds) -> None:
    again = drawn_again(rounds.traffic, seed=1)
    moved = np.abs(again.rates / rounds.traffic.rates - 1)
    assert 0 < np.median(moved) < 0.03
    assert abs(again.rates.mean() / rounds.traffic.rates.mean() - 1) < np.median(moved) / 4
    assert (drawn_again(rounds.traffic, seed=1).rates == again.rates).all()
    assert (drawn_again(rounds.traffic, seed=2).rates != again.rates).all()


def test_what_is_drawn_for_itself_in_each_round_nobody_foresees() -> None:
    found = Rounds(Q2, urnd(ROUNDS, 0.21, seed=1))
    assert found.course(BOUND, found.chart(2))[0].fidelity < 0.45


def test_the_bound_needs_rounds_whose_drawing_is_known() -> None:
    known = real_joined(ROUNDS, 0.21, seed=1)
    with pytest.raises(ValueError, match="does not contain the distribution"):
        _ = Rounds(Q2, Traffic(known.rates, known.selectivity)).surest


def drawn_again(traffic: Traffic, seed: int) -> Traffic:
    assert traffic.drawn_again is not None
    return traffic.drawn_again(np.random.default_rng(seed))
