"""What is wrong is said at once, with the place and the remedy; the checkpoint is as it was before."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from tests.oracle.spec import StreamSpec
from tests.spark.drive import Place, finish, job

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("v", pa.float64()), ("ts", pa.timestamp("us"))])
A, B = StreamSpec("A", SCHEMA), StreamSpec("B", SCHEMA)
PAIRS = "SELECT A.k, B.v FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS"


def refused(kind: type[ms.MidstreamError], call: Callable[[], Any], *words: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert caught.value.place and caught.value.remedy, text
    for word in words:
        assert word in text, text


def test_streams(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    frame = place.frame(spark, A)
    make = lambda: ms.Job(spark, tmp_path / "checkpoint")  # noqa: E731
    refused(ms.InputError, lambda: make().stream("A", spark.range(3), timestamp="id"), "not a streaming DataFrame")
    refused(ms.InputError, lambda: make().stream("A", None, timestamp="id"), "not a streaming DataFrame")  # type: ignore[arg-type]
    refused(ms.InputError, lambda: make().stream("A", frame, timestamp="time"), "'time'", "k, s, v, ts")
    refused(ms.InputError, lambda: make().stream("A", frame, timestamp="v"), "cannot be a timestamp")
    refused(ms.InputError, lambda: make().stream("A", frame, timestamp="ts", lateness="soon"), "soon", "lateness")
    refused(ms.InputError, lambda: make().stream("A", frame, "ts").stream("A", frame, "ts"), "already")
    refused(ms.InputError, lambda: make().start(), "no stream")
    rows = pa.table({"k": [1]})
    refused(ms.QueryError, lambda: make().stream("A", frame, "ts").table("a", rows), "there is already a stream 'A'")
    refused(ms.QueryError, lambda: make().table("A", rows).stream("A", frame, "ts"), "there is already a table 'A'")
    for name in (None, "", 3):
        refused(ms.QueryError, lambda name=name: make().stream(name, frame, "ts"), "cannot be called")  # type: ignore[misc]
        refused(ms.QueryError, lambda name=name: make().table(name, rows), "cannot be called")  # type: ignore[misc]
        refused(ms.QueryError, lambda name=name: make().query(name, "SELECT A.k FROM A"), "cannot be called")  # type: ignore[misc]
    queried = make().stream("B", frame, "ts").query("q", "SELECT B.k FROM B")
    refused(ms.QueryError, lambda: queried.stream("q", frame, "ts"), "there is already a query 'q'")


def test_queries(spark: SparkSession, tmp_path: Path) -> None:
    make = lambda: job(spark, Place(tmp_path), [A, B], {"q": PAIRS})  # noqa: E731
    for text, words in (
        ("SELECT A.nothing FROM A", ("nothing",)),
        ("SELECT Z.k FROM Z", ("Z",)),
        ("SELECT A.k FROM A, B WHERE A.k = B.s WINDOW 5 SECONDS", ("BIGINT", "VARCHAR")),
        ("SELECT A.k FROM A, B WHERE A.k = B.k", ("WINDOW",)),
        ("SELECT A.k FROM A [RANGE -5 SECONDS], B [ROWS 2]", ()),
        ("SELEKT", ()),
    ):
        refused(ms.LanguageError, lambda text=text: make().query("bad", text), *words)  # type: ignore[misc]
    refused(ms.PlanError, lambda: make().query("bad", PAIRS, plan="(A C)"), "C")
    refused(ms.PlanError, lambda: make().query("bad", PAIRS, plan="A"), "B")
    refused(ms.QueryError, lambda: make().query("q", PAIRS), "already")
    refused(ms.SinkError, lambda: make().query("r", PAIRS, sink=5), "not a sink")  # type: ignore[arg-type]
    refused(ms.SinkError, lambda: ms.sinks.files(tmp_path, format="orc"), "orc", "parquet")
    refused(ms.SinkError, lambda: ms.sinks.files("ftp://host/x"), "ftp")
    refused(ms.QueryError, lambda: ms.Job(spark, tmp_path, lanes=0), "lanes")
    refused(ms.QueryError, lambda: ms.Job(spark, tmp_path, sharing="much"), "much")
    refused(ms.InputError, lambda: ms.Job("spark", tmp_path), "session")  # type: ignore[arg-type]


def test_sinks_that_cannot_be_written(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    asked = job(spark, Place(tmp_path), [A, B], {})
    asked.query("q", PAIRS, sink=ms.sinks.files(tmp_path / "file" / "out"))
    refused(ms.SinkError, asked.start, "file")
    blocked = ms.Job(spark, tmp_path / "file" / "checkpoint").stream("A", Place(tmp_path).frame(spark, A), "ts")
    refused(ms.CheckpointError, blocked.start, "file")


def test_a_sink_that_fails_in_mid_run(spark: SparkSession, tmp_path: Path) -> None:
    """The task's error comes back as it was, the state stays as it was, and the job goes on once the cause is gone."""
    place = Place(tmp_path)
    rows = pa.table({"k": [1], "s": ["x"], "v": [1.0], "ts": pa.array([1], pa.timestamp("us"))}, schema=SCHEMA)
    for spec in (A, B):
        place.feed(spec.name, 0, rows)
    make = lambda: job(spark, place, [A, B], {"q": PAIRS}, patience=0)  # noqa: E731
    asked = make()
    place.answers("q").mkdir(parents=True)
    (place.answers("q") / "_staging").write_text("in the way")
    refused(ms.SinkError, lambda: finish(asked), "_staging")
    assert place.manifest().step == -1
    os.unlink(place.answers("q") / "_staging")
    finish(make())
    assert len(list(place.answers("q").glob("step=*/*.parquet"))) == 1


def test_checkpoints_of_another_job(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    rows = pa.table({"k": [1], "s": ["x"], "v": [1.0], "ts": pa.array([1], pa.timestamp("us"))}, schema=SCHEMA)
    for spec in (A, B):
        place.feed(spec.name, 0, rows)
    finish(job(spark, place, [A, B], {"q": PAIRS}))

    def again(*specs: StreamSpec) -> Callable[[], Any]:
        return lambda: job(spark, place, specs, {}).start({"availableNow": True})

    refused(ms.CheckpointError, again(A), "streams", "A, B")
    refused(ms.CheckpointError, again(A, StreamSpec("C", SCHEMA)), "streams", "A, B")
    text = pa.schema([("k", pa.string()), ("s", pa.string()), ("v", pa.float64()), ("ts", pa.timestamp("us"))])
    refused(ms.CheckpointError, again(A, StreamSpec("B", text)), "'k'", "int64", "string")
    fewer = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    refused(ms.CheckpointError, again(A, StreamSpec("B", fewer)), "'v'", "missing")
    moved = StreamSpec("B", pa.schema([*SCHEMA, ("at", pa.timestamp("us"))]), "at")
    refused(ms.CheckpointError, again(A, moved), "timestamp column")
    before = place.manifest()
    assert before.step == 0
    # Columns that nobody reads may come and go, lateness may change, the order of declaration does not matter.
    other = StreamSpec("A", pa.schema([("k", pa.int64()), ("new", pa.int8()), ("ts", pa.timestamp("us"))]), "ts", 5)
    run = job(spark, place, [replace(B, lateness=7), other], {"q": PAIRS}).start({"availableNow": True})
    assert run.await_termination(60)
    assert run.status()["streams"]["A"]["watermark"] == 1


def test_damaged_checkpoints(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    rows = pa.table({"k": [1], "s": ["x"], "v": [1.0], "ts": pa.array([1], pa.timestamp("us"))}, schema=SCHEMA)
    for spec in (A, B):
        place.feed(spec.name, 0, rows)
    make = lambda: job(spark, place, [A, B], {"q": PAIRS})  # noqa: E731
    finish(make())
    manifests = place.checkpoint / "manifests"
    newest = sorted(manifests.glob("*.json"))[-1]
    whole = newest.read_text()
    newest.write_text(whole[: len(whole) // 2])
    refused(ms.CheckpointError, make().start, newest.name, "damaged")
    newest.write_text(whole.replace('{"midstream":"0.2.0","format":1', '{"format":5', 1))
    before = {path: path.read_bytes() for path in place.checkpoint.rglob("*") if path.is_file()}
    refused(ms.CheckpointError, make().start, "midstream 0.1.0")
    assert {path: path.read_bytes() for path in place.checkpoint.rglob("*") if path.is_file()} == before
    newest.write_text(whole)
    kept = tmp_path / "kept"
    manifests.rename(kept)
    refused(ms.CheckpointError, make().start, "no manifest")
    kept.rename(manifests)
    (place.checkpoint / "spark").rename(tmp_path / "lost")
    for spec in (A, B):
        place.feed(spec.name, 1, rows)
    refused(ms.CheckpointError, lambda: finish(make()), "step 0", "restore")
    assert place.manifest().step == 0


def test_the_checkpoint_of_an_embedded_engine_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with ms.Engine(checkpoint=tmp_path / "checkpoint") as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.push()
    found = ms.Job(spark, tmp_path / "checkpoint")
    found.stream("A", spark.readStream.format("rate").load(), timestamp="timestamp")
    with pytest.raises(ms.CheckpointError, match="embedded engine") as caught:
        found.start()
    assert "ms.Engine" in caught.value.remedy


def test_a_file_that_cannot_be_read_ends_the_job_with_its_cause(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").write_bytes(b"this is not parquet file at all, not in the least")
    frame = spark.readStream.schema("k BIGINT, ts TIMESTAMP").parquet(str(tmp_path / "in"))
    job = ms.Job(spark, checkpoint=tmp_path / "checkpoint")
    job.stream("A", frame, timestamp="ts")
    job.query("all", "SELECT A.k FROM A")
    with pytest.raises(ms.SparkError, match=r"a\.parquet is not a Parquet file") as raised:
        job.start({"availableNow": True}).await_termination(120)
    assert "calling o" not in str(raised.value) and raised.value.__cause__ is not None
    life = Checkpoint.open(tmp_path / "checkpoint").liveness()
    assert life.state == "failed" and "is not a Parquet file" in life.reason
