"""A query's results are a stream for the next job, exactly once whatever happens to either."""

from __future__ import annotations

import signal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.cli.spark_job import job_of
from midstream.sql.job_file import parse_job
from tests.spark.chained_job import FOURS, KILLED_STEP, STREAMS, expected, feed, first_job, second_job
from tests.spark.drive import Place, finish, job, read_all
from tests.spark.forked_drivers import ForkedDrivers


def fours(root: Path) -> list[tuple[int, ...]]:
    return sorted(tuple(row.values()) for row in read_all(root / "fours").to_pylist())


@pytest.mark.timeout(600)
def test_the_first_of_two_chained_jobs_is_killed_amid_its_commit(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path
) -> None:
    feed(tmp_path)
    ended = drivers.run("tests.spark.chained_job", tmp_path)
    assert ended.returncode == -signal.SIGKILL, ended
    assert Place(tmp_path).manifest().step == KILLED_STEP
    finish(second_job(spark, tmp_path, ms.results_stream(spark, tmp_path / "checkpoint", "pairs")))
    before = fours(tmp_path)
    assert 0 < len(before) < len(expected()), "of the step whose commit was cut short nothing shows"
    run = finish(first_job(spark, tmp_path))
    finish(second_job(spark, tmp_path, run.results("pairs", maxFilesPerTrigger=1)))
    assert fours(tmp_path) == expected()
    finish(second_job(spark, tmp_path, ms.results_stream(spark, tmp_path / "checkpoint", "pairs")))
    assert fours(tmp_path) == expected()


def test_a_job_file_reads_the_results_of_another_job(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path)
    finish(first_job(spark, tmp_path))
    text = f"""
        checkpoint = "{tmp_path}/second"
        [streams.P]
        format = "midstream"
        path = "{tmp_path}/checkpoint"
        timestamp = "at"
        lateness = "1 day"
        options = {{ query = "pairs" }}
        [queries.fours]
        sql = "{" ".join(FOURS.split())}"
        sink = {{ path = "{tmp_path}/fours" }}
    """
    finish(job_of(spark, parse_job(text)))
    assert fours(tmp_path) == expected()
    with pytest.raises(ms.InputError, match=r"does not name the checkpoint and the query.*options = { query"):
        job_of(spark, parse_job(text.replace('options = { query = "pairs" }', "")))
    with pytest.raises(ms.InputError, match=r"option 'quarry' of midstream.*correct its name"):
        job_of(spark, parse_job(text.replace("options = { query", "options = { quarry")))


def test_results_that_are_no_stream_are_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.feed("A", 0, STREAMS[0].schema.empty_table())
    asked = job(spark, place, STREAMS[:1], {"files": "SELECT u FROM A"})
    asked.query("text", "SELECT u FROM A", sink=ms.sinks.files(tmp_path / "text", "json"))
    asked.query("pattern", "SELECT u FROM A", sink=ms.sinks.files(tmp_path / "odd [1]"))
    asked.query("function", "SELECT u FROM A", sink=lambda *_: None)
    run = asked.start(trigger={"availableNow": True})
    assert run.results("files").isStreaming, "before the first step, too"
    run.await_termination(120)
    for name in ("text", "function"):
        with pytest.raises(ms.SinkError, match=f"{name}' do not go to parquet files .*Remedy: give the query a sink"):
            run.results(name)
    with pytest.raises(ms.SinkError, match=r"cannot read a folder with '\['"):
        run.results("pattern")
    with pytest.raises(ms.QueryError, match=r"no query 'x' .*the job's queries are: files, function, pattern, text"):
        ms.results_stream(spark, place.checkpoint, "x")
    with pytest.raises(ms.CheckpointError, match="no such folder"):
        ms.results_stream(spark, tmp_path / "nowhere", "x")


def test_every_type_comes_through(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {"s": pa.string(), "raw": pa.binary(), "d": pa.decimal128(10, 2), "f": pa.float64(), "day": pa.date32()}
    schema = pa.schema([*kinds.items(), ("ts", pa.timestamp("us"))])
    place, spec = Place(tmp_path), type(STREAMS[0])("A", schema)
    values = {"s": ["", None], "raw": [b"\x00", None], "d": [1, None], "f": [float("nan"), None], "day": [1, None]}
    place.feed("A", 0, pa.table({**values, "ts": [1, 2]}, schema))
    run = finish(job(spark, place, [spec], {"q": f"SELECT {', '.join(kinds)}, ts FROM A"}))
    copied = ms.Job(spark, tmp_path / "second", 1).stream("P", run.results("q"), timestamp="ts")
    finish(copied.query("q", f"SELECT {', '.join(kinds)}, ts FROM P", sink=ms.sinks.files(tmp_path / "copy")))
    assert str(read_all(tmp_path / "copy").sort_by("ts")) == str(read_all(place.answers("q")).sort_by("ts"))
