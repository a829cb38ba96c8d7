"""HybMig: the characteristics table, the old plan's shrinking share, the background."""

from __future__ import annotations

from itertools import pairwise

import pytest

import midstream as ms
from midstream.migration.hybrid.characteristics import CharacteristicsTable
from midstream.migration.under_way.migration_task import BegunTask
from midstream.model.events import MigrationEnded, MigrationProgressed
from midstream.plan.decompose import decompose
from midstream.units.program import unit_of
from tests.unit.building import both, engine, table
from tests.unit.migration.rides import Ride


@pytest.mark.parametrize(
    ("new", "entries", "disconnected"),
    [
        ("(A (B (C D)))", ["CD"], "CD"),  # right-deep: two inputs leave the old plan (Fig. 7)
        ("((A C) (B D))", ["AC", "BD"], ""),  # bushy: an entry for each lowest join (Fig. 9, Table 2)
    ],
)
def test_the_table_has_an_entry_for_each_lowest_join(new: str, entries: list[str], disconnected: str) -> None:
    boxes = unit_of(Ride("(((A B) C) D)").go(1).engine.manifest, "q")
    (task,) = decompose(boxes.box("(((A B) C) D)").plan, boxes.box(new).plan)
    started = BegunTask(task.sources, task.units, dict.fromkeys("ABCD", 4))
    table = CharacteristicsTable.of(boxes.box(new).roots[0], started)
    assert ["".join(sorted(entry.join)) for entry in table.entries] == entries
    assert "".join(sorted(table.disconnected())) == disconnected


@pytest.mark.parametrize(("strategy", "of_new"), [("hybmig", 12), ("parallel_track", 1)])
def test_of_the_15_cases_the_new_plan_makes_those_that_the_paper_says(strategy: str, of_new: int) -> None:
    """HybMig Table 1 and §3.1: an old row and a new one in each stream, so that every case is one result."""
    made = engine("ABCD")
    where = "A.k = B.k AND B.k = C.k AND C.k = D.k"
    made.add_query("q", f"SELECT A.j AS a FROM A, B, C, D WHERE {where} WINDOW 20 SECONDS", "(((A B) C) D)")
    made.push(both("ABCD", table([1], k=[1], j=[0])))
    made.migrate("q", "(A (B (C D)))", strategy)
    before = made.manifest.operators
    assert made.push(both("ABCD", table([2], k=[1], j=[1])))["q"].num_rows == 15
    results = {"new": 0, "old": 0}
    for key, counted in made.manifest.operators.items():
        lower, _, upper = key.operator.name.partition(" ")
        if key.operator.kind == "join" and sum(state.split(".")[0].count("+") for state in (lower, upper)) == 2:
            made_before = before[key].rows_out if key in before else 0
            results["new" if lower.startswith("A.") else "old"] += counted.rows_out - made_before
    assert results == {"new": of_new, "old": 15 - of_new}


def test_the_old_plans_share_falls() -> None:
    """HybMig §3.2: the old plan has less to do with every step, for new rows of two inputs no longer reach it."""
    ride = Ride("(((A B) C) D)").go(20, {9: ("(A (B (C D)))", "hybmig", {})})
    cost = [0, *(e.detail["comparisons"] for e in ride.events(MigrationProgressed))]
    share = [after - before for before, after in pairwise(cost)]
    assert share[0] > 2 * share[-1]
    assert sum(share[: len(share) // 2]) > 2 * sum(share[len(share) // 2 :])


@pytest.mark.parametrize("new", ["(A (B (C D)))", "((A C) (B D))", "((A (C E)) (B D))", "(A (B (C (D E))))"])
@pytest.mark.parametrize("budget", [1, 40, 100_000])
def test_the_background_ends_the_migration_sooner(new: str, budget: int) -> None:
    streams = "".join(sorted(c for c in new if c.isalpha()))
    old = "((((A B) C) D) E)" if "E" in streams else "(((A B) C) D)"
    still = Ride(old, streams=streams, keys=12, levels=True).go(24)
    ride = Ride(old, streams=streams, keys=12, levels=True).go(24, {9: (new, "hybmig", {"background": budget})})
    assert ride.found == still.found
    alone = Ride(old, streams=streams, keys=12, levels=True).go(24, {9: (new, "hybmig", {})})
    (with_budget,), (without,) = ride.events(MigrationEnded), alone.events(MigrationEnded)
    assert with_budget.step <= without.step
    if budget == 100_000:
        assert with_budget.step == 9, "there is time for everything in the first step"


def test_a_finished_entry_goes_up_until_it_reaches_the_root() -> None:
    ride = Ride("(((A B) C) D)", keys=6).go(9)
    ride.engine.migrate("q", "(A (B (C D)))", "hybmig", background=60)
    joins = []
    for _ in range(9):
        ride.go(1)
        (lane,) = ride.engine.manifest.lane_states.values()
        for placed in lane.boxes["q"].get("placed", ()):
            joins += ["".join(entry["join"]) for entry in placed["task"]["memory"]["table"]]
    assert list(dict.fromkeys(joins)) == ["CD", "BCD"]


@pytest.mark.parametrize("options", [{"background": -1}, {"background": 1.5}, {"background": True}, {"budget": 5}])
def test_a_wrong_option_is_refused(options: dict[str, object]) -> None:
    ride = Ride("(((A B) C) D)").go(2)
    with pytest.raises(ms.StrategyError, match=r"hybmig"):
        ride.engine.migrate("q", "(A (B (C D)))", "hybmig", **options)
    assert ride.go(2).found == Ride("(((A B) C) D)").go(4).found
