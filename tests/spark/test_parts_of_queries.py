"""Parts of queries on Spark: no results of their own, as in the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.cli.spark_job import job_of
from midstream.sql.job_file import read_job_file
from tests.embedded.test_parts_of_queries import check_parts, write


def test_a_part_has_no_results_and_is_folded(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (tmp_path / "job.toml").read_text()
    for name in ("A", "B", "out/o", "out/plain"):
        text = text.replace(f'path = "{name}"', f'path = "{tmp_path}/{name}"')
    (tmp_path / "job.toml").write_text(text.replace('checkpoint = "ckpt"', f'checkpoint = "{tmp_path}/ckpt"'))
    running = job_of(spark, read_job_file(tmp_path / "job.toml")).start({"availableNow": True})
    running.await_termination()
    check_parts(tmp_path, "")
