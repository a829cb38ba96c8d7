"""Each command by itself: what it refuses, what it changes in a draft, what it tells, and by what it is known done."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from midstream.commands.add_query import AddQuery
from midstream.commands.add_stream import AddStream
from midstream.commands.answer_proposal import Approve, Reject
from midstream.commands.base import StepCommand, apply, taken
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.drop_stream import DropStream
from midstream.commands.drop_table import DropTable
from midstream.commands.migrate import Migrate
from midstream.commands.optimize import Optimize
from midstream.commands.pin import Pin, Unpin
from midstream.commands.rescale import Rescale
from midstream.commands.reshare import Reshare
from midstream.commands.set_table import SetTable
from midstream.commands.spread import Spread
from midstream.commands.stop import Stop
from midstream.model.command import Command
from midstream.model.errors import LanguageError, MidstreamError, PlanError, QueryError, StrategyError
from midstream.model.events import (
    Event,
    LanesProposalClosed,
    LanesRescaled,
    MigrationBegun,
    MigrationEnded,
    OptimizerSet,
    PlanPinned,
    ProposalClosed,
    QueryAdded,
    QueryChanged,
    QueryDropped,
    QuerySpread,
    SharingChanged,
    StopRequested,
    StreamAdded,
    StreamDropped,
    TableDropped,
    TableSet,
)
from midstream.model.manifest import ChunkRef, Manifest
from midstream.model.optimization import OptimizerSettings
from midstream.model.schema import StreamSchema
from midstream.units.draft import Draft, MigrationStart
from tests.unit.building import schemas

THREE = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 5 SECONDS"
WIDER = THREE.replace("5 SECONDS", "9 SECONDS")
ONE = "SELECT A.k FROM A WHERE A.k > 1"
COUNT = "SELECT COUNT(*) AS n FROM A [RANGE 5 SECONDS] EVERY 1 SECOND"
RATES, CHUNK = pa.schema([("k", pa.int64())]), ChunkRef("tables/rates/0-1", 1, 8, 0)
NARROW = pa.schema([("ts", pa.timestamp("us"))])
NOWHERE = "nowhere:No"


def drafted(*commands: StepCommand, sharing: str = "auto") -> Draft:
    """A draft of step 5 that has taken these commands."""
    draft = Draft(Manifest(streams=schemas(), step=5, sharing=sharing))
    for command in commands:
        apply(command, draft)
    return draft


REFUSALS: list[tuple[StepCommand, type[MidstreamError], str, str]] = [
    (AddQuery("q", ONE), QueryError, "q", "drop that query, or use another name"),
    (AddQuery("p", "SELECT A.x FROM A"), LanguageError, "line 1, column 8", "use one of"),
    (AddQuery("p", THREE, plan="(A B)"), PlanError, "plan", ""),
    (AddQuery("p", THREE, operator=NOWHERE), QueryError, "operator nowhere:No()", "midstream.allow_operators"),
    (AddQuery("p", COUNT, operator=NOWHERE), QueryError, "add_query", "plain query"),
    (ChangeQuery("p", ONE), QueryError, "p", "use one of: q"),
    (ChangeQuery("q", ONE), QueryError, "q", ""),
    (DropQuery("p"), QueryError, "p", "use one of: q"),
    (Migrate("p", "A"), QueryError, "p", "use one of: q"),
    (Migrate("q", "(A (B C))", "teleport"), StrategyError, "migrate", "use one of: "),
    (Migrate("q", "(A (B C))", options={"speed": 9}), StrategyError, "query q", "options: "),
    (Migrate("q", "(A (B C))", "ghm", {"budget": -1}), StrategyError, "query q", "correct the option"),
    (Migrate("q", "(A (B C))", "pause_drain_resume"), StrategyError, "query q", "use a strategy that can: "),
    (Migrate("q", ""), StrategyError, "query q", "name another plan"),
    (Migrate("q", "(A (B C))", "auto", {"speed": 9}), StrategyError, "query q", "options: objective"),
    (Migrate("q", "", "auto", operator="a:B"), StrategyError, "query q", "name a strategy"),
    (Migrate("q", "", "gms", operator="a:B"), StrategyError, "query q", "add a query"),
    (AddStream(StreamSchema("A", NARROW, "ts")), QueryError, "stream A", "give the stream another name"),
    (DropStream("A"), QueryError, "stream A", "drop it first"),
    (DropTable("Z"), QueryError, "table Z", "the job has no table"),
    (SetTable("A", RATES, CHUNK, "1"), QueryError, "table A", "give the table another name"),
    (Rescale(0), QueryError, "lanes", "use 1 to 4096"),
    (Rescale(4097), QueryError, "lanes", "use 1 to 4096"),
    (Stop(3), QueryError, "stop", "use epoch 0, which is the epoch of the present run"),
    (Reshare("sideways"), QueryError, "reshare", "use one of: auto"),
    (Optimize("p"), QueryError, "p", "use one of: q"),
    (Optimize("q", OptimizerSettings("clever")), QueryError, "query q", "use one of: adaptive"),
    (Optimize("", OptimizerSettings(allow=("((A B) C)",))), QueryError, "optimize", "also name its query"),
    (Approve("q"), QueryError, "query q", "wait for the next review"),
    (Reject("q"), QueryError, "query q", "wait for the next review"),
    (Approve(lanes=2), QueryError, "lanes", "wait for the next review"),
    (Reject(lanes=2), QueryError, "lanes", "wait for the next review"),
    (Pin("q", "(A B)"), PlanError, "plan", ""),
    (Unpin("p"), QueryError, "p", "use one of: q"),
    (Spread("p", "psp"), QueryError, "p", "use one of: q"),
    (Spread("q", "sideways"), PlanError, "query q", "use one of: auto, atr"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "error", "place", "remedy"), REFUSALS, ids=lambda value: str(value)[:60])
def test_a_refusal_names_the_place_and_the_remedy(
    command: StepCommand, error: type[MidstreamError], place: str, remedy: str
) -> None:
    with pytest.raises(error) as caught:
        apply(command, drafted(AddQuery("q", THREE)))
    assert place in caught.value.place
    assert remedy in caught.value.remedy and caught.value.remedy


def test_every_command_is_refused_in_some_case() -> None:
    assert {type(command) for command, *_ in REFUSALS} == set(Command.kinds.values())


DONE: list[tuple[StepCommand, Event]] = [
    (AddQuery("q", THREE), QueryAdded(6, "q", "((A B) C)")),
    (ChangeQuery("q", WIDER), QueryChanged(6, "q", WIDER)),
    (DropQuery("q"), QueryDropped(6, "q")),
    (Migrate("q", "(A (B C))"), MigrationEnded(6, "q", "gms", "(A (B C))", 0, {})),
    (Rescale(3), LanesRescaled(6, 1, 3)),
    (Stop(0), StopRequested(6)),
    (AddStream(StreamSchema("Z", NARROW, "ts")), StreamAdded(6, "Z")),
    (DropStream("Z"), StreamDropped(6, "Z")),
    (SetTable("rates", RATES, CHUNK, "1"), TableSet(6, "rates", 1, 1)),
    (DropTable("rates"), TableDropped(6, "rates")),
    (Reshare("off"), SharingChanged(6, "auto", "off")),
    (Optimize("q", OptimizerSettings(mode="off")), OptimizerSet(6, "q", "off", "adaptive")),
    (Approve("q"), ProposalClosed(6, "q", "(A (B C))", "approved")),
    (Reject("q"), ProposalClosed(6, "q", "(A (B C))", "rejected")),
    (Approve(lanes=3), LanesProposalClosed(6, 3, "approved")),
    (Reject(lanes=3), LanesProposalClosed(6, 3, "rejected")),
    (Pin("q"), PlanPinned(6, "q", "((A B) C)")),
    (Unpin("q"), PlanPinned(6, "q", "((A B) C)", pinned=False)),
    (Spread("q", "psp", 3), QuerySpread(6, "q", "off", "psp", 3)),
]


@pytest.mark.parametrize(("command", "event"), DONE, ids=[command.kind for command, _ in DONE])
def test_a_command_is_done_by_its_own_event_only(command: StepCommand, event: Event) -> None:
    assert {type(one) for one, _ in DONE} == set(Command.kinds.values())
    assert command.is_done_by(event)
    assert not any(command.is_done_by(other) for _, other in DONE if other != event)
    if isinstance(event, StopRequested):
        return  # It says of nothing else what was asked.
    if isinstance(event, StreamAdded | StreamDropped | TableSet | TableDropped):
        named = {"table": "other"} if isinstance(event, TableSet | TableDropped) else {"stream": "other"}
        assert not command.is_done_by(replace(event, **named))
        return
    field = {"query": "other"} if hasattr(event, "query") else {"lanes": 7} if hasattr(event, "lanes") else {"new": 7}
    assert not command.is_done_by(replace(event, **field))


def test_add_query() -> None:
    draft = drafted(AddQuery("q", THREE, sink={"path": "out"}))
    entry = draft.manifest.queries["q"]
    assert (entry.plan, entry.since, entry.sink, entry.shares) == ("((A B) C)", 5, {"path": "out"}, True)
    assert draft.events == [QueryAdded(5, "q", "((A B) C)")]
    assert draft.changed and not draft.reworded


def test_add_query_without_sharing() -> None:
    assert not drafted(AddQuery("q", THREE), sharing="off").manifest.queries["q"].shares


def test_change_query() -> None:
    draft = drafted(AddQuery("q", THREE), ChangeQuery("q", WIDER))
    event = draft.events[-1]
    assert isinstance(event, QueryChanged) and (event.query, event.sql) == ("q", WIDER)
    assert draft.manifest.queries["q"].sql == WIDER
    assert draft.reworded, "what the base rows are kept for is settled after all commands"


@pytest.mark.parametrize("sql", [ONE, COUNT])
def test_other_words_of_equal_meaning_change_the_text_alone(sql: str) -> None:
    before = drafted(AddQuery("q", sql), sharing="off").manifest
    words = "  " + sql.lower().replace("a.k", "A.k").replace("from a", "from A")
    draft = Draft(before)
    apply(ChangeQuery("q", words), draft)
    event, entry = draft.events[-1], draft.manifest.queries["q"]
    assert isinstance(event, QueryChanged) and (event.sees, event.from_step) == (entry.sees, entry.from_step)
    assert entry.sql == words and not draft.changed
    assert entry == replace(before.queries["q"], query=entry.query)


def test_drop_query_takes_its_migrations_along() -> None:
    draft = drafted(AddQuery("q", THREE), Migrate("q", "(A (B C))"), DropQuery("q"))
    assert (draft.manifest.queries, draft.migrations) == ({}, {})
    assert [type(event) for event in draft.events] == [QueryAdded, QueryDropped]


def test_drop_query_leaves_the_migrations_of_what_is_shared_to_an_heir() -> None:
    together = Migrate("p", "(A (B C))", together=True)
    draft = drafted(AddQuery("p", THREE), AddQuery("q", THREE), together, DropQuery("p"))
    successor = draft.manifest.queries["q"]
    assert successor.plan == "(A (B C))"
    assert [start.plan for start in draft.migrations[successor.chain]] == ["(A (B C))"]


def test_migrate() -> None:
    draft = drafted(AddQuery("q", THREE), Migrate("q", "(A (B C))", "hybmig", {"decompose": False}))
    assert draft.manifest.queries["q"].plan == "(A (B C))"
    assert draft.migrations == {"q": (MigrationStart("q", "(A (B C))", "hybmig", {"decompose": False}),)}
    begun = draft.events[-1]
    assert isinstance(begun, MigrationBegun) and (begun.old, begun.new) == ("((A B) C)", "(A (B C))")
    assert "predicted" in begun.detail


def test_migrate_is_logged_with_the_plan_as_manifests_write_it() -> None:
    manifest, command = drafted(AddQuery("q", THREE)).manifest, Migrate("q", "( A (B  C) )")
    assert command.logged(taken(manifest, command)) == Migrate("q", "(A (B C))")


def test_a_migration_leaves_those_that_share_the_plan_behind() -> None:
    draft = drafted(AddQuery("p", THREE), AddQuery("q", THREE), Migrate("q", "(A (B C))"))
    assert [draft.manifest.queries[name].plan for name in "pq"] == ["((A B) C)", "(A (B C))"]


@pytest.mark.parametrize("command", [Rescale(1), Reshare("auto")])
def test_what_is_so_already_changes_nothing(command: StepCommand) -> None:
    draft = drafted(command)
    assert (draft.events, draft.changed) == ([], False)
    assert command.is_met(draft.manifest)


@pytest.mark.parametrize(
    ("command", "event"), [(Rescale(3), LanesRescaled(5, 1, 3)), (Reshare("off"), SharingChanged(5, "auto", "off"))]
)
def test_the_job_as_a_whole(command: StepCommand, event: Event) -> None:
    draft = drafted()
    assert not command.is_met(draft.manifest)
    apply(command, draft)
    assert draft.events == [event]
    assert command.is_met(draft.manifest)


def test_taken_leaves_the_manifest_as_it_was() -> None:
    before = drafted(AddQuery("q", THREE)).manifest
    assert taken(before, DropQuery("q")).queries == {}
    assert "q" in before.queries


def test_a_copy_of_a_draft_changes_alone() -> None:
    draft = drafted(AddQuery("q", THREE))
    copy = draft.copy()
    apply(Migrate("q", "(A (B C))"), copy)
    apply(Rescale(2), copy)
    assert (draft.migrations, len(draft.events), draft.manifest.lanes) == ({}, 1, 1)


def test_a_command_that_no_step_takes() -> None:
    class Strange(Command, family=True):
        """Of no kind."""

    with pytest.raises(TypeError, match="not a command for a step"):
        apply(Strange(), drafted())
