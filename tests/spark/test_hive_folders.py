"""Partitions on Spark give the values that they give in the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.cli.spark_job import job_of
from midstream.sql.job_file import read_job_file
from tests.embedded.test_hive_folders import EXPECTED, results, write


@pytest.mark.parametrize("format", ["parquet", "json"])
def test_partitions_are_read_with_their_columns(spark: SparkSession, tmp_path: Path, format: str) -> None:
    running = job_of(spark, read_job_file(write(tmp_path, format=format))).start({"availableNow": True})
    running.await_termination()
    assert results(tmp_path) == EXPECTED
