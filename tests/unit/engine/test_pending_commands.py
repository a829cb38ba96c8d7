"""What the embedded engine's methods put on the list of the next step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import midstream as ms
from midstream.model.command import Command
from midstream.model.manifest import Manifest
from midstream.sharing.discovery import schemes
from midstream.step.commands.add_query import AddQuery
from midstream.step.commands.change_query import ChangeQuery
from midstream.step.commands.migrate import Migrate
from midstream.step.commands.reshare import Reshare

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

    monkeypatch.setattr("midstream.engine.engine.taken", granted)
    engine = ms.Engine()
    call(engine)
    assert engine.manifest.pending == (command,)


@pytest.mark.parametrize("mode", schemes())
def test_a_mode_is_kept_in_the_manifest(mode: str) -> None:
    assert ms.Engine(sharing=mode).manifest.sharing == mode
