"""What both sides on Spark share: the session, the sources, and what their batches took."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.measurement import Batch
from benchmarks.peers import Task

if TYPE_CHECKING:  # `former_lane` runs by a midstream that has no such thing.
    from midstream.model.step_time import StepTime

ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Spark's RocksDB state store with the faster of its two checkpoint formats."""


TUNED_FILES = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings that spare Spark the processes and checksum files it otherwise makes for every small local file.

A job of midstream gives its own query the last of them; a user may give his own join all of them, so it is measured
with them too. They matter where batches are small.
"""


def session(work: Path, extra: Mapping[str, str] | None = None) -> SparkSession:
    """A session on two cores; every setting but `extra` is the same for all peers."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "8g",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(work / "spark"),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
        # Tasks in Python wait 40 ms otherwise (docs/howto/size.md); Spark's own joins run none.
        "spark.python.unix.domain.socket.enabled": "true",
        # Java's collector would else run in almost every batch of any peer (docs/howto/size.md).
        "spark.broadcast.blockSize": "512k",
        **(extra or {}),
    }
    builder: SparkSession.Builder = SparkSession.builder.master("local[2]").appName("midstream-benchmarks")
    spark = builder.config(map=dict(settings)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def source(spark: SparkSession, task: Task, stream: str) -> DataFrame:
    """A stream of the scenario: one file, that is one batch, at a time."""
    reader = spark.readStream.schema(task.scenario.spark_schema(stream)).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(task.source / stream))


def batches_of(query: StreamingQuery, rows: Mapping[int, int] | None = None) -> tuple[Batch, ...]:
    """Rows and seconds of every batch that brought rows, of a query that has ended, whoever ran it.

    Seconds are Spark's `triggerExecution`: from the trigger to the commit of the batch. `rows` says how many rows each
    had, where Spark has not seen them. Nobody listens while the query runs: of a listener in Python Spark reads each
    report by some hundred calls, which take a fifth of a second of processor time while the next batch runs.
    """
    found = {
        progress.batchId: Batch(
            progress.numInputRows if rows is None else rows.get(progress.batchId, 0),
            progress.durationMs["triggerExecution"] / 1000,
        )
        for progress in query.recentProgress
        if brought_rows(progress)
    }
    return tuple(batch for _, batch in sorted(found.items()))


def brought_rows(progress: Any) -> bool:
    """Whether a batch brought rows, or midstream did a step for it."""
    ours = (progress.name or "").startswith("midstream") and "addBatch" in progress.durationMs
    return bool(progress.numInputRows) or ours


def rows_by_step(times: Iterable[StepTime]) -> dict[int, int]:
    """The rows of each step of a job, the late and rejected ones too."""
    return {time.step: sum(time.rows.values()) + time.late + time.rejected for time in times}
