"""HybMig's durations and spike: worked numbers, limits, and a queue worked off second by second."""

from __future__ import annotations

from math import inf

import pytest
from pytest import approx

from midstream.lab.costs import hybmig_costs

LOADS = [(1.0, 1.0, 6, 180, 0.02, 0.03, 0.04), (0.4, 1.6, 4, 60, 0.1, 0.1, 0.2), (1.6, 0.4, 7, 300, 0.03, 0.01, 0.05)]
"""tau, tau', n, w, T_old, T_new, T'_new."""


def test_the_background_ends_hybmig_when_it_is_done_before_w() -> None:
    assert [hybmig_costs.duration_hybmig(180, finish) for finish in (0, 20, 180, 500, inf)] == [0, 20, 180, 180, 180]


def test_gms_takes_the_time_of_the_old_tuples() -> None:
    assert hybmig_costs.duration_gms(tau_prime=1.5, n=4, w=60, t_new_prime=0.01) == approx(3.6)
    assert hybmig_costs.duration_gms(tau_prime=0, n=4, w=60, t_new_prime=0.01) == 0


@pytest.mark.parametrize(("tau", "tau_prime", "n", "w", "_", "t_new", "t_new_prime"), LOADS)
def test_the_spike_is_the_time_to_work_off_what_waited(
    tau: float, tau_prime: float, n: int, w: float, _: float, t_new: float, t_new_prime: float
) -> None:
    """Played through in slices: the queue at the end of GMS's silence, one plan's work, new tuples flowing in."""
    waiting, time, slice_ = tau * n * hybmig_costs.duration_gms(tau_prime, n, w, t_new_prime), 0.0, 0.01
    while waiting > 0:
        waiting += slice_ * (tau * n - 1 / t_new)
        time += slice_
    assert hybmig_costs.spike_len_gms(tau, tau_prime, n, w, t_new, t_new_prime) == approx(time, abs=2 * slice_)


def test_an_overloaded_new_plan_never_catches_up() -> None:
    assert hybmig_costs.spike_len_gms(tau=1, tau_prime=1, n=10, w=60, t_new=0.1, t_new_prime=0.1) == inf
    assert hybmig_costs.d_1(tau=1, tau_prime=1, n=10, w=60, t_old=0.1, t_new_prime=0.1) == inf
    assert hybmig_costs.d_2(tau=1, tau_prime=1, n=10, w=60, t_old=0.05, t_new=0.05, t_new_prime=0.1) == inf


def test_gpt_is_one_window_of_both_plans() -> None:
    assert hybmig_costs.duration_gpt(180) == 180
    assert hybmig_costs.cpu_gpt(tau=2, n=5, w=60, t_old=0.01, t_new=0.02) == approx(18)
    assert hybmig_costs.delay_gpt(0.01) == 0.01


@pytest.mark.parametrize(("tau", "tau_prime", "n", "w", "t_old", "t_new", "t_new_prime"), LOADS)
def test_ghm_is_its_two_phases_and_a_closed_form(
    tau: float, tau_prime: float, n: int, w: float, t_old: float, t_new: float, t_new_prime: float
) -> None:
    load = (tau, tau_prime, n, w, t_old)
    total = hybmig_costs.duration_ghm(*load, t_new, t_new_prime)
    assert total == approx(hybmig_costs.d_1(*load, t_new_prime) + hybmig_costs.d_2(*load, t_new, t_new_prime))
    assert total == approx(tau_prime * n * w * t_new_prime / (1 - tau * n * (t_old + t_new)))
    assert total >= hybmig_costs.duration_gms(tau_prime, n, w, t_new_prime), "GHM serves the old plan as well"


@pytest.mark.parametrize(("tau", "tau_prime", "n", "w", "t_old", "t_new", "t_new_prime"), LOADS)
def test_ghm_s_phases_are_balances_of_work(
    tau: float, tau_prime: float, n: int, w: float, t_old: float, t_new: float, t_new_prime: float
) -> None:
    """The text's own equations: each phase lasts as long as the work that falls into it."""
    first = hybmig_costs.d_1(tau, tau_prime, n, w, t_old, t_new_prime)
    second = hybmig_costs.d_2(tau, tau_prime, n, w, t_old, t_new, t_new_prime)
    assert first == approx(tau_prime * n * w * t_new_prime + tau * n * first * t_old)
    assert second == approx(tau * n * (first + second) * t_new + tau * n * second * t_old)


@pytest.mark.parametrize(("tau", "tau_prime", "n", "w", "t_old", "t_new", "t_new_prime"), LOADS)
def test_the_sum_as_the_text_writes_it_out_is_not_its_phases(
    tau: float, tau_prime: float, n: int, w: float, t_old: float, t_new: float, t_new_prime: float
) -> None:
    first = hybmig_costs.d_1(tau, tau_prime, n, w, t_old, t_new_prime)
    second = hybmig_costs.d_2(tau, tau_prime, n, w, t_old, t_new, t_new_prime)
    assert tau * n * first * t_new * (1 - tau * n * t_old) + second != approx(first + second, rel=0.1)


def test_with_an_idle_old_plan_and_no_new_tuples_ghm_is_gms() -> None:
    assert hybmig_costs.duration_ghm(0, 1, 6, 180, 0.02, 0.03, 0.04) == approx(
        hybmig_costs.duration_gms(1, 6, 180, 0.04)
    )
