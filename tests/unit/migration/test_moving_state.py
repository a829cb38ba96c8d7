"""Moving state: what matches is listed, what is missing is computed at once, and it shows in the counters."""

from __future__ import annotations

from typing import Any

import pytest

from midstream.model.events import MigrationBegun, MigrationEnded, StateRebuilt, StepDone
from tests.unit.building import engine, table

CHAIN = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.j = C.j WINDOW 60 SECONDS"
CLASS = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 60 SECONDS"
FOUR = "SELECT A.k FROM A, B, C, D WHERE A.k = B.k AND B.k = C.k AND C.k = D.k WINDOW 60 SECONDS"

KEYS: dict[str, list[int | None]] = {"A": [1, 1, 2], "B": [1, 2, 2, 3], "C": [2, 2, 1, 3, None], "D": [2, 2, 9]}


def pairs(one: str, other: str) -> int:
    """How many pairs of two streams have equal keys."""
    return sum(a == b for a in KEYS[one] for b in KEYS[other] if a is not None)


def prepared(sql: str, plan: str, names: str = "ABC", **options: Any) -> Any:
    """An engine with all rows of `KEYS` in its state; k and j are alike."""
    made = engine(names, **options)
    made.add_query("q", sql, plan=plan)
    for name in names:
        made.push({name: table([1] * len(KEYS[name]), k=KEYS[name], j=KEYS[name])})
    return made


def steps(made: Any) -> list[int]:
    """The comparisons of each step."""
    return [event.comparisons for event in made.events if isinstance(event, StepDone)]


def chunks(made: Any) -> dict[str, tuple[str, ...]]:
    """The names of each state's chunks."""
    (lane,) = made.manifest.lane_states.values()
    return {state: tuple(ref.name for ref in listing.chunks) for state, listing in lane.states.items()}


@pytest.mark.parametrize(
    ("sql", "old", "new", "names", "cost"),
    [
        (CLASS, "((A B) C)", "(A (B C))", "ABC", pairs("B", "C")),
        (CLASS, "((A B) C)", "((A C) B)", "ABC", pairs("A", "C")),
        (CHAIN, "((A B) C)", "(A (B C))", "ABC", pairs("B", "C")),
        (CHAIN, "((A B) C)", "((A C) B)", "ABC", len(KEYS["A"]) * len(KEYS["C"])),
        (CLASS, "[A: B C | B: A C | C: A B]", "((A B) C)", "ABC", pairs("A", "B")),
        (CLASS, "((A B) C)", "[A: B C | B: A C | C: A B]", "ABC", 0),
        (CLASS, "((A B) C)", "(C (B A))", "ABC", 0),
        (FOUR, "(((A B) C) D)", "((A B) (C D))", "ABCD", pairs("C", "D")),
        (FOUR, "(((A B) C) D)", "((A (B C)) D)", "ABCD", pairs("B", "C")),
    ],
)
def test_the_rebuild_is_charged_to_its_step_exactly_and_nothing_after(
    sql: str, old: str, new: str, names: str, cost: int
) -> None:
    made = prepared(sql, old, names)
    made.migrate("q", new, "moving_state")
    made.push()
    made.push()
    made.push()
    assert steps(made)[-3:] == [cost, 0, 0]
    (ended,) = [event for event in made.events if isinstance(event, MigrationEnded)]
    assert (ended.comparisons, ended.step, ended.plan) == (cost, len(names), new)
    assert not [event for event in made.events if isinstance(event, StateRebuilt)], "that is for damage"


def test_the_whole_of_what_lies_below_is_computed() -> None:
    """(((A B) C) D) to (A (B (C D))): CD from bases, then BCD from B and CD."""
    made = prepared(FOUR, "(((A B) C) D)", "ABCD")
    made.migrate("q", "(A (B (C D)))", "moving_state")
    made.push()
    third = sum(b == c == d for b in KEYS["B"] for c in KEYS["C"] for d in KEYS["D"])
    assert steps(made)[-1] == pairs("C", "D") + third


def test_matching_states_are_shared_by_name() -> None:
    made = prepared(CLASS, "((A B) C)")
    before = chunks(made)
    made.migrate("q", "(A (B C))", "moving_state")
    made.push()
    after = chunks(made)
    matched = before.keys() & after.keys()
    assert sum(state.endswith(".rows") for state in matched) == 3
    assert len(matched) == 6, "base rows and their indexes"
    assert all(before[state] == after[state] for state in matched)
    (gone,), (fresh,) = before.keys() - matched, after.keys() - matched
    assert gone.startswith("A+B.")
    assert fresh.startswith("B+C.")
    assert all(name.split("/")[1].startswith("00000003-") for name in after[fresh])


def test_the_shared_subplan_of_figure_3_is_listed_as_it_was() -> None:
    made = prepared(FOUR, "(((A B) C) D)", "ABCD")
    before = chunks(made)
    made.migrate("q", "((A B) (C D))", "moving_state")
    made.push()
    after = chunks(made)
    (shared,) = [state for state in before if state.startswith("A+B.")]
    assert after[shared] == before[shared]
    assert not [state for state in after if state.startswith("A+B+C.")]
    (begun,) = [event for event in made.events if isinstance(event, MigrationBegun)]
    assert begun.tasks == (("((A+B C) D)", "(A+B (C D))"),)


def test_a_state_under_another_key_is_only_sorted_anew() -> None:
    """B is indexed by k in the old plan and by j in the new one: no comparison, for its rows are there."""
    made = prepared(CHAIN, "((A B) C)")
    before = {state for state in chunks(made) if state.startswith("B.")}
    made.migrate("q", "(A (B C))", "moving_state")
    made.push()
    after = {state for state in chunks(made) if state.startswith("B.")}
    assert len(before) == len(after) == 2
    assert len(before & after) == 1
    assert steps(made)[-1] == pairs("B", "C")


def test_rows_without_the_old_key_are_there_under_the_new_one() -> None:
    """A row of B whose k is NULL joins nothing by k, but the index by j of another query's plan must have it."""
    made = engine("ABC")
    made.add_query("p", "SELECT B.k FROM B, C WHERE B.j = C.j AND B.v < C.v WINDOW 60 SECONDS", plan="(B C)")
    made.add_query("q", CHAIN)
    made.push({"B": table([1], k=[None], j=[7], v=[0.0])})
    made.migrate("q", "(A (B C))", "moving_state")
    made.push()
    assert made.push({"C": table([1], j=[7], v=[1.0])})["p"].num_rows == 1


def test_a_trivial_migration_changes_no_state() -> None:
    made = prepared(CLASS, "((A B) C)")
    before = chunks(made)
    made.migrate("q", "(C (A B))", "moving_state")
    made.push()
    assert chunks(made) == before
    assert steps(made)[-1] == 0
    assert [event.tasks for event in made.events if isinstance(event, MigrationBegun)] == [()]


def test_there_and_back_again() -> None:
    made = prepared(CLASS, "((A B) C)")
    before = chunks(made)
    made.migrate("q", "(A (B C))", "moving_state")
    made.push()
    made.migrate("q", "((A B) C)", "moving_state")
    made.push()
    assert chunks(made).keys() == before.keys()
    assert steps(made)[-2:] == [pairs("B", "C"), pairs("A", "B")]
    assert made.explain("q", format="json")["plan"] == "((A B) C)"


def test_in_one_step_each_migration_is_done_and_charged() -> None:
    made = prepared(CLASS, "((A B) C)")
    made.migrate("q", "(A (B C))", "moving_state")
    made.migrate("q", "((A C) B)", "moving_state")
    made.push()
    assert steps(made)[-1] == pairs("B", "C") + pairs("A", "C")
    begun = [event for event in made.events if isinstance(event, MigrationBegun)]
    assert [(event.old, event.new) for event in begun] == [("((A B) C)", "(A (B C))"), ("(A (B C))", "((A C) B)")]
    ended = [event for event in made.events if isinstance(event, MigrationEnded)]
    costs = [("(A (B C))", pairs("B", "C")), ("((A C) B)", pairs("A", "C"))]
    assert [(event.plan, event.comparisons) for event in ended] == costs
    assert {state.split(".")[0] for state in chunks(made)} == {"A", "B", "C", "A+C"}


def test_dead_rows_are_not_moved() -> None:
    made = prepared(CLASS, "((A B) C)")
    made.push({name: table([100], k=[5], j=[5]) for name in "ABC"})
    made.migrate("q", "(A (B C))", "moving_state")
    made.push()
    assert steps(made)[-1] == 1, "the one living pair of B and C"


def test_every_lane_moves_its_own_state() -> None:
    made = prepared(CLASS, "((A B) C)", lanes=3)
    made.migrate("q", "(A (B C))", "moving_state")
    made.push()
    (ended,) = [event for event in made.events if isinstance(event, MigrationEnded)]
    assert ended.comparisons == steps(made)[-1] == pairs("B", "C")


def test_a_query_beside_it_is_left_alone() -> None:
    made = engine("ABC")
    made.add_query("p", CLASS, plan="((A B) C)")
    made.add_query("q", CLASS, plan="((A B) C)")
    for name in "ABC":
        made.push({name: table([1] * len(KEYS[name]), k=KEYS[name])})
    before = chunks(made)
    made.migrate("q", "(A (B C))", "moving_state")
    made.push()
    assert before.items() <= chunks(made).items()
    assert made.explain("p", format="json")["plan"] == "((A B) C)"
