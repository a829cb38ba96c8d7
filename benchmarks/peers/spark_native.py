"""Spark's own stream-stream join, as its users write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from benchmarks.measurement import Measurement, answer_of_files
from benchmarks.peers import Task
from benchmarks.peers.session import ROCKSDB, TUNED_FILES, BatchWatch, session, source


def default_store(task: Task) -> Measurement:
    """Measure with the default state store (in memory, backed by files)."""
    return _run(task, "spark_default", {})


def tuned_files(task: Task) -> Measurement:
    """Measure with the default state store and the settings for small local files."""
    return _run(task, "spark_tuned", TUNED_FILES)


def rocksdb(task: Task) -> Measurement:
    """Measure with the RocksDB state store."""
    return _run(task, "spark_rocksdb", ROCKSDB)


def _run(task: Task, name: str, settings: Mapping[str, str]) -> Measurement:
    scenario = task.scenario
    spark = session(task.work, settings)
    for stream in scenario.streams:
        source(spark, task, stream).withWatermark("ts", "0 seconds").createOrReplaceTempView(stream)
    watch = BatchWatch()
    spark.streams.addListener(watch)
    sink = spark.sql(scenario.spark).writeStream.format("parquet").option("path", str(task.work / "answer"))
    query = sink.option("checkpointLocation", str(task.work / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    batches = watch.batches()
    progress = query.recentProgress[-1]
    notes: dict[str, Any] = {"state_rows": sum(operator.numRowsTotal for operator in progress.stateOperators)}
    if scenario.spark_as_written:
        notes["refused"] = _refusal(spark, task)
    spark.stop()
    return Measurement(name, scenario.name, batches, answer_of_files(task.work / "answer"), notes)


def _refusal(spark: SparkSession, task: Task) -> str:
    """What Spark says to the question as it was asked; an error if it accepts it after all."""
    try:
        sink = spark.sql(task.scenario.spark_as_written).writeStream.format("parquet")
        sink = sink.option("path", str(task.work / "refused")).trigger(availableNow=True)
        sink.option("checkpointLocation", str(task.work / "refused-checkpoint")).start().awaitTermination()
    except StreamingQueryException as error:
        return str(error).split(";\n")[0].rpartition("terminated with exception: ")[2]
    raise AssertionError(f"Spark accepts {task.scenario.name} as written: measure that instead of the rewrite")
