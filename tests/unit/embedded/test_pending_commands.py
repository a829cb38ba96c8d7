"""What the embedded engine's methods put on the list of the next step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.commands.add_query import AddQuery
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.reshare import Reshare
from midstream.model.command import Command
from midstream.model.events import CommandRefused, QueryAdded
from midstream.model.manifest import Manifest
from midstream.sharing.schemes.scheme_contract import schemes

SQL = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"

CALLS: list[tuple[Callable[[ms.Engine], None], Command]] = [
    (lambda e: e.add_query("q", SQL), AddQuery("q", SQL, history=True)),
    (lambda e: e.add_query("q", SQL, history=False), AddQuery("q", SQL, history=False)),
    (lambda e: e.change_query("q", SQL), ChangeQuery("q", SQL)),
    (lambda e: e.migrate("q", "(B A)", "gms"), Migrate("q", "(B A)", "gms", together=False)),
    (lambda e: e.migrate("q", "(B A)", "gms", together=True), Migrate("q", "(B A)", "gms", together=True)),
    (lambda e: e.migrate("q", "(B A)", "gms", rate=3), Migrate("q", "(B A)", "gms", {"rate": 3})),
    (lambda e: e.reshare("cpu_opt"), Reshare("cpu_opt")),
]


@pytest.mark.parametrize(("call", "command"), CALLS, ids=lambda value: getattr(value, "kind", ""))
def test_a_command_waits_for_the_next_step(
    call: Callable[[ms.Engine], None], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def granted(manifest: Manifest, *_: object) -> Manifest:
        return manifest

    monkeypatch.setattr("midstream.embedded.engine.taken", granted)
    engine = ms.Engine()
    call(engine)
    assert engine.manifest.pending == (command,)


def test_each_of_many_commands_is_taken_and_published_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a checkpoint each drop was published twice, and took all that waited before it once more."""
    with ms.Engine(checkpoint=tmp_path, durable=False) as engine:
        for stream in "AB":
            engine.create_stream(stream, "k BIGINT, ts TIMESTAMP", timestamp="ts")
        for number in range(20):
            engine.add_query(f"q{number}", SQL)
        engine.push()
        applied, published = list[str](), list[int]()
        apply, add = DropQuery.apply, ManifestLog.add
        monkeypatch.setattr(DropQuery, "apply", lambda one, draft: applied.append(one.query) or apply(one, draft))
        monkeypatch.setattr(ManifestLog, "add", lambda log, manifest: published.append(1) or add(log, manifest))
        for number in range(20):
            engine.drop_query(f"q{number}")
        assert applied == [f"q{number}" for number in range(20)] and len(published) == 20
        assert engine.push() == {}
    with ms.Engine(checkpoint=tmp_path, durable=False) as engine:
        assert not engine.manifest.queries and not engine.manifest.published.declared.queries


def test_a_command_of_the_log_is_taken_once(tmp_path: Path) -> None:
    with ms.Engine(checkpoint=tmp_path, durable=False) as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.push()
        log = CommandLog(f"{tmp_path}/commands")
        log.append(AddQuery("q", "SELECT k FROM A"))
        log.append(AddQuery("p", "SELECT k FROM A"))
        for _ in range(3):
            engine.push()
        assert engine.manifest.last_command == 2 and engine.manifest.queries.keys() == {"q", "p"}
        added = [event.query for event in engine.events if isinstance(event, QueryAdded)]
        assert added == ["q", "p"] and not [one for one in engine.events if isinstance(one, CommandRefused)]


@pytest.mark.parametrize("mode", schemes())
def test_a_mode_is_kept_in_the_manifest(mode: str) -> None:
    assert ms.Engine(sharing=mode).manifest.sharing == mode
