"""Timed runs: what they count is what the cost model counts."""

from __future__ import annotations

from itertools import count

import pytest

from midstream.lab.timed_runs import EDDY, ORDERS, STEPS, TREE, WARM, CalibrationRun, timed_runs


@pytest.mark.parametrize("plan", [TREE, ORDERS, EDDY])
def test_a_run_counts_what_its_plan_does(plan: str) -> None:
    steps, clock = STEPS - WARM, count(0, 7)
    (work,) = timed_runs(lambda: next(clock), [CalibrationRun(plan, rate=20.0, keys=10.0)])
    assert work.nanoseconds == 7 * steps, "only steps of full windows are timed"
    assert work.steps == steps
    assert work.operator_steps == (2 if plan == TREE else 6) * steps
    assert work.comparisons >= work.results >= work.outputs > 0
    assert work.probes > 300 and (work.routes == work.probes) == (plan == EDDY)
    joined = work.results - work.outputs
    # Three streams of 20 rows a second, and of a tree what its lower join makes.
    assert abs(work.inserts - 60 * steps - (joined if plan == TREE else 0)) < 100


def test_a_nested_loop_compares_all_pairs() -> None:
    indexed, nested = timed_runs(
        iter(range(1000)).__next__, [CalibrationRun(TREE, 20.0, 10.0), CalibrationRun(TREE, 20.0, 10.0, nested=True)]
    )
    assert nested.results == indexed.results
    assert nested.comparisons > 5 * indexed.comparisons
