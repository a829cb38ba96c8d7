"""Wang ch. 7: the chain's costs against ch. 4 and 5, the printed difference, and the plans that Fig. 8.3 tells of."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import pytest
from pytest import approx

from midstream.lab.costs import two_queries
from midstream.lab.costs.two_queries import TwoQueries, saved_by_merging, saved_by_merging_as_printed
from midstream.sharing.chain_cost import (
    ChainLoad,
    UnitCosts,
    chain_cost,
    edge_lengths,
    state_rows,
)
from midstream.sharing.schemes.cpu_opt import cheapest_cuts

PLAIN = UnitCosts()
FIVE = ChainLoad(w=(5, 10, 12, 20, 30), lambda_a=20, lambda_b=30, s_join=0.1)

UNIFORM = tuple(2.5 * i for i in range(1, 13))
MOSTLY_SMALL = (1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30)
SMALL_LARGE = (1.0, 2, 3, 4, 5, 6, 25, 26, 27, 28, 29, 30)
"""Table 8.2."""


def all_cuts(w: tuple[float, ...]) -> list[tuple[float, ...]]:
    return [(*inner, w[-1]) for size in range(len(w)) for inner in combinations(w[:-1], size)]


def filtered(s_sigma: float) -> tuple[TwoQueries, ChainLoad]:
    """The two queries of ch. 4 as a chain."""
    q = TwoQueries(lambda_=20, w_1=10, w_2=30, s_sigma=s_sigma, s_join=0.1)
    return q, ChainLoad((q.w_1, q.w_2), q.lambda_, q.lambda_, q.s_join, s_a=(1, s_sigma))


def test_theorem_5_however_the_chain_is_cut() -> None:
    for cuts in all_cuts(FIVE.w):
        assert state_rows(FIVE, cuts) == approx((FIVE.lambda_a + FIVE.lambda_b) * FIVE.w[-1])


def test_theorem_6_with_filters_every_window_is_best_cut() -> None:
    load = ChainLoad(FIVE.w, 20, 30, 0.1, s_a=(0.9, 0.3, 0.8, 0.2, 0.1), s_b=(1, 1, 0.5, 0.5, 0.1))
    found = {cuts: state_rows(load, cuts) for cuts in all_cuts(FIVE.w)}
    assert min(found, key=lambda cuts: found[cuts]) == FIVE.w
    assert found[FIVE.w] < min(rows for cuts, rows in found.items() if cuts != FIVE.w)
    # Rows of A live as long as the widest query that wants them: 0.9 until 5, 0.8 until 12, 0.2 until 20, 0.1 until 30.
    of_a = 20 * (0.9 * 5 + 0.8 * 7 + 0.2 * 8 + 0.1 * 10)
    assert found[FIVE.w] == approx(of_a + 30 * (1 * 10 + 0.5 * 10 + 0.1 * 10))


@pytest.mark.parametrize("s_sigma", [0.05, 0.5, 1.0])
def test_one_slice_is_equation_4_1(s_sigma: float) -> None:
    q, load = filtered(s_sigma)
    expected = two_queries.pull_up(q)
    # Without a filter there is nothing to check, for which Equation 4.1 still pays.
    filters = 0 if s_sigma < 1 else expected.cpu["filter"]
    assert chain_cost(load, PLAIN, (q.w_2,)) == approx(expected.c_p - filters)
    assert state_rows(load, (q.w_2,)) == approx(expected.c_m)


@pytest.mark.parametrize("s_sigma", [0.05, 0.5])
def test_two_slices_are_equation_5_1_but_for_the_purges_of_rows_that_never_arrived(s_sigma: float) -> None:
    """Equation 5.1 purges the second slice with all of A; only the share S_sigma gets there."""
    q, load = filtered(s_sigma)
    expected = two_queries.state_slice(q)
    assert chain_cost(load, PLAIN, (q.w_1, q.w_2)) == approx(expected.c_p - (1 - s_sigma) * q.lambda_)
    assert state_rows(load, (q.w_1, q.w_2)) == approx(expected.c_m)


def test_every_unit_is_counted_where_it_belongs() -> None:
    """A slice [10, 20) with the window 12 inside, second of the chain: 20 A's and 30 B's a second."""

    def alone(**cost: float) -> float:
        none = dict.fromkeys(("probe", "purge", "route", "filter", "union", "operator", "boundary"), 0.0)
        return float(edge_lengths(FIVE, UnitCosts(**(none | cost)), 2)[1])

    pairs = 2 * 20 * 30 * 10
    assert alone(probe=1) == pairs
    assert alone(route=1) == approx(pairs * 0.1 * 1)
    assert alone(purge=1) == alone(operator=1) == 50
    assert alone(union=1) == 2 * 50, "the queries of 12 and of 20"
    assert alone(filter=1) == 0
    assert alone(boundary=7) == 7


def test_filters_are_met_by_results_and_between_slices() -> None:
    load = ChainLoad((10, 20, 30), 20, 30, 0.1, s_a=(0.8, 0.4, 0.4), s_b=(1, 0.5, 0.5))
    only = UnitCosts(probe=0, purge=0, route=0, union=0)
    first, merged, _ = edge_lengths(load, only, 0)
    results = 2 * (20 * 0.8) * 30 * 0.1 * 10
    # At the chain's beginning sigma'_1 for A; at the slice's end sigma'_2 for A and B; two queries filter its results.
    assert first == approx(20 + 20 * 0.8 + 30 + 2 * results)
    # Q_1 takes the first half unfiltered, Q_2 and Q_3 all of it: two filters a result; sigma'_3 is sigma'_2.
    assert merged == approx(20 + 20 * 0.8 + 30 + 2 * results + 2 * results)
    assert edge_lengths(load, only, 1).tolist() == [0, 0]


@pytest.mark.parametrize(("i", "j"), [(2, 3), (2, 5), (3, 4), (4, 5)])
def test_the_printed_difference_saves_one_operator_too_many(i: int, j: int) -> None:
    """§7.2 has C_sys (j - i + 1); of j - i + 1 slices one is left."""
    c_sys = 3.0
    ours = saved_by_merging(FIVE, UnitCosts(operator=c_sys), i, j)
    assert saved_by_merging_as_printed(FIVE, c_sys, i, j) == approx(ours + c_sys * 50)
    assert saved_by_merging_as_printed(FIVE, 0, i, j) == approx(saved_by_merging(FIVE, PLAIN, i, j))


def test_merging_nothing_changes_nothing_though_the_printed_difference_says_so() -> None:
    assert saved_by_merging(FIVE, UnitCosts(operator=3), 2, 2) == 0
    assert saved_by_merging_as_printed(FIVE, 3, 2, 2) == approx(3 * 50)


def test_merging_the_first_slices_saves_their_unions_too() -> None:
    """§7.2: "both plans have the same union costs". Not where the first slice is among them: its queries need none."""
    c_sys = 3.0
    ours = saved_by_merging(FIVE, UnitCosts(operator=c_sys), 1, 3)
    assert ours == approx(saved_by_merging_as_printed(FIVE, c_sys, 1, 3) - c_sys * 50 + 2 * 50)


def test_lemma_4_the_cost_of_a_chain_is_the_sum_of_its_edges() -> None:
    load = ChainLoad(FIVE.w, 20, 30, 0.1, s_a=(0.9, 0.3, 0.8, 0.2, 0.1), s_b=(1, 1, 0.5, 0.5, 0.1))
    units = UnitCosts(operator=2, boundary=100)
    path = (edge_lengths(load, units, 0)[1], edge_lengths(load, units, 2)[1], edge_lengths(load, units, 4)[0])
    assert chain_cost(load, units, (10, 20, 30)) == approx(sum(path))
    best = cheapest_cuts(FIVE.w, partial(edge_lengths, load, units))
    least = min(chain_cost(load, units, cuts) for cuts in all_cuts(FIVE.w))
    assert chain_cost(load, units, best) == approx(least)


def test_the_dearer_a_boundary_the_fewer_slices() -> None:
    chains = [slices(UNIFORM, 40, UnitCosts(operator=c_sys)) for c_sys in (0, 5, 20, 80, 1e6)]
    assert chains == sorted(chains, reverse=True)
    assert chains[0] == 12 and chains[-1] == 1


def test_no_system_overhead_gives_both_chains_of_fig_8_3() -> None:
    """§8.3: of 12 queries, S_join = 0.025, the uniform windows stay unmerged and the small-large ones become two
    slices. By §7.2 the latter takes a C_sys at which the uniform windows are long merged: a result inside a slice of
    all six small windows costs five comparisons, a pair of uniform windows one."""
    for rate in (20, 40, 60, 80):
        for c_sys in (0.0, 0.5, 1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320):
            for union in (0.0, 1.0):
                units = UnitCosts(operator=c_sys, union=union)
                assert slices(UNIFORM, rate, units) < 12 or slices(SMALL_LARGE, rate, units) > 4


def test_mostly_small_windows_are_merged_before_uniform_ones() -> None:
    """§8.3, what the model does bear out: at the same costs skewed windows need fewer slices."""
    units = UnitCosts(operator=1, union=0)
    assert slices(UNIFORM, 20, units) == 12
    assert slices(MOSTLY_SMALL, 20, units) == 7 and slices(SMALL_LARGE, 20, units) == 6


def slices(w: tuple[float, ...], rate: float, units: UnitCosts) -> int:
    load = ChainLoad(w, rate, rate, s_join=0.025)
    return len(cheapest_cuts(w, partial(edge_lengths, load, units)))


def test_windows_must_ascend_and_filters_be_one_per_query() -> None:
    with pytest.raises(ValueError, match="ascend"):
        ChainLoad((10, 10), 1, 1, 0.1)
    with pytest.raises(ValueError, match="one selectivity per query"):
        ChainLoad((10, 20), 1, 1, 0.1, s_a=(1,))


def test_filters_that_are_not_nested_let_more_through_than_any_of_them() -> None:
    """cond'_i is the disjunction; its selectivity is the caller's to measure."""
    nested = ChainLoad((10, 20), 20, 20, 0.1, s_a=(0.5, 0.5))
    apart = ChainLoad((10, 20), 20, 20, 0.1, s_a=(0.5, 0.5), s_a_prime=(0.75, 0.5))
    assert state_rows(nested, (10, 20)) == 20 * 20 + 20 * 0.5 * 20
    assert state_rows(apart, (10, 20)) == 20 * 20 + 20 * (0.75 * 10 + 0.5 * 10)
