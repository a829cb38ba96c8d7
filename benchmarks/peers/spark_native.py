"""Spark's own stream-stream join, as its users write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

from benchmarks.measurement import Measurement, answer_of_files
from benchmarks.peers import Task
from benchmarks.peers.session import ROCKSDB, TUNED_FILES, batches_of, session, source


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
    spark = session(task.work, settings)
    try:
        return run_in(spark, task, name)
    finally:
        spark.stop()


def run_in(spark: SparkSession, task: Task, name: str) -> Measurement:
    """Run the scenario in a session that others may use before and after."""
    scenario = task.scenario
    declare(spark, task)
    sink = spark.sql(scenario.spark).writeStream.format("parquet").option("path", str(task.work / "answer"))
    query = sink.option("checkpointLocation", str(task.work / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    batches = batches_of(query)
    progress = query.recentProgress[-1]
    notes: dict[str, Any] = {"state_rows": sum(operator.numRowsTotal for operator in progress.stateOperators)}
    if scenario.spark_as_written:
        notes["refused"] = refusal(spark, task)
    answer = answer_of_files(task.work / "answer", by_value=scenario.by_value)
    return Measurement(name, scenario.name, batches[: scenario.batches], answer, notes)


def declare(spark: SparkSession, task: Task) -> None:
    """Give the session the streams, and the static tables, by their names."""
    for stream in task.scenario.streams:
        source(spark, task, stream).withWatermark("ts", "0 seconds").createOrReplaceTempView(stream)
    for name, static in task.scenario.tables.items():
        spark.createDataFrame(static).createOrReplaceTempView(name)


def refusal(spark: SparkSession, task: Task) -> str:
    """What Spark says to the question as it was asked; an error if it accepts it after all."""
    try:
        sink = spark.sql(task.scenario.spark_as_written).writeStream.format("parquet")
        sink = sink.option("path", str(task.work / "refused")).trigger(availableNow=True)
        sink.option("checkpointLocation", str(task.work / "refused-checkpoint")).start().awaitTermination()
    except (AnalysisException, StreamingQueryException) as error:
        said = str(error).split(";\n")[0].rpartition("terminated with exception: ")[2]
        return said if said.startswith("[") else f"[{error.getCondition()}] {said}"
    raise AssertionError(f"Spark accepts {task.scenario.name} as written: measure that instead")
