"""A driver that another has overtaken changes nothing any more, at whatever point of its step it wakes up."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import LostCheckpointError, UndeliveredError, WriteError
from midstream.sinks.contract import STAGING
from midstream.storage.write_back import WriteBackStore
from tests.embedded.test_checkpoint import step
from tests.embedded.test_faults import in_sink
from tests.embedded.test_many_starts import answers, engine


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_who_is_overtaken_while_it_delivers_tidies_nothing(tmp_path: Path) -> None:
    """Step 8 is one after which a job tidies."""
    others, then = list[ms.Engine](), list[dict[Path, bytes]]()

    def overtaken_at_8(rows: pa.Table, number: int, query: str) -> None:
        if number == 8:
            chunk = next((tmp_path / "checkpoint" / "store").rglob("*-small*.arrow"))
            shutil.copy(chunk, chunk.with_name("00000001-loose.1.arrow"))
            others.append(ms.Engine(checkpoint=tmp_path / "checkpoint", take_over=True))
            then.append(content(tmp_path / "checkpoint" / "store"))

    with engine(tmp_path, overtaken_at_8) as before:
        for number in range(8):
            before.push(step(number))
    running = engine(tmp_path, overtaken_at_8)
    running.push(step(8))
    assert content(tmp_path / "checkpoint" / "store") == then[0]
    with pytest.raises(LostCheckpointError):
        running.push(step(9))
    others[0].close()


def test_what_was_not_delivered_is_left_to_who_took_over(tmp_path: Path) -> None:
    calls = list[int]()

    def fails(rows: pa.Table, number: int, query: str) -> None:
        calls.append(number)
        raise ZeroDivisionError

    running = engine(tmp_path, fails)
    with pytest.raises(UndeliveredError):
        running.push(step(0))
    with ms.Engine(checkpoint=tmp_path / "checkpoint", take_over=True), pytest.raises(LostCheckpointError):
        running.push(step(1))
    assert calls == [0]


def test_a_step_that_is_done_again_leaves_nothing_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> object:
        raise WriteError("the disk is full", place="store", remedy="free it")

    with engine(tmp_path) as running:
        running.push(step(0))
        with monkeypatch.context() as context:
            context.setattr(WriteBackStore, "written", full)
            for _ in range(2):
                with pytest.raises(WriteError):
                    running.push(step(1))
        assert list((tmp_path / "out" / STAGING).rglob("*.parquet"))
        running.push(step(1))
        assert not [path for path in tmp_path.rglob("*") if STAGING in path.parts and path.is_file()]
        for number in (2, 3):
            running.push(step(number))
    assert in_sink(tmp_path) == answers(4)
