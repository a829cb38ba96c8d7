"""A query that cannot be taken up any more, for its sink or its predicate is gone: it can be dropped all the same."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.commands.drop_query import DropQuery
from midstream.expr import user_predicates
from midstream.sinks import FileSink, StagedStep

SINKS: dict[str, Any] = {
    "files": {"path": "gone"},
    "delta": {"type": "delta", "path": "gone"},
    "function": lambda rows, step, query: None,
}


def engine() -> ms.Engine:
    made = ms.Engine(checkpoint="ckpt")
    try:
        made.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
    except ms.MidstreamError:
        made.close()
        raise
    return made


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": keys, "ts": pa.array([1_000_000 * k for k in keys], pa.timestamp("us"))})


def dropped_and_gone_on() -> None:
    with pytest.raises(ms.MidstreamError), engine() as before:
        before.push({"A": rows(2)})
    Checkpoint.open("ckpt").send(DropQuery("q"))
    with engine() as after:
        assert after.push({"A": rows(3)})["kept"].to_pylist() == [{"k": 3}]
        assert list(after.manifest.queries) == ["kept"]
    with engine() as again:
        again.add_query("q", "SELECT k + 1 AS k FROM A", sink={"path": "new"})
        assert again.push({"A": rows(4)})["q"].to_pylist() == [{"k": 5}]


@pytest.mark.parametrize("kind", SINKS)
def test_its_sink(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with engine() as before:
        before.add_query("q", "SELECT k FROM A", sink=SINKS[kind])
        before.add_query("kept", "SELECT k FROM A")
        before.push({"A": rows(1)})
    if kind != "function":
        shutil.rmtree("gone")
        Path("gone").write_text("something else")
    dropped_and_gone_on()


def test_what_waits_for_its_sink_is_delivered_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sink fails while a drop waits, and is there again: the committed step's rows are in it."""
    monkeypatch.chdir(tmp_path)
    with engine() as before:
        before.add_query("q", "SELECT k FROM A", sink=SINKS["files"])
        before.push({"A": rows(1)})
        with monkeypatch.context() as full:
            full.setattr(FileSink, "commit", no_space)
            with pytest.raises(ms.SinkError, match="no space"):
                before.push({"A": rows(2)})
    Checkpoint.open("ckpt").send(DropQuery("q"))
    with monkeypatch.context() as full:
        full.setattr(FileSink, "commit", no_space)
        with pytest.raises(ms.SinkError, match="no space"):
            engine()
    with engine() as after:
        after.push({"A": rows(3)})
        assert not after.manifest.queries
    found = [pq.read_table(file)["k"].to_pylist() for file in sorted(Path("gone").glob("step=*/*.parquet"))]
    assert found == [[1], [2]]


def no_space(self: FileSink, staged: StagedStep) -> None:
    raise ms.SinkError("no space", place="gone", remedy="make some")


def test_its_predicate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ms.predicate("is_gone_soon", lambda k: pc.greater(k, 0), "BIGINT")
    with engine() as before:
        before.add_query("q", "SELECT k FROM A WHERE is_gone_soon(k)")
        before.add_query("kept", "SELECT k FROM A")
        before.push({"A": rows(1)})
    monkeypatch.delitem(user_predicates._KNOWN, "is_gone_soon")
    dropped_and_gone_on()


def test_a_drop_that_is_refused_takes_nothing_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with engine() as before:
        before.add_query("q", "SELECT k, _ts FROM A", sink=SINKS["files"])
        before.add_query("reads", "SELECT k FROM q")
        before.push({"A": rows(1)})
    shutil.rmtree("gone")
    Path("gone").write_text("something else")
    log = Checkpoint.open("ckpt")
    log.folders.commands.append(DropQuery("q"), log.manifest().last_command)
    with pytest.raises(ms.MidstreamError, match="gone"):
        engine()
