"""Streams that a job on Spark is given while it runs, or when it starts again: nothing is read twice, nothing lost."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.spark.running_job import Run

DDL = "k BIGINT, ts TIMESTAMP"
ALONE = "SELECT A.k FROM A"
PAIRS = "SELECT A.k, B.k AS j FROM A, B WHERE A.k = B.k WINDOW 1 HOUR"
ALL = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 1 HOUR"


def feed(root: Path, name: str, number: int) -> None:
    times = pa.array([number * 1_000_000 + n for n in range(10)], pa.timestamp("us", "UTC"))
    rows = pa.table({"k": pa.array([number * 10 + n for n in range(10)], pa.int64()), "ts": times})
    (root / name).mkdir(exist_ok=True)
    pq.write_table(rows, root / name / f".{number}.parquet")
    (root / name / f".{number}.parquet").rename(root / name / f"{number}.parquet")


def frame(spark: SparkSession, root: Path, name: str) -> DataFrame:
    (root / name).mkdir(exist_ok=True)
    return spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(root / name))


def start(spark: SparkSession, root: Path, streams: str, **queries: str) -> Run:
    job = ms.Job(spark, root / "checkpoint", lanes=2)
    for name in streams:
        job.stream(name, frame(spark, root, name), timestamp="ts", lateness="1 hour")
    for name, sql in queries.items():
        job.query(name, sql)
    return job.start({"processingTime": "0 seconds"})


def until(run: Run, **rows: int) -> None:
    deadline = time.monotonic() + 90
    while any(name not in (told := run.report().streams) or told[name].rows < n for name, n in rows.items()):
        assert time.monotonic() < deadline
        assert not run.await_termination(0.05)


def found(root: Path, query: str) -> Counter[Any]:
    files = (root / "checkpoint" / "results" / query).rglob("*.parquet")
    return Counter(row["k"] for file in files for row in pq.read_table(file).to_pylist())


@pytest.mark.timeout(400)
def test_streams_come_while_it_runs_and_at_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path, "A", 0)
    feed(tmp_path, "B", 0)
    run = start(spark, tmp_path, "A", alone=ALONE)
    until(run, A=10)
    with pytest.raises(ms.InputError, match="there is already a stream 'A'"):
        run.stream("A", frame(spark, tmp_path, "B"), timestamp="ts", lateness="1 hour")
    with pytest.raises(ms.QueryError, match="while queries read it: alone"):
        run.drop_stream("A")
    run.stop()

    run = start(spark, tmp_path, "A", alone=ALONE)
    aside = ms.sinks.files(tmp_path / "aside")
    run.stream("B", frame(spark, tmp_path, "B"), timestamp="ts", lateness="1 hour", dead_letters=aside)
    untimed = pa.table({"k": pa.array([99], pa.int64()), "ts": pa.array([None], pa.timestamp("us", "UTC"))})
    pq.write_table(untimed, tmp_path / "B" / "untimed.parquet")
    run.add_query("pairs", PAIRS, history=False)
    for number in (1, 2):
        feed(tmp_path, "A", number)
    until(run, A=30, B=10)
    feed(tmp_path, "B", 1)
    feed(tmp_path, "B", 2)
    until(run, A=30, B=30)
    run.stop()
    assert [row["k"] for row in pq.read_table(tmp_path / "aside").to_pylist()] == [99]

    with pytest.raises(ms.CheckpointError, match="the checkpoint has the streams A, B"):
        start(spark, tmp_path, "A", alone=ALONE)
    for name in "ABC":
        feed(tmp_path, name, 3)
    run = start(spark, tmp_path, "CAB", alone=ALONE, pairs=PAIRS, all=ALL)
    until(run, A=40, B=40, C=10)
    feed(tmp_path, "A", 4)
    until(run, A=50)
    run.stop()
    assert found(tmp_path, "alone") == Counter(range(50))
    assert {key for key, times in found(tmp_path, "pairs").items() if times == 1} >= set(range(10, 40))
    assert set(found(tmp_path, "all").values()) <= {1} and set(found(tmp_path, "all")) == set(range(30, 40))
    assert {name: one.rows for name, one in run.report().streams.items()} == {"A": 50, "B": 40, "C": 10}


@pytest.mark.timeout(400)
def test_a_job_goes_back_to_before_a_stream_was_added(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path, "A", 0)
    feed(tmp_path, "B", 0)
    run = start(spark, tmp_path, "A", alone=ALONE)
    until(run, A=10)
    feed(tmp_path, "A", 1)
    until(run, A=20)
    run.stop()
    run = start(spark, tmp_path, "AB", alone=ALONE, pairs=PAIRS)
    until(run, A=20, B=10)
    run.stop()
    ms.open(tmp_path / "checkpoint").rewind(0)
    feed(tmp_path, "C", 0)
    run = start(spark, tmp_path, "AC", alone=ALONE, pairs=PAIRS.replace("B", "C"))
    until(run, A=20, C=10)
    run.stop()
    assert found(tmp_path, "alone") == Counter(range(20))
    assert list(run.report().streams) == ["A", "C"]
