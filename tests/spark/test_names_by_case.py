"""Streams and tables of a checkpoint whose names differ only by case, as they could before such were refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.step.commands import add_stream


@pytest.mark.timeout(300)
def test_the_job_goes_on_and_new_ones_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def arrive(key: int) -> None:
        for name in ("A", "small_a"):
            rows = f"SELECT {key}L AS k, timestamp_seconds({key}) AS ts"
            spark.sql(rows).write.mode("append").parquet(str(tmp_path / name))

    def declared(*more: str) -> ms.Job:
        job = ms.Job(spark, tmp_path / "ckpt", lanes=1)
        for name, folder in {"A": "A", "a": "small_a", **dict.fromkeys(more, "A")}.items():
            frame = spark.readStream.schema("k BIGINT, ts TIMESTAMP").parquet(str(tmp_path / folder))
            job.stream(name, frame, timestamp="ts")
        job.table("t", [{"k": 1}]).table("T", [{"k": 2}])
        return job.query("q", "SELECT A.k FROM A").query("Q", "SELECT a.k FROM a")

    def as_before(run: Callable[[], object]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(add_stream, "find_name", lambda name, names: [one for one in names if one == name])
            run()

    def run() -> None:
        declared().start({"availableNow": True}).await_termination()

    arrive(1)
    with pytest.raises(ms.QueryError, match="a stream is called 'A'"):
        declared()
    as_before(run)
    arrive(2)
    run()
    assert {name: one.counters.rows_out for name, one in ms.open(tmp_path / "ckpt").report().queries.items()} == {
        "q": 2,
        "Q": 2,
    }
    job = declared()
    with pytest.raises(ms.QueryError, match="a table is called 't'"):
        job.table("t", [{"k": 1}])
    job.query("b", "SELECT A.k FROM A")
    with pytest.raises(ms.QueryError, match="a query is called 'b'"):
        job.stream("B", spark.readStream.format("rate").load(), timestamp="timestamp")
