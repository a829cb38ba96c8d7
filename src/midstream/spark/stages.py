"""The Spark jobs of a step: RDDs of Arrow batches and parcels, which no plan of Spark's SQL is made for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark import RDD, SparkContext
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame

from midstream.spark.blocks import Split
from midstream.spark.node_task import NodeTask
from midstream.spark.parcel import END, Parcel, unpacked_report
from midstream.spark.spread_part import stages_of
from midstream.spark.task import StepTask

Reports = list[dict[str, Any]]
"""What each task of each stage reports."""

Blocks = RDD[tuple[int, Parcel]]
"""Parcels by the partitions that open them."""


def blocks_of(frame: DataFrame, split: Split, tasks: int | None) -> Blocks:
    """Send rows to their lanes, from the partitions of their source, or from so many `tasks` where these are fewer.

    Where one task reads for one partition of lanes, it does their work too.
    """
    frames: Any = frame
    serializer: Any = NoOpSerializer
    batches: RDD[bytes] = RDD(frames._jdf.toArrowBatchRdd().toJavaRDD(), frame.sparkSession.sparkContext, serializer())
    if tasks is not None:
        batches = batches.coalesce(tasks)
    if tasks == split.partitions == 1 == batches.getNumPartitions():
        return batches.mapPartitions(replace(split, files=None))
    return batches.mapPartitions(split).partitionBy(split.partitions, _as_it_is)


def no_blocks(context: SparkContext, partitions: int) -> Blocks:
    """Return what comes to the lanes of a level above, which read what was kept."""
    return context.parallelize([], partitions)


def reports(blocks: Blocks, task: StepTask) -> Reports:
    """Run the job of the lanes, and of the nodes that queries are spread over."""
    parcels = blocks.mapPartitions(task.addressed)
    for stage in stages_of(task.spreads):
        parcels = parcels.partitionBy(task.partitions, _as_it_is).mapPartitions(NodeTask(task, stage).addressed)
    # What `collect` runs in the JVM is a function of a large class, which Spark reads through for every job.
    # Where no partitions are named, PySpark pickles all tasks once more to count them.
    found = parcels.context.runJob(parcels, list, list(range(task.partitions)))
    return [unpacked_report(one.body) for _, one in found if one.stage == END]


def _as_it_is(to: int) -> int:
    return to
