"""GMS feeds the old rows to the new plan at once, the topmost join included."""

from __future__ import annotations

from collections import Counter
from typing import Any

from midstream.model.events import MigrationBegun, MigrationEnded
from tests.unit.building import both, engine, table
from tests.unit.migration.flows import ended, worked

SQL = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 4 SECONDS"
OLD, NEW = "((A B) C)", "(A (B C))"
EACH = 3
"""Rows a step and stream, all of one key."""


def run(
    plan: str, strategy: str | None = None, at: int = 3, steps: int = 8, **options: Any
) -> tuple[Any, Counter[str]]:
    made = engine("ABC")
    made.add_query("q", SQL, plan=plan)
    found: Counter[str] = Counter()
    for step in range(steps):
        if strategy and step == at:
            made.migrate("q", NEW, strategy, **options)
        rows = table([2.0 * step] * EACH, k=[1] * EACH, j=range(EACH * step, EACH * step + EACH))
        found.update(map(str, made.push(both("ABC", rows))["q"].to_pylist()))
    return made, found


def test_the_topmost_join_runs_too_and_only_living_rows_are_fed() -> None:
    moved, _ = run(OLD, "moving_state")
    fed, _ = run(OLD, "gms")
    # At watermark 4 all three steps before still matter: rows of time 0 live up to 4.
    old = 3 * EACH
    assert ended(moved).comparisons == old**2
    assert ended(fed).comparisons == old**2 + old**3


def test_it_begins_and_ends_in_one_step() -> None:
    made, _ = run(OLD, "gms")
    (begun,) = [e for e in made.events if isinstance(e, MigrationBegun)]
    (done,) = [e for e in made.events if isinstance(e, MigrationEnded)]
    assert (begun.step, done.step) == (3, 3)
    assert not any("+/" in state for lane in made.manifest.lane_states.values() for state in lane.states)
    assert made.migration("q") is None


def test_afterwards_the_new_plan_works_as_if_it_had_always_run() -> None:
    always, expected = run(NEW)
    moved, found = run(OLD, "gms")
    assert found == expected
    assert expected
    extra = ended(moved).comparisons
    assert worked(moved)[4:] == worked(always)[4:]
    assert worked(moved)[3] == worked(always)[3] + extra
    assert states(moved) == states(always)


def states(made: Any) -> dict[str, int]:
    """How many rows each state has."""
    lanes = made.manifest.lane_states.values()
    return {name: listing.live for lane in lanes for name, listing in lane.states.items()}
