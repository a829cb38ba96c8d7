"""Estimates of plans from the figures of one: worked numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest import approx

from midstream.lab.costs import zhu_costs
from midstream.optimizer.bounded import Bounded, Origin
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.statistics import Condition, JoinStatistics, SourceStatistics, Statistics
from midstream.plan.tree import Common, Join, Leaf, Plan
from tests.unit.building import plan

W = 10.0
RATES = {"A": 4.0, "B": 6.0, "C": 8.0, "D": 2.0}
SOURCES = {name: SourceStatistics(rate, rate * W, W) for name, rate in RATES.items()}


def key(sources: str) -> Condition:
    return Condition("hash", frozenset(sources))


def ran(left: str, right: str, matched: float, passed: float = 1.0) -> JoinStatistics:
    return JoinStatistics(frozenset(left), frozenset(right), matched, passed)


def estimate(*conditions: Condition, joins: Any = (), states: Any = None) -> Estimate:
    return Estimate(Statistics(SOURCES, conditions, tuple(joins), states or {}))


def test_one_join_is_equations_1_2_and_5() -> None:
    (join,) = estimate(Condition("theta", frozenset("AB")), joins=[ran("A", "B", 1.0, 0.1)]).joinings(plan("(A B)"))
    assert join.pairs == approx(zhu_costs.t_s_ab(4, 6, W, t_j=1, t_s=0, sigma_ab=0.1))
    assert join.output.rows == approx(zhu_costs.joined_state_size(4, 6, W, sigma_ab=0.1))
    assert join.output.rate == approx(zhu_costs.lambda_ab(4, 6, W, sigma_ab=0.1))
    assert join.running * 2 * W == approx(zhu_costs.t_ab(4, 6, W, t_j=1, t_s=0))


def test_two_joins_are_equation_8_put_right() -> None:
    found = estimate(joins=[ran("B", "C", 1.0, 0.1), ran("BC", "D", 1.0, 0.2)]).joinings(plan("((B C) D)"))
    right = zhu_costs.t_ms_left_deep(6, 8, 2, W, t_j=1, t_s=0, sigma_bc=0.1, sigma_bcd=0.2)
    assert sum(join.pairs for join in found) == approx(right)


def test_an_index_lets_through_what_its_keys_do() -> None:
    (join,) = estimate(key("AB"), joins=[ran("A", "B", 0.05, 0.5)]).joinings(plan("(A B)"))
    assert (join.pairs, join.output.rows) == approx((40 * 60 * 0.05, 40 * 60 * 0.025))


def test_a_join_that_never_ran_takes_its_key_from_one_that_did() -> None:
    """B and C met as AB and C; A and C did too, and A and B met by a key of their own."""
    found = estimate(key("ABC"), joins=[ran("A", "B", 0.01), ran("AB", "C", 0.2)])
    assert found.matched(frozenset("B"), frozenset("C")) == approx(0.2)
    assert found.matched(frozenset("A"), frozenset("BC")) == approx(0.01), "the rarer of its two keys decides"


def test_sources_that_never_met_take_the_mean_of_their_key() -> None:
    found = estimate(key("ABCD"), joins=[ran("A", "B", 0.01), ran("C", "D", 0.04)])
    assert found.matched(frozenset("A"), frozenset("D")) == approx(0.02)


def test_of_a_key_never_used_every_row_has_its_own() -> None:
    assert estimate(key("AC")).matched(frozenset("A"), frozenset("C")) == approx(1 / 80)


def test_two_keys_between_two_sides_share_what_was_measured() -> None:
    found = estimate(key("AB"), key("ABC"), joins=[ran("A", "B", 0.01), ran("AB", "C", 0.5)])
    assert found.matched(frozenset("A"), frozenset("B")) == approx(0.01)
    assert found.matched(frozenset("B"), frozenset("C")) == approx(0.5)


def test_without_a_condition_every_pair_is_compared_and_passes() -> None:
    found = estimate(key("AB"), Condition("theta", frozenset("BC")))
    assert (found.matched(frozenset("A"), frozenset("C")), found.passed(frozenset("A"), frozenset("C"))) == (1, 1)


def test_a_predicate_is_tested_where_all_its_sources_come_together_first() -> None:
    found = estimate(Condition("theta", frozenset("ABC")), joins=[ran("AB", "C", 1.0, 0.3)])
    assert found.passed(frozenset("A"), frozenset("BC")) == approx(0.3)
    assert found.passed(frozenset("A"), frozenset("B")) == 1
    assert found.passed(frozenset("ABC"), frozenset("D")) == 1


def test_a_listed_state_is_as_large_as_it_is() -> None:
    found = estimate(key("ABC"), joins=[ran("A", "B", 0.1)], states={frozenset("AB"): 7.0})
    first, second = found.joinings(plan("((A B) C)"))
    assert first.output.rows == 7
    assert second.pairs == approx(7 * 80 * 0.1)


def test_a_common_subplan_is_the_state_of_its_sources() -> None:
    """As decomposition leaves it: A+B is the state of (A B)."""
    found = estimate(key("ABC"), joins=[ran("A", "B", 0.1)])
    (join,) = found.joinings(Join(Common(("A", "B")), Leaf("C")))
    assert join == found.joinings(plan("((A B) C)"))[-1]


def test_probing_orders_repeat_their_work_and_keep_nothing() -> None:
    found = estimate(key("ABC"), joins=[ran("A", "B", 0.1), ran("AB", "C", 0.1)])
    hops = found.joinings(plan("[A: B C | B: A C | C: A B]"))
    first, second = hops[:2]
    assert not any(hop.kept for hop in hops)
    assert first.running == approx(4 * 60 * 0.1)
    assert second.running == approx(4 * 60 * 0.1 * 80 * 0.1)
    assert (first.pairs, second.pairs) == approx((first.running * W / 2, second.running * W / 3))


def test_an_eddy_sends_rows_where_they_meet_least() -> None:
    found = estimate(key("AB"), key("BC"), joins=[ran("A", "B", 0.1), ran("B", "C", 0.001)])
    hops = found.joinings(plan("eddy(A B C)"))
    of_b = [hop.right.sources for hop in hops if "B" in hop.left.sources and len(hop.left.sources) == 1]
    assert of_b == [frozenset("C")]


def test_stairs_hold_what_their_tree_holds() -> None:
    found = estimate(key("ABC"))
    assert found.joinings(plan("stairs(((A B) C))")) == found.joinings(plan("((A B) C)"))


def test_long_plans_are_estimated_at_once() -> None:
    """A plan over 101 streams, its joins and their sources looked at a few times each."""
    names = [f"S{i}" for i in range(101)]
    tree: Plan = Leaf(names[0])
    for name in names[1:]:
        tree = Join(tree, Leaf(name))
    joins = tuple(JoinStatistics(frozenset(names[:i]), frozenset({names[i]}), 0.1, 1.0) for i in range(1, len(names)))
    sources = {name: SourceStatistics(1, 10, 10) for name in names}
    found = Estimate(Statistics(sources, (Condition("hash", frozenset(names)),), joins)).joinings(tree)
    assert len(found) == 100
    assert found[-1].output.rows == approx(10**101 * 0.1**100)


@dataclass(frozen=True)
class Given:
    """Samples of given sizes; the index lets through twice what satisfies the rest."""

    sizes: dict[str, float]

    def rows(self, sources: frozenset[str]) -> Bounded:
        return Bounded.sampled(self.sizes["".join(sorted(sources))], 4.0)

    def compared(self, left: frozenset[str], right: frozenset[str]) -> float:
        return 2 * self.rows(left | right).value


def test_what_the_plan_keeps_is_counted_and_never_sampled() -> None:
    statistics = Statistics(SOURCES, (key("ABC"),), (), {frozenset("AB"): 7.0}, samples=Given({"BC": 90.0}))
    found = Estimate(statistics)
    assert found.rows(frozenset("A")) == Bounded.exactly(40)
    assert found.rows(frozenset("AB")) == Bounded.exactly(7)
    assert found.rows(frozenset("BC")) == Bounded(90, 86, 94, Origin.SAMPLED)


def test_sources_that_nothing_ties_together_are_all_combined() -> None:
    found = Estimate(Statistics(SOURCES, (key("AB"), Condition("theta", frozenset("ACD"))), samples=Given({"AB": 9.0})))
    assert found.rows(frozenset("AC")) == Bounded.exactly(40 * 80)
    assert found.rows(frozenset("ABC")) == Bounded(9 * 80, 5 * 80, 13 * 80, Origin.SAMPLED)


def test_without_samples_sizes_are_guessed_from_joins_that_ran() -> None:
    found = estimate(key("ABC"), joins=[ran("A", "B", 0.1)], states={frozenset("AB"): 7.0})
    assert found.rows(frozenset("ABC")) == Bounded(approx(7 * 80 * 0.1), 0, 40 * 60 * 80, Origin.GUESSED)
    assert found.rows(frozenset("BC")).value == approx(60 * 80 * 0.1)


def test_joins_that_never_ran_are_as_large_as_samples_say() -> None:
    sizes = {"AB": 12.0, "BC": 90.0, "ABC": 30.0}
    found = Estimate(Statistics(SOURCES, (key("AB"), key("BC")), samples=Given(sizes)))
    last = found.joinings(plan("((B C) A)"))[-1]
    assert (last.left.rows, last.output.rows, last.pairs) == approx((90, 30, 60))
    *_, hop = found.hops("B", "CA")
    assert hop.running == approx(6 * 80 * 90 / (60 * 80) * 40 * 60 / (90 * 40))
    assert hop.output.rate == approx(hop.running / 2)
