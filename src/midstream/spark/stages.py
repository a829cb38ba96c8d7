"""How the stages of a step's job run: over Spark, one shuffle after each, or here where there are few rows."""

from __future__ import annotations

import json
import os
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from midstream.spark.node_task import NodeTask
from midstream.spark.parcel import END, SCHEMA_SQL, in_order, unpacked_report
from midstream.spark.spread_part import stages_of
from midstream.spark.task import StepTask

CORES = os.cpu_count() or 1

Reports = list[dict[str, Any]]
"""What each task of each stage reports."""


def reports_over_rows(exchanged: DataFrame, task: StepTask) -> Reports:
    """Run a job over the rows that the exchange brings."""
    if not task.spreads:
        return [json.loads(row[0]) for row in _collected(exchanged.mapInArrow(task, "result string"))]
    frame = exchanged.mapInArrow(task, SCHEMA_SQL)
    for stage in stages_of(task.spreads):
        frame = frame.repartitionById(task.partitions, F.col("to")).mapInArrow(NodeTask(task, stage), SCHEMA_SQL)
    rows = _collected(frame.where(F.col("stage") == END).select("body"))
    return [unpacked_report(row[0]) for row in rows]


def reports_without_rows(session: SparkSession, task: StepTask) -> Reports:
    """Run a job of tasks to which no rows come: one for Spark's scheduler alone, which no plan is made for."""
    partitions: RDD[Any] = session.sparkContext.parallelize([], task.partitions)
    if not task.spreads:
        return [json.loads(told) for told in partitions.mapPartitions(task.without_rows).collect()]
    parcels = partitions.mapPartitions(task.addressed)
    for stage in stages_of(task.spreads):
        parcels = parcels.partitionBy(task.partitions, _as_it_is).mapPartitions(NodeTask(task, stage).addressed)
    try:
        return [unpacked_report(parcel.body) for _, parcel in parcels.collect() if parcel.stage == END]
    finally:
        if task.parcel_files is not None:
            task.parcel_files.remove()


def reports_here(task: StepTask) -> Reports:
    """Do the work of a task that has the only partition, in this process; its cores share the nodes."""
    assert task.partitions == 1
    report, parcels = task.report(0, (), again=False)
    reports = [report]
    for stage in stages_of(task.spreads):
        parcels = NodeTask(task, stage).parcels(0, in_order(parcels), again=False, cores=CORES)
        reports += [unpacked_report(parcel.body) for parcel in parcels if parcel.stage == END]
        parcels = [parcel for parcel in parcels if parcel.stage != END]
    return reports


def _as_it_is(to: int) -> int:
    return to


def _collected(frame: DataFrame) -> list[Row]:
    # A step has one such job, and one more for each level above.
    return frame.collect()
