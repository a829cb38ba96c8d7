"""Decayed means of rates and selectivities, round by round (OM §4.1, §4.3)."""

from __future__ import annotations

from math import exp

from pytest import approx

from midstream.model.codec import decode, encode
from midstream.optimizer.decayed_mean import DecayedMean, Reestimated
from midstream.optimizer.rounds import Look, RoundMeans, look_at
from midstream.step.program import observed
from tests.unit.building import engine, table


def test_the_estimate_is_the_papers_weighted_mean() -> None:
    """`sum F(R - r) G(r) / sum G(r)` with `G(r) = exp(-a r)`, r from 0 to d."""
    mean = DecayedMean(rounds=2, decay=0.5)
    for value in (100.0, 3.0, 5.0, 8.0):
        mean = mean.observed(value)
    weights = [1.0, exp(-0.5), exp(-1.0)]
    assert mean.observations == (8, 5, 3), "r = 0 .. d are d + 1 rounds"
    assert mean.value == approx((8 * weights[0] + 5 * weights[1] + 3 * weights[2]) / sum(weights))
    assert DecayedMean().value == 0


def test_what_never_changes_has_no_variance() -> None:
    assert DecayedMean((4.0, 4.0, 4.0)).variance == approx(0)
    assert DecayedMean((6.0, 2.0), decay=0.0).variance == approx(4)


def test_an_estimate_stands_until_what_is_observed_is_a_threshold_away() -> None:
    kept = Reestimated(0.2, threshold=0.5)
    assert [kept.is_off(value) for value in (0.11, 0.29, 0.31, 0.09)] == [False, False, True, True]


def test_rounds_are_differences_of_two_looks() -> None:
    """Twice as many rows in the second round, a third of them selected."""
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k AND A.j < 10 WINDOW 10 SECONDS")
    rounds = RoundMeans()
    for begin, count in ((0, 20), (10, 40), (20, 80)):
        times = [begin + 10 * (i + 1) / count for i in range(count)]
        made.push({name: table(times, k=[1] * count, j=[(i % 4) * 5 for i in range(count)]) for name in "AB"})
        rounds = rounds.ended(look_at(made.manifest, observed(made.manifest, "q")))
    assert rounds.rates["A"].observations == (8, 4)
    assert rounds.selectivities["A"].observations == (0.5, 0.5)
    assert rounds.selectivities["B"].value == 1


def test_a_round_without_time_ends_nothing() -> None:
    first = RoundMeans().ended(Look({"A": 5}, {"A": 5}, 1_000_000))
    assert first.ended(Look({"A": 9}, {"A": 9}, 1_000_000)) == first
    assert first.ended(Look({"A": 9}, {"A": 9}, None)) == first
    assert first.ended(Look({"A": 5}, {"A": 5}, 2_000_000)).selectivities == {}


def test_a_manifest_can_keep_rounds() -> None:
    rounds = RoundMeans().ended(Look({"A": 5}, {"A": 4}, 1)).ended(Look({"A": 9}, {"A": 6}, 2_000_001))
    assert decode(RoundMeans, encode(rounds)) == rounds
