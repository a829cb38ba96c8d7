"""Streams, tables and queries of a job on Spark have names that differ in more than case."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import midstream as ms


def test_names_that_differ_only_by_case_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.format("rate").load()
    job = ms.Job(spark, tmp_path / "ckpt", lanes=1).stream("A", frame, timestamp="timestamp")
    job.table("t", [{"k": 1}]).query("b", "SELECT A.value FROM A")
    with pytest.raises(ms.QueryError, match="there is already a stream 'A'"):
        job.stream("a", frame, timestamp="timestamp")
    with pytest.raises(ms.QueryError, match="there is already a table 't'"):
        job.table("T", [{"k": 1}])
    with pytest.raises(ms.QueryError, match="there is already a query 'b'"):
        job.stream("B", frame, timestamp="timestamp")
