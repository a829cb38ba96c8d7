"""A command of another distribution is one file: engines, logs and the command line take it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import main
from midstream.dashboard.api import forms
from midstream.model.command import Command
from midstream.model.events import Event
from tests.extension import distribution

LATENESS = '''
"""A command of another package."""

from dataclasses import dataclass, replace

from midstream.model.errors import QueryError
from midstream.model.events import Event
from midstream.commands.base import StepCommand


@dataclass(frozen=True)
class LatenessAllowed(Event):
    """A stream allows another lateness from a step on."""

    stream: str
    lateness: int


@dataclass(frozen=True)
class AllowLateness(StepCommand):
    """Let rows of a stream come later, in microseconds."""

    stream: str
    lateness: int

    def apply(self, draft):
        manifest = draft.manifest
        if self.stream not in manifest.streams:
            raise QueryError(f"there is no stream {self.stream!r}", place="lateness", remedy="name one that is there")
        changed = replace(manifest.streams[self.stream], lateness=self.lateness)
        draft.manifest = replace(manifest, streams={**manifest.streams, self.stream: changed})
        draft.changed = True
        draft.events.append(LatenessAllowed(manifest.step, self.stream, self.lateness))

    def is_done_by(self, event):
        return isinstance(event, LatenessAllowed) and event.stream == self.stream
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    declared = {"midstream.commands": {"lateness": "lateness_of_streams:AllowLateness"}}
    monkeypatch.syspath_prepend(distribution(tmp_path / "another", declared, lateness_of_streams=LATENESS))
    yield
    sys.modules.pop("lateness_of_streams", None)
    Command.kinds.pop("allow_lateness", None)
    Event.kinds.pop("lateness_allowed", None)


def opened(root: Path) -> ms.Engine:
    engine = ms.Engine(checkpoint=root / "ckpt")
    engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    engine.add_query("all", "SELECT A.k FROM A")
    return engine


def rows(*seconds: int) -> dict[str, pa.Table]:
    times = pa.array([1_000_000 * second for second in seconds], pa.timestamp("us"))
    return {"A": pa.table({"k": list(seconds), "ts": times})}


@pytest.mark.usefixtures("installed")
def test_it_is_a_command_of_the_command_line_and_the_next_step_takes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path) as engine:
        engine.push(rows(100))
        assert engine.push(rows(95))["all"].num_rows == 0, "it is late"
        assert main(["allow-lateness", str(tmp_path / "ckpt"), "B", "--lateness", "1"]) == 2
        assert "there is no stream 'B'" in capsys.readouterr().err
        assert main(["allow-lateness", str(tmp_path / "ckpt"), "A", "--lateness", "10000000", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["command"] == "allow_lateness"
        engine.push()
        assert engine.push(rows(95))["all"].to_pylist() == [{"k": 95}]
    kinds = [event["event"] for event in Checkpoint.open(tmp_path / "ckpt").events()]
    assert "lateness_allowed" in kinds and "command_refused" not in kinds


@pytest.mark.usefixtures("installed")
def test_the_help_has_it_with_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "allow-lateness" in capsys.readouterr().out
    assert main(["allow-lateness", "--help"]) == 0
    told = capsys.readouterr().out
    assert "Let rows of a stream come later" in told and "STREAM" in told and "--lateness" in told


@pytest.mark.usefixtures("installed")
def test_the_dashboard_has_a_form_of_it() -> None:
    (found,) = [one for one in forms() if one["command"] == "allow_lateness"]
    assert (found["verb"], found["title"]) == ("allow-lateness", "Let rows of a stream come later, in microseconds.")
    assert [(one["name"], one["kind"], one["required"]) for one in found["fields"]] == [
        ("stream", "text", True),
        ("lateness", "number", True),
    ]


@pytest.mark.usefixtures("installed")
def test_an_engine_takes_it_as_a_value_and_goes_on_with_it_after_a_restart(tmp_path: Path) -> None:
    from lateness_of_streams import AllowLateness  # type: ignore[import-not-found]

    with opened(tmp_path) as engine:
        engine.push(rows(100))
        with pytest.raises(ms.QueryError, match="there is no stream 'B'"):
            engine.command(AllowLateness("B", 1))
        engine.command(AllowLateness("A", 10_000_000))
    with opened(tmp_path) as engine:
        engine.push()
        assert engine.push(rows(95))["all"].to_pylist() == [{"k": 95}]
