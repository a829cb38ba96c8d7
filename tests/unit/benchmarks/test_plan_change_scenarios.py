"""The scenarios of the plan-change benchmark: seeded, drifting, and the right plan is the better one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import midstream as ms
from benchmarks.plan_change.contestants import NEVER, Contestant
from benchmarks.plan_change.load import Load
from benchmarks.plan_change.rows import generate
from benchmarks.plan_change.scenario import Scenario
from benchmarks.plan_change.scenarios import SCENARIOS
from benchmarks.plan_change.stateless import carried
from benchmarks.plan_change.task import QUERY, Task
from midstream.model.events import StepDone

LOAD = Load(window=1.0, tick=0.05, lead=0.1, pieces=5, rate=2_000, budget=100)
DENSE = replace(LOAD, rate=120_000)
"""What a single hot key costs grows with the square of the rate."""
each = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


@each
def test_rows_are_the_same_on_every_call_and_come_in_order(scenario: Scenario) -> None:
    rows = generate(scenario, LOAD)
    assert rows.tables == generate(scenario, LOAD).tables
    for stream, table in rows.tables.items():
        assert table.column("id").to_pylist() == list(range(table.num_rows))
        assert np.all(np.diff(rows.times[stream]) >= 0)
        assert rows.times[stream][-1] <= scenario.length * LOAD.window * 1e6


@each
def test_the_old_plan_is_better_before_the_drift_and_the_new_one_in_the_end(scenario: Scenario) -> None:
    old, new = (work(scenario, plan) for plan in (scenario.old.tree, scenario.changes[-1].to.tree))
    before = slice(round(scenario.drift * 10) // 2, round(min(scenario.drift, scenario.changes[0].at) * 10) - 4)
    settled = slice(round((scenario.length - 0.5) * 10), None)
    assert old[before].sum() < 0.8 * new[before].sum()
    assert new[settled].sum() < 0.8 * old[settled].sum()


def work(scenario: Scenario, plan: str) -> np.ndarray:
    """Comparisons of each tenth of a window."""
    load = DENSE if "hot" in scenario.regions else LOAD
    rows = generate(scenario, load)
    engine, taken = ms.Engine(), dict.fromkeys(rows.tables, 0)
    Task(scenario, load, rows, Contestant(NEVER)).declare(engine, plan)
    for tenth in range(round(scenario.length * 10)):
        arrived = rows.arrived((tenth + 1) / 10 * load.window)
        answer = engine.push(rows.between(taken, arrived))[QUERY]
        assert tenth < 3 or answer.num_rows, "a scenario must have results at all times"
        taken = arrived
    return np.array([event.comparisons for event in engine.events if isinstance(event, StepDone)])


@each
def test_the_scenario_ends_after_the_change_does(scenario: Scenario) -> None:
    assert scenario.drift <= scenario.changes[0].at
    assert scenario.length >= scenario.changes[-1].at + 1.2


def test_what_is_handed_over_is_every_row_once() -> None:
    scenario = SCENARIOS["rate_flip"]
    rows = generate(scenario, LOAD)
    task = Task(scenario, LOAD, rows, Contestant("moving_state"))
    (*_, (moment, last)) = task.history()
    assert moment == task.begin == scenario.changes[0].at - LOAD.lead
    assert last == rows.arrived(moment) and all(last[s] < n for s, n in rows.total().items())
    pieces = [last, task.end, *task.epilogue()]
    assert pieces[-1] == rows.total()
    assert all(before[s] < after[s] for before, after in pairwise(pieces) for s in ("A", "B"))
    rest = rows.between(last, rows.total())
    assert all(table.column("id")[0].as_py() == last[stream] for stream, table in rest.items())


def test_a_replay_has_all_rows_that_may_still_join_and_few_others() -> None:
    rows = generate(SCENARIOS["selectivity_flip"], LOAD)
    taken = rows.arrived(1.9)
    since = rows.still_in_window(taken, 0.5)
    for stream, times in rows.times.items():
        newest = min(rows.times[s][n - 1] for s, n in taken.items())
        assert np.all(times[since[stream] : taken[stream]] >= newest - 500_000)
        assert np.all(times[: since[stream]] < newest - 500_000)


def test_a_contestant_that_cannot_do_it_is_known_before_the_run() -> None:
    scenario = SCENARIOS["selectivity_flip"]
    rows = generate(scenario, LOAD)
    assert "stateful" in (Task(scenario, LOAD, rows, Contestant("pause_drain_resume")).refusal() or "")
    assert Task(scenario, LOAD, rows, Contestant("moving_state")).refusal() is None
    assert Task(scenario, LOAD, rows, Contestant(NEVER)).refusal() is None


def test_a_stateless_query_is_carried_by_pause_drain_resume() -> None:
    assert carried(generate(SCENARIOS["hot_key"], LOAD), "pause_drain_resume").endswith(
        "nothing lost, nothing doubled."
    )
