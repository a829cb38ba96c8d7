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
from tests.unit.migration.rides import Ride

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
    assert all(1100 <= e <= 1500 for e in extra)
    (done,) = events(made, MigrationEnded)
    assert done.detail["steps"] == len(going) + 1 < 10


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


def standard(move: bool, budget: int = 0, steps: int = 62) -> tuple[list[Any], list[int], list[Counter[Any]]]:
    """Four streams of 8 rows a second, 40 keys, W = 20 s, to the right-deep plan at step 30."""
    ride = Ride("(((A B) C) D)", seconds=20, keys=40, rows=8, seed=3)
    ride.go(steps, {30: ("(A (B (C D)))", "ghm", {"budget": budget})} if move else None)
    return ride.engine.events, worked(ride.engine), ride.found


@pytest.mark.parametrize(("budget", "ends"), [(300, False), (6000, True)])
def test_the_queue_is_eaten_by_the_budget_however_long_it_takes(budget: int, ends: bool) -> None:
    """HybMig §4.3: the migration terminates when the queues are empty, and not before.

    With 300 comparisons a step, where the new plan needs 2,500, the queue never becomes empty, as §4.4 says.
    """
    _, usual, expected = standard(False)
    happened, done, found = standard(True, budget)
    assert found == expected  # In every step: the output never stops.
    end = [event.step for event in happened if isinstance(event, MigrationEnded)]
    assert bool(end) == ends
    until = end[0] if ends else 62
    extra = [a - b for a, b in zip(done[30:until], usual[30:until], strict=True)]
    assert max(extra) <= 1.05 * budget
    # What a step spent above the budget, the next ones have spent less.
    assert sum(extra) <= budget * len(extra)
    assert sum(extra) > 0.75 * budget * len(extra)
    going = [event for event in happened if isinstance(event, MigrationProgressed)]
    assert going[0].detail["predicted_end"] is None
    assert "the budget is little or nothing more than they need" not in going[0].phase
    if not ends:
        assert "the budget is little or nothing more than they need" in going[-1].phase
        waiting = [int(event.phase.split()[0]) for event in going]
        # Old rows die in the queue while new ones come: it never holds more than a window.
        assert max(waiting) <= 4 * 8 * 21 + 32


def test_another_migration_may_take_over_from_one_that_falls_behind() -> None:
    made = engine("ABC")
    made.add_query("q", SQL, plan=OLD)
    found: Counter[str] = Counter()
    for step in range(26):
        if step == BEGUN:
            made.migrate("q", NEW, "ghm", budget=1)
        if step == 22:
            made.migrate("q", OLD, "moving_state")
        found.update(map(str, made.push(flow(RATES, KEYS, step, step + 1))["q"].to_pylist()))
    assert found == EXPECTED
    assert [event.strategy for event in events(made, MigrationEnded)] == ["ghm", "moving_state"]


def test_it_may_be_saved_and_loaded_under_way(tmp_path: Path) -> None:
    made, found = run({BEGUN: NEW}, budget=1500, saved=tmp_path / "engine")
    assert found == EXPECTED
    assert events(made, MigrationEnded)


@pytest.mark.parametrize("decompose", [True, False])
@pytest.mark.parametrize(("budget", "ended"), [(90, 0), (2000, 3)])
def test_one_may_begin_while_another_is_under_way(budget: int, ended: int, decompose: bool) -> None:
    moves = {BEGUN: NEW, BEGUN + 2: "((A C) B)", BEGUN + 3: OLD}
    made, found = run(moves, budget=budget, decompose=decompose)
    assert found == EXPECTED
    assert len(events(made, MigrationEnded)) == ended


@pytest.mark.parametrize("budget", [-1, 0, 1.5, True])
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
