"""The NEXMark benchmark's texts for Spark: they are analysed, and the answers of some are DuckDB's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark.questions import QUESTIONS
from benchmarks.nexmark.rows import Batches
from benchmarks.nexmark.spark_texts import AS_WRITTEN, SPARK
from benchmarks.peers import Task, duckdb_offline, midstream_spark, spark_native

TINY = Batches(events=3_000, per_second=100, count=2)

pytestmark = pytest.mark.timeout(1200)


def task(name: str, root: Path, work: str) -> Task:
    (root / work).mkdir(exist_ok=True)
    return Task(replace(QUESTIONS[name], input=TINY), root / "input", root / work)


def test_every_text_is_analysed_or_refused(spark: SparkSession, tmp_path: Path) -> None:
    TINY.write(tmp_path / "input")
    for name in QUESTIONS:
        asked = task(name, tmp_path, "work")
        spark_native.declare(spark, asked)
        if name in SPARK:
            assert spark.sql(SPARK[name]).isStreaming, name
        if name in AS_WRITTEN:
            assert spark_native.refusal(spark, asked).startswith("["), name


def test_a_text_that_spark_takes_is_not_called_refused(spark: SparkSession, tmp_path: Path) -> None:
    TINY.write(tmp_path / "input")
    asked = replace(QUESTIONS["q0"], spark_as_written=SPARK["q0"], input=TINY)
    with pytest.raises(AssertionError, match="Spark accepts q0"):
        spark_native.declare(spark, Task(asked, tmp_path / "input", tmp_path))
        spark_native.refusal(spark, Task(asked, tmp_path / "input", tmp_path))


@pytest.mark.parametrize("name", ["q5", "q11", "q15", "q23"])
def test_answers_are_duckdb_s(name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_offline, "keep_to_one_core", lambda: None)
    TINY.write(tmp_path / "input")
    expected = duckdb_offline.one_thread(task(name, tmp_path, "duckdb")).answer
    theirs = spark_native.run_in(spark, task(name, tmp_path, "theirs"), "spark_default")
    own = task(name, tmp_path, "own")
    ours = midstream_spark.run_in(spark, own, "midstream_spark", str(own.work / "checkpoint"))
    assert expected.rows > 0 and ours.answer == theirs.answer == expected
    assert len(ours.batches) == len(theirs.batches) == TINY.count
