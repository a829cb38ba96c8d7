"""A limit of memory on Spark: answers near it are exact, and a step beyond it fails whole, with a remedy."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.model.errors import InputError
from midstream.state.store.memory_limit import MemoryLimit
from tests.crash_case import CHAIN, STREAMS
from tests.oracle.compare import assert_each_step_same
from tests.spark.crash_job import CASE, feed, the_job
from tests.spark.drive import Place, finish, job
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.test_crashes import JOB, THREE, check
from tests.unit.state.chunk_files import linux_only

pytestmark = [linux_only, pytest.mark.timeout(300)]

MANY = 4_000
"""So many rows of one key on either side make 16 million results."""

BEYOND = r"(joining the rows of this step|reading the columns of what is found) needs"
"""Which of the two asks first for too much depends on what the worker holds already."""


def near() -> int:
    """A limit just above what this process, the driver, holds; the workers were not asked."""
    return MemoryLimit(1).held() + (64 << 20)


def test_answers_near_a_limit_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    feed(tmp_path)
    place = Place(tmp_path)
    finish(job(spark, place, STREAMS, {"chain": CHAIN.cql()}, lanes=2, memory=near()))
    assert_each_step_same(place.by_step("chain", len(CASE.steps)), CASE.expected()["chain"], "chain")


@pytest.mark.timeout(600)
def test_the_driver_is_killed_near_a_limit(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(tmp_path)
    for point, step in THREE:
        killed = drivers.run(JOB, tmp_path, MIDSTREAM_KILL_AT=f"{point}:{step}", CRASH_LIMITED="1")
        assert killed.returncode == -signal.SIGKILL, killed
    monkeypatch.setenv("CRASH_LIMITED", "1")
    finish(the_job(spark, tmp_path))
    check(Place(tmp_path), CASE.expected())


def test_a_step_beyond_the_limit_of_a_worker_fails_whole(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    count = np.arange(MANY)
    table = pa.table({"k": count * 0, "ts": pa.array(count, pa.timestamp("us"))})
    for step, tables in enumerate(({"A": table, "B": table[:0]}, {"A": table[:0], "B": table})):
        place.feed_together(step, tables)
    with pytest.raises(InputError, match=BEYOND) as caught:
        finish(of_many(spark, place, near()))
    assert "more memory" in caught.value.remedy
    assert place.manifest().step == 0
    finish(of_many(spark, place, None))
    answers = [found for found in place.by_step("q", 2) if found is not None]
    assert [found.num_rows for found in answers] == [MANY * MANY]


def of_many(spark: SparkSession, place: Place, memory: int | None) -> ms.Job:
    found = ms.Job(spark, place.checkpoint, 1, memory=memory)
    for name in "AB":
        folder = place.root / "in" / name
        frame = spark.readStream.schema("k BIGINT, ts TIMESTAMP_NTZ").option("maxFilesPerTrigger", 1)
        found.stream(name, frame.parquet(str(folder)), timestamp="ts")
    found.query(
        "q",
        "SELECT A.k FROM A [RANGE 9 HOURS], B [RANGE 9 HOURS] WHERE A.k = B.k",
        None,
        ms.sinks.files(place.answers("q")),
    )
    return found
