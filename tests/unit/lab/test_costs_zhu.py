"""Zhu's cost model: worked numbers, limits, and the counters of the engine."""

from __future__ import annotations

import pytest
from pytest import approx

from midstream.lab.costs import zhu_costs
from midstream.model.events import StepDone
from tests.unit.migration.flows import advance, ended, warm, worked

THETA = "SELECT A.k FROM A, B, C, D WHERE A.k = B.k AND B.j * C.k < 19 AND C.j * D.k < 19 WINDOW 10 SECONDS"
RATES = {"A": 4.0, "B": 6.0, "C": 8.0, "D": 3.0}
KEYS = dict.fromkeys("ABCD", 20)
W = 10.0
SIGMA_BC = SIGMA_CD = sum(x * y < 19 for x in range(20) for y in range(20)) / 400
"""Predicates that no index serves, over two draws from 20 values."""


def test_matching_and_moving_count_states() -> None:
    """Three joins in each box: six states against six, and at most six of them shared (N, M = 3)."""
    assert zhu_costs.t_match(3, 3, 0.5) == 18
    assert zhu_costs.t_move(3, 3, 0.5) == 3
    assert zhu_costs.t_move(5, 2, 1) == zhu_costs.t_move(2, 5, 1) == 4


def test_the_paper_s_first_setting() -> None:
    """Table 2, set 1 at W = 4 s: ten tuples a second each, in seconds with T_j = T_s = 1 ms."""
    assert zhu_costs.t_s_ab(10, 10, 4, 0.001, 0.001, 0.05) == approx(1.6 * 1.05)
    assert zhu_costs.lambda_ab(10, 10, 4, 0.05) == 40
    assert zhu_costs.joined_state_size(10, 10, 4, 0.05) == 80


@pytest.mark.parametrize(("h", "length"), [(1, 7.0), (2, 14.0), (9, 14.0)])
def test_parallel_track_lasts_one_window_or_two(h: int, length: float) -> None:
    assert zhu_costs.t_pt(7.0, h) == length


def test_an_output_rate_times_the_window_is_twice_the_state() -> None:
    """Equation 2 times W against Equation 1's own count of inserted tuples: a pair does not live for W."""
    assert zhu_costs.lambda_ab(3, 5, 7, 0.1) * 7 == approx(2 * zhu_costs.joined_state_size(3, 5, 7, 0.1))


def test_equation_6_is_an_integral_over_the_first_window() -> None:
    """Summed up in small slices of time, with T_s = 0."""
    slices = 10_000
    dt = W / slices
    first = sum(2 * 6.0 * 8.0 * (i + 0.5) * dt * dt for i in range(slices))
    assert zhu_costs.t_bc(6, 8, W, 1, 0) == approx(first + W * 2 * 6 * 8 * W)
    assert zhu_costs.t_bc_as_printed(6, 8, W, 1, 0) - W * 2 * 6 * 8 * W == approx(W * first)
    assert zhu_costs.t_bc_as_printed(6, 8, 1, 1, 1) == zhu_costs.t_bc(6, 8, 1, 1, 1)


def test_equation_7_is_a_rate_and_meets_the_full_states() -> None:
    assert (
        zhu_costs.lambda_bc(W, 6, 8, W, 0.1)
        == zhu_costs.lambda_bc(99, 6, 8, W, 0.1)
        == approx(zhu_costs.lambda_ab(6, 8, W, 0.1))
    )
    slices = 10_000
    made = sum(zhu_costs.lambda_bc((i + 0.5) * W / slices, 6, 8, W, 0.1) for i in range(slices)) * W / slices
    assert zhu_costs.lambda_bc_as_printed(W, 6, 8, W, 0.1) == approx(made), "what is printed is what was made so far"


def test_equation_8_is_equations_1_to_3_with_the_doubled_state() -> None:
    lambda_bc = zhu_costs.lambda_ab(6, 8, W, 0.1)
    both = zhu_costs.t_s_ab(6, 8, W, 2, 3, 0.1) + zhu_costs.t_s_ab(lambda_bc, 3, W, 2, 3, 0.2)
    assert zhu_costs.t_ms_left_deep_as_printed(6, 8, 3, W, 2, 3, 0.1, 0.2) == approx(zhu_costs.t_ms(0, 0, both))
    first = zhu_costs.t_s_ab(6, 8, W, 2, 3, 0.1)
    assert zhu_costs.t_ms_left_deep(6, 8, 3, W, 2, 3, 0.1, 0.2) == approx(first + (both - first) / 2)


def test_moving_state_s_comparisons_are_equation_1() -> None:
    """One missing state over nested loops: |S_C||S_D| comparisons, within what Poisson arrivals allow."""
    made = warm(THETA, "(((A B) C) D)", RATES, KEYS, until=3 * W)
    made.migrate("q", "((A B) (C D))", "moving_state")
    advance(made, RATES, KEYS, 3 * W, 3 * W + 1)
    assert ended(made).comparisons == approx(zhu_costs.t_s_ab(8, 3, W, t_j=1, t_s=0, sigma_ab=SIGMA_CD), rel=0.25)


def test_moving_state_s_comparisons_are_equation_8_put_right() -> None:
    """Two missing states, one over the other: the counters tell the factor of two apart."""
    made = warm(THETA, "(((A B) C) D)", RATES, KEYS, until=3 * W)
    made.migrate("q", "(A ((B C) D))", "moving_state")
    advance(made, RATES, KEYS, 3 * W, 3 * W + 1)
    right = zhu_costs.t_ms_left_deep(6, 8, 3, W, 1, 0, SIGMA_BC, SIGMA_CD)
    printed = zhu_costs.t_ms_left_deep_as_printed(6, 8, 3, W, 1, 0, SIGMA_BC, SIGMA_CD)
    assert ended(made).comparisons == approx(right, rel=0.25)
    assert ended(made).comparisons != approx(printed, rel=0.25)


def test_a_joined_state_is_half_of_what_its_rate_and_window_say() -> None:
    """In small steps, for a step purges only what was dead before it."""
    rates = {"A": 40.0, "B": 60.0, "C": 40.0}
    sql = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 10 SECONDS"
    made = warm(sql, "((A B) C)", rates, {**KEYS, "C": 2000}, until=2 * W, step=0.25)
    states = made.explain("q", analyze=True, format="json")["states"]
    (held,) = [rows for state, rows in states.items() if state.startswith("A+B.")]
    assert held == approx(zhu_costs.joined_state_size(40, 60, W, sigma_ab=1 / 20), rel=0.25)
    assert held != approx(zhu_costs.lambda_ab(40, 60, W, sigma_ab=1 / 20) * W, rel=0.25)


def test_a_running_join_costs_equation_5_without_the_inserts() -> None:
    """A nested-loop join in steady state, over two windows."""
    rates = {"A": 6.0, "B": 8.0}
    made = warm("SELECT A.k FROM A, B WHERE A.k * B.k < 19 WINDOW 10 SECONDS", "(A B)", rates, KEYS, until=2 * W)
    advance(made, rates, KEYS, 2 * W, 4 * W)
    assert sum(worked(made)[-int(2 * W) :]) == approx(zhu_costs.t_ab(6, 8, W, t_j=1, t_s=0), rel=0.15)


def test_a_join_whose_states_begin_empty_costs_equation_6() -> None:
    """The new box of parallel track sees what a query sees in its first two windows."""
    rates = {"B": 6.0, "C": 8.0}
    made = warm("SELECT B.k FROM B, C WHERE B.k * C.k < 19 WINDOW 10 SECONDS", "(B C)", rates, KEYS, until=2 * W)
    assert sum(worked(made)) == approx(zhu_costs.t_bc(6, 8, W, t_j=1, t_s=0), rel=0.15)
    assert zhu_costs.t_bc_as_printed(6, 8, W, t_j=1, t_s=0) > 3 * zhu_costs.t_bc(6, 8, W, t_j=1, t_s=0)


def test_a_join_whose_states_begin_empty_gives_results_at_the_rate_of_equation_7() -> None:
    """In steps of a second, of which each gives what its moments add up to."""
    rates = {"B": 160.0, "C": 120.0}
    made = warm("SELECT B.k FROM B, C WHERE B.k * C.k < 19 WINDOW 10 SECONDS", "(B C)", rates, KEYS, until=2 * W)
    given = [event.rows_out["q"] for event in made.events if isinstance(event, StepDone)]
    for first, last in ((0, 3), (3, 6), (6, 10), (10, 20)):
        at = [zhu_costs.lambda_bc(second + 0.5, 160, 120, W, SIGMA_BC) for second in range(first, last)]
        assert sum(given[first:last]) == approx(sum(at), rel=0.25)
    assert zhu_costs.lambda_bc_as_printed(8, 160, 120, W, SIGMA_BC) > 3 * given[8]
