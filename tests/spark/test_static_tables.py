"""Static tables on Spark: looked up in the tasks, refreshed while the job runs, over restarts and kills."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.spark.running_job import Run

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("ts", pa.timestamp("us", "UTC"))])
DDL = "k BIGINT, v DOUBLE, ts TIMESTAMP"
QUERIES = {
    "direct": "SELECT A.k, r.w, r._version AS version FROM A LEFT JOIN rates r ON r.k = A.k",
    "joined": "SELECT A.k, r.w FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS], rates r WHERE A.k = B.k AND r.k = B.k",
    "counts": "SELECT r.w, COUNT(*) AS n FROM A JOIN rates r ON r.k = A.k "
    "GROUP BY r.w, TUMBLE(ts, INTERVAL 10 SECONDS)",
}


def rates(*records: tuple[int, int]) -> pa.Table:
    keys, weights = zip(*records, strict=True)
    return pa.table({"k": pa.array(keys, pa.int64()), "w": pa.array(weights, pa.int64())})


def part(number: int) -> pa.Table:
    times = pa.array([number * 10_000_000 + n for n in range(40)], pa.timestamp("us", "UTC"))
    return pa.table({"k": [n % 4 for n in range(40)], "v": [float(n) for n in range(40)], "ts": times}, schema=SCHEMA)


def feed(root: Path, number: int) -> None:
    for name in "AB":
        (root / name).mkdir(exist_ok=True)
        pq.write_table(part(number), root / name / f".{number}.parquet")
        (root / name / f".{number}.parquet").rename(root / name / f"{number}.parquet")


def start(spark: SparkSession, root: Path, table: Any) -> Run:
    job = ms.Job(spark, root / "checkpoint", lanes=2)
    for name in "AB":
        (root / name).mkdir(exist_ok=True)
        frame = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(root / name))
        job.stream(name, frame, timestamp="ts")
    job.table("rates", table)
    for name, sql in QUERIES.items():
        job.query(name, sql)
    return job.start({"processingTime": "0 seconds"})


def until(run: Run, rows: int) -> None:
    deadline = time.monotonic() + 90
    while run.report().streams["A"].rows < rows or run.report().streams["B"].rows < rows:
        assert time.monotonic() < deadline
        run.await_termination(0.05)


def found(root: Path, query: str) -> Counter[Any]:
    files = (root / "checkpoint" / "results" / query).rglob("*.parquet")
    return Counter(tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist())


def expected(tables: list[pa.Table]) -> dict[str, Counter[Any]]:
    """What the embedded engine answers of the same steps, each with its table."""
    engine = ms.Engine(lanes=2)
    for name in "AB":
        engine.create_stream(name, SCHEMA, timestamp="ts")
    answers: dict[str, Counter[Any]] = {name: Counter() for name in QUERIES}
    for number, table in enumerate(tables):
        engine.table("rates", table)
        if not number:
            for name, sql in QUERIES.items():
                engine.add_query(name, sql)
        for name, rows in engine.push({name: part(number) for name in "AB"}).items():
            answers[name] += Counter(tuple(row.values()) for row in rows.to_pylist())
    return answers


@pytest.mark.timeout(300)
def test_a_table_is_refreshed_while_the_job_runs_and_stays_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    first, second, third = rates((1, 10), (2, 20)), rates((1, 11), (3, 30), (3, 31)), rates((2, 22))
    feed(tmp_path, 0)
    run = start(spark, tmp_path, spark.createDataFrame(first.to_pandas()))
    until(run, 40)
    with pytest.raises(ms.QueryError, match="has new columns"):
        run.table("rates", [{"k": 1}])
    with pytest.raises(ms.InputError, match="a streaming DataFrame"):
        run.table("rates", spark.readStream.format("rate").load())
    assert run.table("rates", second) == 1
    feed(tmp_path, 1)
    until(run, 80)
    run.stop()
    feed(tmp_path, 2)
    again = start(spark, tmp_path, first)
    until(again, 120)
    assert again.table("rates", third) == 2
    feed(tmp_path, 3)
    until(again, 160)
    again.stop()
    answers = expected([first, second, second, third])
    for name in QUERIES:
        assert found(tmp_path, name) == answers[name] and answers[name], name
