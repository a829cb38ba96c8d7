"""A job on Spark with a query whose sink is gone: once the query is dropped, the job starts without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from tests.unit.cli.test_process import midstream


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["by_command", "declared_no_more"])
def test_the_query_is_dropped(way: str, spark: SparkSession, tmp_path: Path) -> None:
    def run(*queries: str) -> None:
        job = ms.Job(spark, tmp_path / "ckpt", lanes=1)
        frame = spark.readStream.schema("k BIGINT, ts TIMESTAMP").parquet(str(tmp_path / "in"))
        job.stream("A", frame, timestamp="ts")
        for name in queries:
            job.query(name, "SELECT k FROM A", sink=ms.sinks.files(str(tmp_path / name)))
        job.start({"availableNow": True}).await_termination()

    def arrives(key: int) -> None:
        spark.sql(f"SELECT {key}L AS k, timestamp_seconds({key}) AS ts").write.mode("append").parquet(
            str(tmp_path / "in")
        )

    def kept() -> list[int]:
        return sorted(
            k for file in (tmp_path / "kept").rglob("*.parquet") for k in pq.read_table(file)["k"].to_pylist()
        )

    arrives(1)
    run("gone", "kept")
    shutil.rmtree(tmp_path / "gone")
    (tmp_path / "gone").write_text("something else")
    arrives(2)
    with pytest.raises(ms.MidstreamError, match="gone"):
        run("gone", "kept")
    if way == "by_command":
        assert midstream("drop", str(tmp_path / "ckpt"), "gone").returncode == 0
        run("gone", "kept")
        arrives(3)
        run("gone", "kept")  # What a command has dropped stays dropped.
        assert kept() == [1, 2, 3]
    else:
        run("kept")
        assert kept() == [1, 2]
    assert list(ms.open(tmp_path / "ckpt").manifest().queries) == ["kept"]
