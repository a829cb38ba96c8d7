"""Commands before a step: taken in order, or refused one by one with nothing changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midstream.commands.add_query import AddQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale, check_lanes
from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.errors import QueryError
from midstream.model.events import CommandRefused, Event, LanesRescaled, MigrationBegun, QueryAdded, QueryDropped
from midstream.model.manifest import Manifest
from midstream.step.plan_step import StepPlan, lanes_of, plan_step
from tests.unit.building import schemas

EQUI = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 5 SECONDS"
BARE = "SELECT A.k FROM A WHERE A.k > 1"
EMPTY = Manifest(streams=schemas(), step=4)


def running(**queries: str) -> Manifest:
    """A manifest of these queries, as after step 5."""
    return replace(plan_step(EMPTY, [AddQuery(name, sql) for name, sql in queries.items()]).manifest, pending=())


def names(events: tuple[Event, ...]) -> list[str]:
    return [type(event).__name__ for event in events]


def refusal(manifest: Manifest, command: Command) -> str:
    """The reason given; checks that nothing else happened."""
    plan = plan_step(manifest, [command])
    (event,) = plan.events
    assert isinstance(event, CommandRefused)
    assert event.command == encode(command)
    assert plan.migrations == {}
    assert plan.manifest == replace(manifest, step=manifest.step + 1, refused=plan.manifest.refused)
    begins = isinstance(command, AddQuery) and command.query not in manifest.queries
    assert {name: one.reason for name, one in plan.manifest.refused.items()} == (
        {command.query: event.reason} if begins else {}
    )
    return event.reason


def test_a_query_begins_with_the_step() -> None:
    plan = plan_step(EMPTY, [AddQuery("q", EQUI, sink={"format": "parquet"})])
    entry = plan.manifest.queries["q"]
    assert (entry.since, entry.plan, entry.sink) == (5, "((A B) C)", {"format": "parquet"})
    assert plan.events == (QueryAdded(5, "q", "((A B) C)"),)
    assert plan.manifest.step == 5


def test_commands_of_one_step_are_taken_in_order() -> None:
    commands = [
        AddQuery("q", EQUI),
        Migrate("q", "(A (B C))"),
        Migrate("q", "((A C) B)"),
        Rescale(3),
        AddQuery("p", BARE),
    ]
    plan = plan_step(EMPTY, commands)
    assert plan.manifest.queries["q"].plan == "((A C) B)"
    assert [m.plan for m in plan.migrations["q"]] == ["(A (B C))", "((A C) B)"]
    assert names(plan.events) == ["QueryAdded", "MigrationBegun", "MigrationBegun", "LanesRescaled", "QueryAdded"]
    begun = [event for event in plan.events if isinstance(event, MigrationBegun)]
    assert [(e.old, e.new) for e in begun] == [("((A B) C)", "(A (B C))"), ("(A (B C))", "((A C) B)")]
    assert (plan.lanes_before, plan.manifest.lanes) == (1, 3)


def test_a_query_added_migrated_and_dropped_in_one_step_leaves_nothing() -> None:
    plan = plan_step(EMPTY, [AddQuery("q", EQUI), Migrate("q", "(A (B C))"), DropQuery("q")])
    assert plan.manifest.queries == {}
    assert plan.migrations == {}
    assert plan.groups() == ()
    assert names(plan.events) == ["QueryAdded", "QueryDropped"]


def test_a_name_is_free_again_once_its_query_is_dropped() -> None:
    plan = plan_step(running(q=EQUI), [DropQuery("q"), AddQuery("q", BARE), Migrate("q", "[A: ]")])
    assert plan.manifest.queries["q"].sql == BARE
    assert plan.manifest.queries["q"].since == 6
    assert names(plan.events) == ["QueryDropped", "QueryAdded", "MigrationBegun"]
    begun = plan.events[2]
    assert isinstance(begun, MigrationBegun)
    assert (begun.old, begun.new, begun.tasks) == ("A", "[A: ]", (("A", "[A: ]"),))


def test_a_refused_command_does_not_stop_the_others() -> None:
    plan = plan_step(running(q=EQUI), [DropQuery("nobody"), Rescale(2)])
    assert names(plan.events) == ["CommandRefused", "LanesRescaled"]
    assert plan.manifest.lanes == 2


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (AddQuery("q", BARE), "there is already a query 'q' (at q). Remedy: drop that query, or use another name"),
        (AddQuery("p", "SELECT A.x FROM A"), "unknown column 'A.x' (at line 1, column 8)"),
        (AddQuery("p", EQUI, plan="(A B)"), "the plan lacks C"),
        (DropQuery("p"), "there is no query 'p' (at p). Remedy: use one of: q"),
        (Migrate("p", "A"), "there is no query 'p'"),
        (Migrate("q", "((A B) Z)"), "'Z'"),
        (Migrate("q", "(A (B C))", "teleport"), "unknown strategy 'teleport' (at migrate). Remedy: use one of: "),
        (Migrate("q", "(A (B C))", "moving_state", {"speed": 9}), "moving_state has no option 'speed' (at query q)"),
        (
            Migrate("q", "(A (B C))", "pause_drain_resume"),
            "pause_drain_resume cannot migrate query 'q': the box is stateful",
        ),
        (Rescale(0), "the number of lanes cannot be 0 (at lanes). Remedy: use 1 to 4096"),
        (Rescale(4097), "the number of lanes cannot be 4097"),
    ],
)
def test_refusals_name_the_place_and_the_remedy(command: Command, reason: str) -> None:
    found = refusal(running(q=EQUI), command)
    assert reason in found
    assert "(at " in found
    assert "Remedy: " in found


def test_a_stateless_query_may_be_drained() -> None:
    plan = plan_step(running(q=BARE), [Migrate("q", "[A: ]", "pause_drain_resume")])
    assert names(plan.events) == ["MigrationBegun"]
    assert [m.strategy for m in plan.migrations["q"]] == ["pause_drain_resume"]


def test_the_last_command_is_remembered() -> None:
    assert plan_step(replace(EMPTY, last_command=9), []).manifest.last_command == 9


def test_a_plan_is_a_value_of_its_manifest() -> None:
    commands: list[Command] = [AddQuery("q", EQUI), Rescale(2)]
    assert plan_step(EMPTY, commands) == plan_step(EMPTY, commands)
    assert EMPTY.queries == {}


def test_lanes_of_groups() -> None:
    plan: StepPlan = plan_step(running(q=EQUI, p=BARE), [Rescale(4)])
    key, single = plan.groups()
    assert (single, plan.lanes(single)) == ("single", 1)
    assert plan.lanes(key) == lanes_of(key, 4) == 4
    assert [unit.name for unit in plan.program(key).units] == ["q"]
    assert [unit.name for unit in plan.program(single).units] == ["p"]


def test_only_queries_that_ask_about_instants_need_the_watermarks() -> None:
    assert not plan_step(running(q=EQUI, p=BARE), []).needs_watermarks
    asks = "SELECT COUNT(*) AS n FROM A [RANGE 5 SECONDS] EVERY 1 SECOND"
    assert plan_step(running(q=EQUI, p=asks), []).needs_watermarks
    assert plan_step(
        running(q="SELECT A.k FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [RANGE 5 SECONDS]"), []
    ).needs_watermarks


@pytest.mark.parametrize("lanes", [0, -1, 4097, 2.5, "3", None])
def test_a_number_of_lanes_that_cannot_be(lanes: object) -> None:
    with pytest.raises(QueryError, match="the number of lanes cannot be"):
        check_lanes(lanes)  # type: ignore[arg-type]


def test_no_event_for_no_change() -> None:
    assert plan_step(EMPTY, [Rescale(1)]).events == ()
    assert plan_step(EMPTY, [Rescale(2)]).events == (LanesRescaled(5, 1, 2),)
    assert plan_step(running(q=BARE), [DropQuery("q")]).events == (QueryDropped(6, "q"),)
