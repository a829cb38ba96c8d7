"""A query is not begun whose sink does not take its results: the command is refused, and the job runs on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.commands.add_query import AddQuery
from midstream.commands.drop_query import DropQuery
from midstream.model.errors import WriteError
from midstream.storage import objects
from midstream.storage.process_resources import RESOURCES
from tests.embedded.test_checkpoint import SQL, in_the_sink, opened, step

Made = Callable[[Path], dict[str, Any]]


def of_another_job(kind: dict[str, Any]) -> Made:
    """A sink that has the results of a query of the same name of another job."""

    def make(root: Path) -> dict[str, Any]:
        with opened(root / "other", sink={**kind, "path": str(root / "taken")}) as engine:
            for number in range(5):
                engine.push(step(number))
        return {**kind, "path": str(root / "taken")}

    return make


def below_a_file(root: Path) -> dict[str, Any]:
    (root / "file").write_text("")
    return {"path": str(root / "file" / "folder")}


def on_no_server(_: Path) -> dict[str, Any]:
    return {"type": "postgresql", "table": "t", "dsn": "host=127.0.0.1 port=1 connect_timeout=1"}


def of_no_catalog(_: Path) -> dict[str, Any]:
    return {"type": "iceberg", "table": "a.b", "catalog": "none"}


SINKS = {
    "another job's files": (of_another_job({}), "the sink has results of another job"),
    "another job's table": (of_another_job({"type": "delta"}), "the sink has results of another job"),
    "a file in the way": (below_a_file, "Not a directory"),
    "no server": (on_no_server, "connection failed"),
    "no catalog": (of_no_catalog, "Iceberg"),
}


@pytest.mark.parametrize("sink", SINKS)
def test_a_job_runs_on_whose_command_names_a_sink_that_takes_nothing(
    tmp_path: Path, sink: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)  # Of a server that other tests have.
    make, why = SINKS[sink]
    value = make(tmp_path)
    with opened(tmp_path) as engine:
        engine.add_query("first", SQL)
        engine.drop_query("pairs")
        engine.push(step(0))
        checkpoint = Checkpoint.open(tmp_path / "checkpoint")
        checkpoint.send(AddQuery("pairs", SQL, sink=value))
        checkpoint.send(AddQuery("beside", SQL))
        checkpoint.send(DropQuery("pairs"))
        for number in (1, 2):
            engine.push(step(number))
        assert list(engine.manifest.queries) == ["first", "beside"]
        seen = [event for event in checkpoint.events() if event["event"] == "command_refused"]
        assert [event["command"]["command"] for event in seen] == ["add_query"]
        assert engine.manifest.refused == {}, "the drop takes the note of the refusal away"
        assert why in seen[0]["reason"] and seen[0]["step"] == 1
        assert [event.kind for event in engine.events].count("command_refused") == 1
    assert in_the_sink(tmp_path / "checkpoint" / "results" / "beside")
    with ms.Engine(checkpoint=tmp_path / "checkpoint") as engine:
        engine.push(step(3))
        assert engine.manifest.step == 3


def test_a_folder_is_free_once_its_query_is_dropped(tmp_path: Path) -> None:
    """By the same step, and whatever stands before in the log."""
    with opened(tmp_path, sink=ms.sinks.files(tmp_path / "out")) as engine:
        engine.push(step(0))
        checkpoint = Checkpoint.open(tmp_path / "checkpoint")
        checkpoint.commands.append(AddQuery("early", SQL, sink={"path": str(tmp_path / "out" / "inner")}))
        checkpoint.send(DropQuery("pairs"))
        checkpoint.send(AddQuery("late", SQL, sink={"path": str(tmp_path / "out" / "other")}))
        engine.push(step(1))
        assert list(engine.manifest.queries) == ["late"]
        (refused,) = [event for event in checkpoint.events() if event["event"] == "command_refused"]
        assert (
            refused["command"]["query"] == "early"
            and "in the folder of the results of query pairs" in refused["reason"]
        )


def test_a_query_waits_for_a_checkpoint_that_cannot_be_written(tmp_path: Path) -> None:
    """What keeps a step from being done at all is not a fault of the command."""
    with opened(tmp_path) as engine:
        engine.push(step(0))
        checkpoint = Checkpoint.open(tmp_path / "checkpoint")
        checkpoint.send(AddQuery("more", SQL))
        (tmp_path / "checkpoint" / "results" / "more").write_text("")
        with pytest.raises(WriteError):
            engine.push(step(1))
        (tmp_path / "checkpoint" / "results" / "more").unlink()
        engine.push(step(1))
        assert list(engine.manifest.queries) == ["pairs", "more"]
        assert not [event for event in checkpoint.events() if event["event"] == "command_refused"]


def test_a_bucket_that_is_not_there(tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(objects.PATIENCE, "1")
    RESOURCES.close()
    with opened(tmp_path) as engine:
        engine.push(step(0))
        checkpoint = Checkpoint.open(tmp_path / "checkpoint")
        checkpoint.send(AddQuery("gone", SQL, sink={"path": "s3://no-such-bucket/a"}))
        checkpoint.send(AddQuery("there", SQL, sink={"path": f"{bucket}/there"}))
        engine.push(step(1))
        assert list(engine.manifest.queries) == ["pairs", "there"]
        (refused,) = [event for event in checkpoint.events() if event["event"] == "command_refused"]
        assert "NoSuchBucket" in refused["reason"]
