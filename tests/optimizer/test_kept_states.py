"""States that other queries keep are free: of plans that cost alike, the one that reuses them is taken."""

from __future__ import annotations

import pytest

import midstream as ms
from midstream.model.events import PlanReviewed
from midstream.review.review import kept_by_others
from tests.optimizer.drifting import COLUMNS, rows

LIKE = {"A": 20, "B": 20, "C": 20, "D": 20}
EQUAL = "A.k = B.k AND B.k = C.k"


def two_chains(plan: str, other: str = "((B C) D)", window: int = 10) -> ms.Engine:
    """One query joins A, B and C; the other one B, C and D, by a plan that is pinned."""
    made = ms.Engine()
    for name in LIKE:
        made.create_stream(name, COLUMNS, timestamp="ts")
    made.add_query("q", f"SELECT A.k FROM A, B, C WHERE {EQUAL} WINDOW 10 SECONDS", plan)
    made.add_query(
        "other", f"SELECT B.k FROM B, C, D WHERE B.k = C.k AND C.k = D.k WINDOW {window} SECONDS", other
    )  # fmt: skip
    made.pin("other")
    made.optimize("q", review="2 seconds", effort=1.0, mode="auto")
    return made


def run(made: ms.Engine, steps: int = 24) -> list[PlanReviewed]:
    for step in range(steps):
        made.push(rows(step, LIKE, rate=25))
    return [event for event in made.events if isinstance(event, PlanReviewed)]


def test_a_query_moves_to_the_plan_that_uses_what_another_keeps() -> None:
    made = two_chains("((A B) C)")
    reviewed = run(made, 40)
    assert {frozenset("BC"), frozenset("B"), frozenset("C")} == kept_by_others(made.manifest, "q").keys()
    assert made.manifest.queries["q"].plan == "(A (B C))" and reviewed[-1].decision == "stay"
    assert made.manifest.queries["other"].plan == "((B C) D)"


def test_by_itself_it_stays_for_all_plans_cost_alike() -> None:
    made = two_chains("((A B) C)")
    made.drop_query("other")
    run(made)
    assert made.manifest.queries["q"].plan == "((A B) C)"


@pytest.mark.parametrize(("other", "window"), [("((B D) C)", 10), ("((B C) D)", 5)])
def test_what_is_another_content_is_not_free(other: str, window: int) -> None:
    """Another join, or the same one over another window."""
    made = two_chains("((A B) C)", other, window)
    run(made)
    assert all(len(sources) == 1 for sources in kept_by_others(made.manifest, "q"))
    assert made.manifest.queries["q"].plan == "((A B) C)"


def test_a_state_made_in_another_way_is_not_free() -> None:
    """The join of B, C and D is kept as ((B C) D); a plan that makes it as (B (C D)) would make it once more."""
    made = ms.Engine()
    for name in LIKE:
        made.create_stream(name, COLUMNS, timestamp="ts")
    made.create_stream("E", COLUMNS, timestamp="ts")
    equal = "B.k = C.k AND C.k = D.k"
    made.add_query("q", f"SELECT A.k FROM A, B, C, D WHERE A.k = B.k AND {equal} WINDOW 5 SECONDS", "(A (B (C D)))")
    made.add_query("other", f"SELECT B.k FROM B, C, D, E WHERE {equal} AND D.k = E.k WINDOW 5 SECONDS", "(((B C) D) E)")
    made.pin("other")
    for step in range(3):
        made.push(rows(step, {**LIKE, "E": 20}, rate=20))
    assert kept_by_others(made.manifest, "q")[frozenset("BCD")].notation() == "((B C) D)"
    shown = made.plans("q").plans
    free = {one["plan"]: one["cost"] for one in shown}
    assert free["(A (B (C D)))"] > min(cost for plan, cost in free.items() if "((B C) D)" in plan)
