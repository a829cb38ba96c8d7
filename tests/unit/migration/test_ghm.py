"""GHM feeds the new plan from queues, by a budget; the old plan is the output."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import midstream as ms
from midstream.migration.under_way.feeding import Queue
from midstream.model.events import MigrationBegun, MigrationEnded, MigrationProgressed
from midstream.model.window import EVENT_TIME
from midstream.plan.signature import Signature
from midstream.state.combinations import Combinations
from midstream.state.join_state import JoinState
from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec
from tests.unit.building import engine
from tests.unit.migration.flows import flow, worked

SQL = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 8 SECONDS"
OLD, NEW = "((A B) C)", "(A (B C))"
RATES, KEYS = {"A": 6.0, "B": 6.0, "C": 6.0}, {"A": 8, "B": 8, "C": 8}
BEGUN = 12


def run(moves: dict[int, str], *, saved: Path | None = None, **options: Any) -> tuple[Any, Counter[str]]:
    made = engine("ABC")
    made.add_query("q", SQL, plan=OLD)
    found: Counter[str] = Counter()
    for step in range(26):
        if step in moves:
            made.migrate("q", moves[step], "ghm", **options)
        if saved is not None and BEGUN <= step < BEGUN + 4:
            made.save(saved)
            made = ms.Engine.load(saved)
        found.update(map(str, made.push(flow(RATES, KEYS, step, step + 1))["q"].to_pylist()))
    return made, found


def events(made: Any, kind: type) -> list[Any]:
    return [event for event in made.events if isinstance(event, kind)]


def states(made: Any) -> dict[str, int]:
    """How many rows each state has."""
    lanes = made.manifest.lane_states.values()
    return {name: listing.live for lane in lanes for name, listing in lane.states.items()}


ALONE, EXPECTED = run({})


def test_the_old_plan_answers_and_the_queue_is_eaten_by_the_budget() -> None:
    made, found = run({BEGUN: NEW}, budget=1500)
    assert found == EXPECTED
    going = events(made, MigrationProgressed)
    assert len(going) > 1
    queues = [int(event.phase.split()[0]) for event in going]
    assert queues[0] > queues[-1] > 0
    assert all(0 < event.detail["progress"] < 1 for event in going)
    during = slice(BEGUN, BEGUN + len(going))
    extra = [a - b for a, b in zip(worked(made)[during], worked(ALONE)[during], strict=True)]
    # The old plan works as ever; the new one uses its budget, as exactly as a piece's cost can be foreseen.
    assert all(1425 <= e < 1800 for e in extra)
    (done,) = events(made, MigrationEnded)
    assert done.detail["steps"] == len(going) + 1 < 8


def test_afterwards_the_new_plan_stands_alone() -> None:
    made, _ = run({BEGUN: NEW}, budget=1500)
    (done,) = events(made, MigrationEnded)
    always = engine("ABC")
    always.add_query("q", SQL, plan=NEW)
    for step in range(26):
        always.push(flow(RATES, KEYS, step, step + 1))
    assert worked(made)[done.step + 1 :] == worked(always)[done.step + 1 :]
    assert states(made) == states(always)


def test_with_a_large_budget_it_ends_as_it_begins() -> None:
    made, found = run({BEGUN: NEW}, budget=10**9)
    assert found == EXPECTED
    assert [e.step for e in events(made, MigrationBegun)] == [e.step for e in events(made, MigrationEnded)]


def test_without_a_budget_it_waits_until_the_old_rows_are_spent() -> None:
    made, found = run({BEGUN: NEW}, budget=0)
    assert found == EXPECTED
    (done,) = events(made, MigrationEnded)
    assert 8 <= done.detail["steps"] <= 10
    during = slice(BEGUN, done.step)
    assert worked(made)[during] == worked(ALONE)[during]
    assert worked(made)[done.step] > worked(ALONE)[done.step]
    queues = [int(event.phase.split()[0]) for event in events(made, MigrationProgressed)]
    # Old rows die in the queue while new ones come: it holds about a window.
    assert max(queues) < 1.5 * min(queues)


def test_it_may_be_saved_and_loaded_under_way(tmp_path: Path) -> None:
    made, found = run({BEGUN: NEW}, budget=100, saved=tmp_path / "engine")
    assert found == EXPECTED
    assert events(made, MigrationEnded)


@pytest.mark.parametrize("decompose", [True, False])
@pytest.mark.parametrize("budget", [0, 7, 90])
def test_one_may_begin_while_another_is_under_way(budget: int, decompose: bool) -> None:
    moves = {BEGUN: NEW, BEGUN + 2: "((A C) B)", BEGUN + 3: OLD}
    made, found = run(moves, budget=budget, decompose=decompose)
    assert found == EXPECTED
    assert len(events(made, MigrationEnded)) == 3


@pytest.mark.parametrize("budget", [-1, 1.5, True])
def test_a_budget_is_a_number_of_comparisons(budget: Any) -> None:
    made = engine("ABC")
    made.add_query("q", SQL, plan=OLD)
    with pytest.raises(ms.StrategyError, match="number of comparisons a step"):
        made.migrate("q", NEW, "ghm", budget=budget)


def waiting(label: str, times: list[int]) -> Combinations:
    words = np.array(times, np.int64)
    return Combinations({label: np.arange(len(words))}, {EVENT_TIME: words}, {EVENT_TIME: words + 10})


def test_turns_go_by_time_and_each_queue_keeps_its_order() -> None:
    states = {}
    for label, times in (("A", [1, 5, 3]), ("B", [2, 4])):
        spec = StateSpec(Signature("", (label,), ()), (label,), (EVENT_TIME,), "scan")
        states[label] = JoinState(spec, [SortedRun(None, waiting(label, times))])
    queue = Queue(states)
    queue.extend({"A": waiting("A", [2, 6]), "B": waiting("B", [])})
    assert len(queue) == 7
    first = queue.take(4)
    assert {k: c.valid_from[EVENT_TIME].tolist() for k, c in first.items()} == {"A": [1, 5], "B": [2, 4]}
    second = queue.take(2)
    assert {k: c.valid_from[EVENT_TIME].tolist() for k, c in second.items()} == {"A": [3, 2], "B": []}
    assert len(queue) == 1
    left = {state.spec.labels[0]: state for state in queue.rest()}
    assert [len(run) for run in left["A"].old] == []
    assert left["A"].delta is not None
    assert left["A"].delta.combinations.valid_from[EVENT_TIME].tolist() == [6]
    assert left["B"].live == 0
    assert (left["A"].purged, left["B"].purged) == (3, 2)
