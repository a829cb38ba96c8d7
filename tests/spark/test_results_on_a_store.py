"""Results on an object store are a stream for the next job: each step whole and once, none that was given up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.spark_job import job_of
from midstream.sql.job_file import parse_job
from midstream.storage import chunk_cache, places
from midstream.storage.objects import ObjectStorage
from midstream.storage.places import storage_at
from tests.spark.chained_job import FOURS, PAIRS, STREAMS, expected, feed
from tests.spark.drive import Place, finish


class Killed(Exception):
    """The driver is gone."""


@pytest.fixture(autouse=True)
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(chunk_cache.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setenv(places.WORK, str(tmp_path / "work"))


def first_job(spark: SparkSession, root: Path, url: str) -> ms.Job:
    found = ms.Job(spark, f"{url}/first", 2, patience="0 seconds")
    for spec in STREAMS:
        found.stream(spec.name, Place(root).frame(spark, spec), timestamp=spec.timestamp)
    return found.query("pairs", PAIRS, sink=ms.sinks.files(f"{url}/pairs"))


def second_job(spark: SparkSession, url: str, pairs: DataFrame) -> ms.Job:
    found = ms.Job(spark, f"{url}/second", 2)
    found.stream("P", pairs, timestamp="at", lateness="1 day")
    return found.query("fours", FOURS, sink=ms.sinks.files(f"{url}/fours"))


def fours(url: str) -> list[tuple[int, ...]]:
    storage = storage_at(f"{url}/fours")
    files = [name for name, _ in storage.walk() if name.startswith("step=")]
    tables = [pq.read_table(pa.BufferReader(storage.read(name))) for name in files]
    return sorted(tuple(row.values()) for table in tables for row in table.to_pylist())


@pytest.mark.timeout(600)
def test_two_jobs_on_a_store_of_which_one_is_cut_off_amid_its_commit(
    spark: SparkSession, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(tmp_path)
    copy_all = ObjectStorage.copy_all

    def half(self: ObjectStorage, copies: Mapping[str, str]) -> None:
        """Of step 1 the first file comes to its place and the others do not."""
        if "pairs" in self.url and any("step=00000001" in target for target in copies.values()):
            assert len(copies) > 1
            copy_all(self, dict([min(copies.items())]))
            raise Killed
        copy_all(self, copies)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(ObjectStorage, "copy_all", half)
        finish(first_job(spark, tmp_path, bucket))
    assert Checkpoint.open(f"{bucket}/first").manifest().step == 1
    assert any("step=00000001" in name for name, _ in storage_at(f"{bucket}/pairs").walk()), "a part of it is there"
    finish(second_job(spark, bucket, ms.results_stream(spark, f"{bucket}/first", "pairs")))
    before = fours(bucket)
    assert 0 < len(before) < len(expected())
    assert Checkpoint.open(f"{bucket}/second").report().to_json()["streams"]["P"] is not None

    run = finish(first_job(spark, tmp_path, bucket))
    steps = Checkpoint.open(f"{bucket}/second").manifest().step
    finish(second_job(spark, bucket, run.results("pairs", maxFilesPerTrigger=1)))
    assert fours(bucket) == expected()
    assert Checkpoint.open(f"{bucket}/second").manifest().step == steps + 2, "no step is split, nor are two together"
    text = f"""
        checkpoint = "{bucket}/second"
        lanes = 2
        [streams.P]
        format = "midstream"
        path = "{bucket}/first"
        timestamp = "at"
        lateness = "1 day"
        options = {{ query = "pairs" }}
        [queries.fours]
        sql = "{" ".join(FOURS.split())}"
        sink = {{ path = "{bucket}/fours" }}
    """
    finish(job_of(spark, parse_job(text)))
    assert fours(bucket) == expected()

    ms.open(f"{bucket}/first").rewind(1)
    run = finish(first_job(spark, tmp_path, bucket))
    with pytest.raises(Exception, match=r"gave up step 2, but this job has read.*midstream rewind"):
        finish(second_job(spark, bucket, run.results("pairs")))
    assert fours(bucket) == expected()
    with pytest.raises(ms.QueryError, match="cannot be read with the option 'cleanSource'"):
        run.results("pairs", cleanSource="delete")
