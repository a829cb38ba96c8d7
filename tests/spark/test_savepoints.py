"""Savepoints of a job on Spark: it goes back to one that only the savepoint keeps, and a fork of it reads on."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.pipeline.doctor import examine
from midstream.pipeline.spark_log import offsets_of
from tests.spark.test_time_lines import SQL, do, each, results


def test_a_job_goes_back_to_a_savepoint_and_another_begins_there(spark: SparkSession, tmp_path: Path) -> None:
    ckpt, forked = tmp_path / "checkpoint", tmp_path / "forked"
    do(spark, tmp_path, 0)
    opened = ms.open(ckpt)
    step = opened.savepoint("early")
    held = opened.state("rows of A")
    assert held.spark(spark).count() == held.arrow().num_rows > 0
    do(spark, tmp_path, 1)
    do(spark, tmp_path, 2)
    for epoch in (ckpt / "spark").glob("epoch=*"):  # Spark forgets offsets in time, as it would here.
        (epoch / "offsets" / str(step)).unlink(missing_ok=True)
        (epoch / "commits" / str(step)).unlink(missing_ok=True)
    assert step in offsets_of(str(ckpt / "spark")), "the savepoint has them"
    opened.fork("early", forked)
    opened.rewind("early")
    assert results(tmp_path / "out") == each(range(1))
    do(spark, tmp_path)
    assert results(tmp_path / "out") == each(range(3))
    assert examine(ckpt).is_well
    shutil.rmtree(ckpt)
    job = ms.Job(spark, forked, lanes=2, durable=False)
    for stream in "AB":
        reader = spark.readStream.schema("k BIGINT, ts TIMESTAMP")
        job.stream(stream, reader.parquet(str(tmp_path / "in" / stream)), "ts")
    job.query("q", SQL)
    assert job.start(trigger={"availableNow": True}).await_termination(120)
    assert results(forked / "results" / "q") == each(range(1, 3)), "it does what the savepoint had not"
    assert results(tmp_path / "out") == each(range(3))
    assert examine(forked).is_well
