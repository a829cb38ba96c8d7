"""Files that tasks read by themselves: the rows are those that Spark would bring, in the lanes it deals them to."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.spark import driver, gather
from midstream.spark.plain_files import PlainFiles

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int32()), ("s", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
DDL = "k BIGINT, n INT, s STRING, ts TIMESTAMP"
QUERIES = {
    "pairs": "SELECT A.k, A.s, B.n FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS] WHERE A.k = B.k AND A.n <> B.n",
    "left": "SELECT A.k, B.s FROM A [RANGE 5 SECONDS] LEFT JOIN B [RANGE 5 SECONDS] ON A.k = B.k",
    "counts": "SELECT k, COUNT(*) AS c, MAX(n) AS most FROM A GROUP BY k, TUMBLE(ts, INTERVAL 10 SECONDS)",
    "small": "SELECT n, COUNT(s) AS c FROM B GROUP BY n, TUMBLE(ts, INTERVAL 10 SECONDS)",
    "texts": "SELECT s, COUNT(*) AS c FROM B GROUP BY s, TUMBLE(ts, INTERVAL 10 SECONDS)",
    "plain": "SELECT A.k, A.s FROM A WHERE A.n > 2",
    "most": "SELECT MAX(c) AS c FROM counts [RANGE 1 MINUTE] EVERY 10 SECONDS",
}
EVERY = list(QUERIES)


def part(stream: str, number: int) -> pa.Table:
    random = np.random.default_rng([number, ord(stream)])
    start = number * 4
    seconds = random.integers(start - 3, start + 4, 60)  # Some are late.
    columns = [
        pa.array(random.integers(-3, 6, 60), mask=random.random(60) < 0.1),
        pa.array(random.integers(0, 5, 60).astype(np.int32), mask=random.random(60) < 0.1),
        pa.array(random.choice(["x", "y", "z"], 60)),
        pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC"), mask=random.random(60) < 0.05),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def fill(root: Path, numbers: range) -> None:
    for name in "ABC":
        (root / name).mkdir(exist_ok=True)
        for number in numbers:
            path = root / name / f"{number:03d}.parquet"
            pq.write_table(part(name, number), path)
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def frame(spark: SparkSession, root: Path, name: str, through_spark: bool) -> DataFrame:
    found = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(root / name))
    return found.where("true") if through_spark else found


def finish(
    spark: SparkSession, root: Path, place: str, through_spark: bool, names: list[str], lanes: int = 3
) -> ms.Job:
    job = ms.Job(spark, root / place, lanes=lanes)
    for name in "ABC":
        job.stream(name, frame(spark, root, name, through_spark), timestamp="ts", lateness="1 second")
    for name in names:
        job.query(name, QUERIES[name])
    job.start({"availableNow": True}).await_termination()
    return job


def read(root: Path, folder: str) -> Counter[Any]:
    files = (root / folder).rglob("*.parquet")
    return Counter(tuple(sorted(row.items(), key=str)) for f in files for row in pq.read_table(f).to_pylist())


@pytest.fixture
def steps_over_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps whose files tasks read by themselves, in every second step, or the driver."""
    found: list[int] = []
    original = driver.OverFiles

    def noted(before: Any, plan: Any, *others: Any) -> Any:
        found.append(plan.manifest.step)
        gather.ROWS_HERE = 0 if plan.manifest.step % 2 else 100_000
        return original(before, plan, *others)

    monkeypatch.setattr(driver, "OverFiles", noted)
    return found


def same(root: Path, one: str, other: str, names: list[str]) -> None:
    for name in names:
        assert read(root, f"{one}/results/{name}") == read(root, f"{other}/results/{name}") != Counter(), name
    for kind in ("late", "dead_letters"):
        for stream in "ABC":
            assert read(root, f"{one}/{kind}/{stream}") == read(root, f"{other}/{kind}/{stream}"), (kind, stream)
    told = [ms.open(root / place).report() for place in (one, other)]
    assert told[0].streams == told[1].streams
    assert told[0].counters.comparisons == told[1].counters.comparisons > 0


@pytest.mark.timeout(600)
def test_the_answers_are_those_of_rows_that_spark_brings(
    spark: SparkSession, tmp_path: Path, steps_over_files: list[int]
) -> None:
    """Over so many batches that Spark writes its log of files anew; then the one way goes on where the other ended."""
    fill(tmp_path, range(12))
    finish(spark, tmp_path, "through", True, EVERY)
    assert steps_over_files == []
    finish(spark, tmp_path, "by_files", False, EVERY)
    assert len(steps_over_files) >= 12
    same(tmp_path, "through", "by_files", EVERY)
    fill(tmp_path, range(12, 15))
    finish(spark, tmp_path, "through", False, EVERY)
    finish(spark, tmp_path, "by_files", True, EVERY)
    assert len(steps_over_files) >= 15
    same(tmp_path, "through", "by_files", EVERY)


@pytest.mark.timeout(300)
def test_what_spark_must_bring_it_brings(spark: SparkSession, tmp_path: Path, steps_over_files: list[int]) -> None:
    """A file of another type, or of another calendar: by Spark, and all the same."""
    fill(tmp_path, range(3))
    finish(spark, tmp_path, "first", False, ["plain"])
    before = len(steps_over_files)
    assert before >= 3
    narrow = part("A", 3).set_column(0, "k", part("A", 3)["k"].cast(pa.int32()))
    pq.write_table(narrow, tmp_path / "A" / "003.parquet")
    finish(spark, tmp_path, "first", False, ["plain"])
    assert len(steps_over_files) == before, "Spark reads what is of another type than declared"
    old = part("A", 4).replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    pq.write_table(old, tmp_path / "A" / "004.parquet")
    finish(spark, tmp_path, "first", False, ["plain"])
    assert len(steps_over_files) == before, "Spark sets the days of another calendar right"


def test_a_column_that_is_called_just_so_is_the_one(
    spark: SparkSession, tmp_path: Path, steps_over_files: list[int]
) -> None:
    """The tasks read it beside one that differs by case; where Spark must bring the file, it refuses to choose."""
    fill(tmp_path, range(2))
    finish(spark, tmp_path, "first", False, ["plain"])
    before = len(steps_over_files)
    pq.write_table(part("A", 5).append_column("K", part("A", 5)["k"]), tmp_path / "A" / "005.parquet")
    finish(spark, tmp_path, "first", False, ["plain"])
    assert len(steps_over_files) > before
    narrow = part("A", 6).set_column(0, "k", part("A", 6)["k"].cast(pa.int32()))
    pq.write_table(narrow.append_column("K", narrow["k"]), tmp_path / "A" / "006.parquet")
    with pytest.raises(ms.SparkError, match=r"(?i)duplicate"):
        finish(spark, tmp_path, "first", False, ["plain"])


def test_two_streams_of_one_frame_and_a_stream_of_two_sources_start_again(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path, range(2))
    (tmp_path / "none").mkdir()
    one = frame(spark, tmp_path, "A", False)
    empty = spark.readStream.schema(DDL).parquet(str(tmp_path / "none"))
    for _ in range(2):
        job = ms.Job(spark, tmp_path / "c", lanes=2)
        job.stream("A", one, timestamp="ts").stream("B", one, timestamp="ts")
        job.stream("C", frame(spark, tmp_path, "C", False).unionAll(empty), timestamp="ts", lateness="1 hour")
        job.query("plain", QUERIES["plain"])
        run = job.start({"availableNow": True})
        run.await_termination()
        fill(tmp_path, range(2, 4))
    counted = run.report().streams
    assert counted["A"].rows == counted["B"].rows > 100 and counted["C"].rows + counted["C"].rejected == 240


@pytest.mark.timeout(600)
def test_a_batch_that_tasks_cannot_read_after_all_is_brought_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are neither lost nor taken twice, though the union that ran until then brings none."""
    fill(tmp_path, range(4))
    finish(spark, tmp_path, "through", True, ["pairs"])
    original = PlainFiles.of_batch
    unreadable = lambda self, number, layout: None if number == 2 else original(self, number, layout)  # noqa: E731
    monkeypatch.setattr(PlainFiles, "of_batch", unreadable)
    finish(spark, tmp_path, "by_files", False, ["pairs"])
    same(tmp_path, "through", "by_files", ["pairs"])
