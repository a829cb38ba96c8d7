"""The stream generator on Spark: the rows of the embedded engine, step by step, also after a kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.cli.main import main
from midstream.spark.generator_frames import generated_stream
from tests.embedded.test_generator_source import OPTIONS, SCHEMA, all_of, answers, job, source
from tests.spark.drive import finish

SHORT = {**OPTIONS, "until": "3.5 seconds"}


def test_both_hosts_have_the_same_rows_in_each_step(spark: SparkSession, tmp_path: Path) -> None:
    """Also where the job is ended and started again in between."""
    for until in ("2 seconds", "3.5 seconds"):
        options = {**SHORT, "until": until}
        job = ms.Job(spark, tmp_path / "ckpt", 1).stream("A", generated_stream(spark, "A", "ts", SCHEMA, options), "ts")
        finish(job.query("all", "SELECT k, name, ts FROM A", sink=ms.sinks.files(tmp_path / "all")))
    (tmp_path / "pairs").mkdir()
    assert answers(tmp_path)["all"] == all_of(source(**{"until": "3.5 seconds"}))


def test_what_cannot_be_drawn_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ms.InputError, match=r"rate .* below zero"):
        generated_stream(spark, "A", "ts", SCHEMA, {**OPTIONS, "rate": -1})


@pytest.mark.timeout(600)
def test_a_job_file_is_killed_at_two_points_and_goes_on_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded, killed = tmp_path / "embedded", tmp_path / "killed"
    for folder in (embedded, killed):
        folder.mkdir()
        (folder / "job.toml").write_text(job())
    monkeypatch.chdir(embedded)
    assert main(["run", "job.toml", "--engine", "embedded", "--once", "--json"]) == 0
    command = [sys.executable, "-m", "midstream", "run", "job.toml", "--once", "--json"]
    for at in ("before_manifest:1", "after_manifest:3", ""):
        environment = {**os.environ, "MIDSTREAM_KILL_AT": at}
        done = subprocess.run(command, cwd=killed, env=environment, capture_output=True, timeout=180, check=False)
        assert (done.returncode == 0) == (not at), done.stderr[-2000:]
    found, expected = answers(killed), answers(embedded)
    for name, steps in expected.items():
        assert [in_order(one) for one in found[name]] == [in_order(one) for one in steps], name


def in_order(table: pa.Table) -> pa.Table:
    return table.combine_chunks().sort_by([(name, "ascending") for name in table.column_names])
