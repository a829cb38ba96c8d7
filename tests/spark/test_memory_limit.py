"""A limit of memory on Spark: answers near it are exact, and a step beyond it fails whole, with a remedy."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from midstream.checkpoint.reader import Checkpoint
from midstream.storage.memory_limit import MemoryLimit
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


def test_a_step_beyond_the_limit_of_a_worker_fails_whole(
    drivers: ForkedDrivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command line: the tests' own process may hold more than a worker would need."""
    monkeypatch.chdir(tmp_path)
    count = np.arange(MANY)
    table = pa.table({"k": count * 0, "ts": pa.array(count, pa.timestamp("us"))})
    for name, rows in (("A", table), ("B", table[:0])):
        feed_file(name, "0", rows)
    job = 'checkpoint = "ckpt"\nlanes = 1\n'
    for name in "AB":
        job += f'[streams.{name}]\nformat = "parquet"\npath = "in/{name}"\nschema = "k BIGINT, ts TIMESTAMP"\n'
        job += 'timestamp = "ts"\n'
    sql = "SELECT A.k FROM A [RANGE 9 HOURS], B [RANGE 9 HOURS] WHERE A.k = B.k"
    job += f'[queries.q]\nsql = "{sql}"\nsink = {{ path = "out" }}\n'
    run = ("midstream", "run", "job.toml", "--once", "--cores", "2")
    Path("job.toml").write_text(f'memory = "1 MB"\n{job}')
    held = re.search(r"below the ([0-9.]+) MB", drivers.run(*run).stderr)
    assert held is not None, "what a driver holds; a worker holds more, and asks before it joins this much"
    limit = f"{float(held[1]) + 10:.1f} MB"
    Path("job.toml").write_text(f'memory = "{limit}"\n{job}')
    first = drivers.run(*run)
    assert first.returncode == 0, first.stderr
    feed_file("B", "1", table)
    failed = drivers.run(*run)
    assert failed.returncode == 2 and "needs" in failed.stderr and f"the limit is {limit}" in failed.stderr, failed
    assert "set a higher limit" in failed.stderr
    assert Checkpoint.open(tmp_path / "ckpt").manifest().step == 0 and results() == 0
    Path("job.toml").write_text(job)
    last = drivers.run(*run)
    assert last.returncode == 0 and results() == MANY * MANY, last.stderr


def feed_file(name: str, number: str, rows: pa.Table) -> None:
    folder = Path("in") / name
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / f"{number}.parquet")


def results() -> int:
    return sum(pq.read_metadata(file).num_rows for file in Path("out").glob("step=*/*.parquet"))
