"""An engine that is started again and again, or whose start is cut short, still knows whose its steps are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.checkpoint.folders import Folders
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.reader import Checkpoint
from midstream.model import time_line
from midstream.model.errors import CheckpointError, LostCheckpointError, UndeliveredError, WriteError
from midstream.model.manifest import Manifest
from midstream.model.time_line import Epoch, TimeLine
from midstream.pipeline.outputs import Outputs
from midstream.storage.local import LocalStorage
from tests.embedded.test_checkpoint import SQL, step
from tests.embedded.test_faults import in_sink, rows
from tests.unit.building import DDL


@pytest.fixture
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_line, "EPOCHS_KEPT", 3)


def engine(place: Path, sink: object = None, *, take_over: bool = False) -> ms.Engine:
    found = ms.Engine(checkpoint=place / "checkpoint", take_over=take_over)
    for name in "AB":
        found.create_stream(name, DDL, timestamp="ts")
    found.add_query("pairs", SQL, sink=sink or ms.sinks.files(place / "out"))  # type: ignore[arg-type]
    return found


def answers(steps: int) -> list[list[object]]:
    twin = ms.Engine()
    for name in "AB":
        twin.create_stream(name, DDL, timestamp="ts")
    twin.add_query("pairs", SQL)
    return [rows(twin.push(step(number))["pairs"]) for number in range(steps)]


@pytest.mark.usefixtures("few_epochs")
def test_starts_without_a_step_are_forgotten_first(tmp_path: Path) -> None:
    for number in range(4):
        with engine(tmp_path) as running:
            running.push(step(number))
        for _ in range(5):
            engine(tmp_path).close()
    assert in_sink(tmp_path) == answers(4)


def test_a_hundred_and_fifty_starts_leave_the_newest_step_its_epoch() -> None:
    line = TimeLine("j", (Epoch(1, "first", 0),))
    for number in range(2, 152):
        line = line.after(Epoch(number, f"idle{number}", 5))
    assert len(line.epochs) == time_line.EPOCHS_KEPT and line.stamp(4).epoch == "first"
    for number in range(152, 302):
        line = line.after(Epoch(number, f"works{number}", number))
    assert line.stamp(301).epoch == "works301" and line.epoch_of(4) is None


@pytest.mark.usefixtures("few_epochs")
def test_events_of_forgotten_epochs_are_still_read(tmp_path: Path) -> None:
    for number in range(6):
        with engine(tmp_path) as running:
            running.push(step(number))
    found = Checkpoint.open(tmp_path / "checkpoint")
    done = [event["step"] for event in found.events() if event["event"] == "step_done"]
    assert done == list(range(6))


class Refusing:
    """A function that raises as long as it is told to, and keeps what it takes."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.taken: list[list[object]] = []

    def __call__(self, table: pa.Table, step: int, query: str) -> None:
        if self.error is not None:
            raise self.error
        self.taken.append(rows(table))


@pytest.mark.parametrize("error", [WriteError("no"), ConnectionError("down")], ids=["ours", "any"])
def test_a_function_that_fails_loses_no_step_before_or_after_a_restart(tmp_path: Path, error: Exception) -> None:
    refusing = Refusing(error)
    with engine(tmp_path, refusing) as running, pytest.raises(UndeliveredError, match="step 0 is committed"):
        running.push(step(0))
    with engine(tmp_path, refusing) as running:
        with pytest.raises(type(error)):
            running.push(step(1))
        assert running.manifest.step == 0
        refusing.error = None
        running.push(step(1))
    newest = ManifestLog(tmp_path / "checkpoint" / "manifests").latest()
    assert newest is not None and newest.step == 1
    assert refusing.taken == answers(2)


def test_a_damaged_savepoint_stops_nobody_and_can_be_dropped(tmp_path: Path) -> None:
    with engine(tmp_path) as running:
        running.push(step(0))
        savepoints = running._checkpoint.folders.savepoints  # type: ignore[union-attr]
        savepoints.add("mine", running.manifest)
        (tmp_path / "checkpoint" / "savepoints" / "mine.json").write_text("junk")
        for number in range(1, 10):
            running.push(step(number))
        savepoints.drop("mine")
        with pytest.raises(CheckpointError, match="there is no savepoint 'mine'"):
            savepoints.drop("mine")
    with engine(tmp_path) as running:
        assert running.manifest.step == 9


def test_a_query_declared_after_a_step_that_failed_is_there_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = LocalStorage.write

    def refused(self: LocalStorage, name: str, data: bytes) -> None:
        if self.url.endswith("manifests") and "-000000000001" in name:
            raise WriteError("no space")
        write(self, name, data)

    running = engine(tmp_path)
    running.push(step(0))
    for lanes in (2, 3, 2, 1):
        running.rescale(lanes)
    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "write", refused)
        with pytest.raises(WriteError):
            running.push(step(1))
    running.add_query("other", SQL, sink=ms.sinks.files(tmp_path / "other"))
    running.close()
    with engine(tmp_path) as again:
        assert "other" in again.report().queries


def test_a_step_that_failed_leaves_its_name_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it wrote may arrive late on a store, and must not stand in the place of a step that counts."""
    log = ManifestLog(tmp_path)
    epoch = (Epoch(1, "a", 0),)
    written = list[str]()
    write = LocalStorage.write

    def noted(self: LocalStorage, name: str, data: bytes) -> None:
        written.append(name)
        if len(written) == 3:
            raise WriteError("no space")
        write(self, name, data)

    monkeypatch.setattr(LocalStorage, "write", noted)
    for number in (0, 0):
        log.publish(Manifest(job="j", step=number, epochs=epoch))
    with pytest.raises(WriteError):
        log.publish(Manifest(job="j", step=1, epochs=epoch))
    log.publish(Manifest(job="j", step=0, epochs=epoch, lanes=3))
    newest = log.latest()
    assert newest is not None and newest.lanes == 3
    log.publish(Manifest(job="j", step=1, epochs=epoch))
    assert len(set(written)) == 5


def test_an_engine_that_cannot_be_made_lets_go_of_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(tmp_path).close()
    with monkeypatch.context() as patch:
        patch.setattr("midstream.embedded.engine.settings", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine(tmp_path)
    engine(tmp_path).close()


def test_who_goes_back_and_is_overtaken_takes_nothing_of_the_next_driver_out(tmp_path: Path) -> None:
    with engine(tmp_path) as running:
        for number in range(2):
            running.push(step(number))
    folders = Folders(str(tmp_path / "checkpoint"))
    with folders.manifests.rewinding(0) as rewinding:
        begun = rewinding.publish()
        with engine(tmp_path, take_over=True) as other:
            for number in range(1, 4):
                other.push(step(number))
        with pytest.raises(LostCheckpointError):
            Outputs(folders, {}).forget_after(begun)
    assert in_sink(tmp_path) == answers(4)
