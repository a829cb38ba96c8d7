"""Durations and CPU times of HybMig §4.4 and Zhu §5.2 against migrations of the engine; CPU time is comparisons."""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any

from pytest import approx

from midstream.lab.costs import hybmig_costs, zhu_costs
from midstream.model.events import MigrationEnded
from tests.unit.building import engine
from tests.unit.migration.flows import advance, ended, warm, worked

W, BEGIN = 10.0, 20.0
TAU, N = 12.0, 4
RATES = dict.fromkeys("ABCD", TAU)
KEYS = dict.fromkeys("ABCD", 20)
SQL = "SELECT A.k FROM A, B, C, D WHERE A.k = B.k AND B.k = C.k AND C.k = D.k WINDOW 10 SECONDS"
OLD, NEW = "(((A B) C) D)", "(A (B (C D)))"


@cache
def per_row(plan: str) -> tuple[float, float]:
    """What a plan that begins a window before BEGIN compares for one row: in its first window, and in its second."""
    made = engine("ABCD")
    made.add_query("q", SQL, plan=plan)
    advance(made, RATES, KEYS, BEGIN - W, BEGIN + W)
    first, second = worked(made)[: int(W)], worked(made)[int(W) :]
    return sum(first) / (TAU * N * W), sum(second) / (TAU * N * W)


def migrated(strategy: str, plan: str = NEW, seconds: float = 15, **options: Any) -> Any:
    made = warm(SQL, OLD, RATES, KEYS, until=BEGIN)
    made.migrate("q", plan, strategy=strategy, **options)
    advance(made, RATES, KEYS, BEGIN, BEGIN + seconds)
    return made


def test_gms_costs_what_a_first_window_of_the_new_plan_does() -> None:
    t_new_prime, _ = per_row(NEW)
    assert ended(migrated("gms")).comparisons == approx(hybmig_costs.duration_gms(TAU, N, W, t_new_prime), rel=0.2)


def test_gms_pays_less_for_an_old_tuple_than_is_paid_for_a_new_one() -> None:
    """The text says T'_new >= T_new, for the new plan suits the new data. Where the data stay as they are it is less:
    the old tuples meet states that fill up, the new ones full states."""
    t_new_prime, t_new = per_row(NEW)
    assert t_new_prime < t_new


def test_gpt_and_hybmig_and_parallel_track_last_one_window() -> None:
    for strategy, length in (
        ("gpt", hybmig_costs.duration_gpt(W)),
        ("hybmig", hybmig_costs.duration_hybmig(W)),
        ("parallel_track", zhu_costs.t_pt(W, h=1)),
    ):
        assert ended(migrated(strategy)).detail["steps"] == approx(length + 1, abs=1), strategy


def test_by_zhu_s_purge_rule_parallel_track_lasts_two() -> None:
    """Whatever the height above one, as Equation 4 says; an old plan of one join is done after one window."""
    made = migrated("parallel_track", seconds=25, purge="zhu")
    assert ended(made).detail["steps"] == approx(zhu_costs.t_pt(W, h=3) + 1, abs=1)


def test_gpt_costs_at_most_both_plans_over_a_window() -> None:
    """Its new plan begins empty, which the formula overlooks: the truth lies between its first and second window."""
    (_, t_old), (t_new_prime, t_new) = per_row(OLD), per_row(NEW)
    made = migrated("gpt")
    both = sum(worked(made)[int(BEGIN) : int(BEGIN + W)])
    assert both < 1.15 * hybmig_costs.cpu_gpt(TAU, N, W, t_old, t_new)
    assert both > 0.85 * hybmig_costs.cpu_gpt(TAU, N, W, t_old, t_new_prime)


def test_ghm_is_done_by_the_time_of_the_equation() -> None:
    """The budget is so many comparisons a second, of which the old plan takes none. The engine may be sooner, because
    rows that die while they wait are not fed; it leaves a fifth of a small budget unused, so dear rows still fit."""
    t_new_prime, t_new = per_row(NEW)
    lengths = []
    for spare in (1.6, 2.4, 4.0):
        budget = spare * TAU * N * t_new
        used = 0.8 * budget
        whole = hybmig_costs.duration_ghm(TAU, TAU, N, W, t_old=0, t_new=t_new / used, t_new_prime=t_new_prime / used)
        lengths.append(ended(migrated("ghm", seconds=30, budget=int(budget))).detail["steps"])
        assert lengths[-1] <= whole + 2
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1]


def test_ghm_never_ends_where_the_equation_is_infinite() -> None:
    _, t_new = per_row(NEW)
    assert hybmig_costs.duration_ghm(TAU, TAU, N, W, t_old=0, t_new=2 / TAU / N, t_new_prime=1) == inf
    made = migrated("ghm", seconds=25, budget=int(0.5 * TAU * N * t_new))
    assert not [event for event in made.events if isinstance(event, MigrationEnded)]
