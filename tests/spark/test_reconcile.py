"""What a job script changes of a checkpoint, and what it leaves as commands left it; without a session."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from midstream.commands.add_query import AddQuery
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.reshare import Reshare
from midstream.model.command import Command
from midstream.model.errors import QueryError
from midstream.model.manifest import Manifest, Published
from midstream.model.schema import StreamSchema
from midstream.pipeline import reconcile
from midstream.pipeline.reconcile import Declared, differences
from midstream.sql.parse import bind_query
from midstream.step.plan_step import plan_step

SQL = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"
WIDER = SQL.replace("20", "40")
COLUMNS = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])


def declared(sharing: str = "auto", plan: str | None = None, **queries: str) -> Declared:
    return Declared(None, {name: AddQuery(name, sql, plan) for name, sql in queries.items()}, sharing)


def running(last: Declared, *commands: Command, sharing: str = "auto") -> Manifest:
    """The job that a script has started, after commands."""
    manifest = Manifest(sharing=sharing, streams={name: StreamSchema(name, COLUMNS, "ts") for name in "AB"})
    manifest = plan_step(manifest, [*last.queries.values(), *commands]).manifest
    return replace(manifest, published=Published(declared=last.kept))


def with_sql(manifest: Manifest, name: str, sql: str) -> Manifest:
    return manifest.with_query(name, replace(manifest.queries[name], query=bind_query(manifest, sql)))


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """Every change that is asked about is possible; the commands asked about."""
    asked: list[Command] = []

    def granted(manifest: Manifest, command: Command, *_: object) -> Manifest:
        asked.append(command)
        return manifest

    monkeypatch.setattr(reconcile, "taken", granted)
    return asked


def test_the_same_script_changes_nothing() -> None:
    assert differences(running(declared(q=SQL)), declared(q=SQL)) == ()


def test_a_script_with_another_mode_of_sharing() -> None:
    assert differences(running(declared("auto")), declared("mem_opt")) == (Reshare("mem_opt"),)
    assert differences(running(declared("auto"), sharing="mem_opt"), declared("mem_opt")) == ()


def test_a_mode_that_a_command_chose_stays() -> None:
    assert differences(running(declared("auto"), sharing="cpu_opt"), declared("auto")) == ()


@pytest.mark.parametrize(("mode", "commands"), [("off", ()), ("auto", (Reshare("auto"),))])
def test_a_checkpoint_of_before_names_its_mode_itself(mode: str, commands: tuple[Command, ...]) -> None:
    old = replace(running(declared(), sharing="off"), published=Published())
    assert differences(old, declared(mode)) == commands


def test_a_first_start_has_the_mode_already() -> None:
    first = replace(running(declared(), sharing="pull_up"), published=Published())
    assert differences(first, declared("pull_up")) == ()


def test_another_window_in_the_script_is_a_change(changes: list[Command]) -> None:
    assert differences(running(declared(q=SQL)), declared(q=WIDER)) == (ChangeQuery("q", WIDER),)
    moved = declared(q=WIDER, plan="(B A)")
    assert differences(running(declared(q=SQL)), moved) == (
        ChangeQuery("q", WIDER),
        Migrate("q", "(B A)", "auto"),
    )
    assert changes == [ChangeQuery("q", WIDER)] * 2


def test_what_cannot_be_changed_is_dropped_and_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> Manifest:
        raise QueryError("no member of a chain")

    monkeypatch.setattr(reconcile, "taken", refused)
    new = declared(q=WIDER)
    assert differences(running(declared(q=SQL)), new) == (DropQuery("q"), new.queries["q"])


def test_a_query_by_itself_is_not_dropped_for_other_words_of_its_text() -> None:
    count, job = "SELECT COUNT(*) AS n FROM A [RANGE 5 SECONDS] EVERY 1 SECOND", declared
    before = running(job("off", q=count), sharing="off")
    words = count.replace(" FROM", "\nFROM")
    assert differences(before, job("off", q=words)) == (ChangeQuery("q", words),)
    other = job("off", q=count.replace("5", "6"))
    assert differences(before, other) == (DropQuery("q"), other.queries["q"])


def test_a_text_that_a_command_changed_stays(changes: list[Command]) -> None:
    assert differences(with_sql(running(declared(q=SQL)), "q", WIDER), declared(q=SQL)) == ()
    assert changes == []


def test_a_text_that_a_command_changed_gives_way_to_the_scripts_new_one(changes: list[Command]) -> None:
    widest = SQL.replace("20", "60")
    manifest = with_sql(running(declared(q=SQL)), "q", WIDER)
    assert differences(manifest, declared(q=widest)) == (ChangeQuery("q", widest),)
    assert differences(manifest, declared(q=WIDER)) == ()


def test_a_query_without_history_begins_without() -> None:
    command = AddQuery("q", SQL, history=False)
    assert differences(running(declared()), Declared(None, {"q": command}, "auto")) == (command,)
