"""The Spark jobs of a step: RDDs of Arrow batches and parcels, which no plan of Spark's SQL is made for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyspark import RDD, SparkContext
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame

from midstream.runtime.watermark import Seen
from midstream.spark.blocks import Split, seen_of
from midstream.spark.node_task import NodeTask
from midstream.spark.parcel import END, Parcel, unpacked_report
from midstream.spark.spread_part import stages_of
from midstream.spark.task import StepTask

Reports = list[dict[str, Any]]
"""What each task of each stage reports."""

Blocks = RDD[tuple[int, Parcel]]
"""Parcels by the partitions that open them."""


def blocks_of(frame: DataFrame, split: Split, tasks: int | None, *, twice: bool) -> Blocks:
    """Send rows to their lanes, from the partitions of their source, or from so many `tasks` where these are fewer.

    Where one task reads for one partition of lanes, it does their work too, unless the blocks are asked for `twice`.
    """
    frames: Any = frame
    serializer: Any = NoOpSerializer
    batches: RDD[bytes] = RDD(frames._jdf.toArrowBatchRdd().toJavaRDD(), frame.sparkSession.sparkContext, serializer())
    if tasks is not None:
        batches = batches.coalesce(tasks)
    if tasks == split.partitions == batches.getNumPartitions() == 1 and not twice:
        return batches.mapPartitions(replace(split, files=None))
    return batches.mapPartitions(split).partitionBy(split.partitions, _as_it_is)


def no_blocks(context: SparkContext, partitions: int) -> Blocks:
    """Return what comes to the lanes of a level above, which read what was kept."""
    return context.parallelize([], partitions)


def seen_in(blocks: Blocks) -> list[Mapping[str, Seen]]:
    """Run the tasks of the source's partitions, and read what they have seen; the job of the lanes spares them then."""
    return list(blocks.context.runJob(blocks, _seen, [0]))


def reports(blocks: Blocks, task: StepTask) -> Reports:
    """Run the job of the lanes, and of the nodes that queries are spread over."""
    parcels = blocks.mapPartitions(task.addressed)
    for stage in stages_of(task.spreads):
        parcels = parcels.partitionBy(task.partitions, _as_it_is).mapPartitions(NodeTask(task, stage).addressed)
    # What `collect` runs in the JVM is a function of a large class, which Spark reads through for every job.
    return [unpacked_report(one.body) for _, one in parcels.context.runJob(parcels, list) if one.stage == END]


def _seen(brought: Iterable[tuple[int, Parcel]]) -> list[dict[str, Seen]]:
    return seen_of([parcel for _, parcel in brought])


def _as_it_is(to: int) -> int:
    return to
