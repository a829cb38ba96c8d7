"""The micro-batches of a job: the streaming query over the union of its streams, and Spark's own log of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from midstream.language.query import Query
from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.spark.layout import Intake, intake
from midstream.spark.outputs import Outputs
from midstream.spark.session import QUERY_SETTINGS, settings
from midstream.spark.sources import JobStream, needs
from midstream.state.store.disk import cannot_write, names_in

Fold = Callable[[DataFrame, int], None]
"""What Spark calls with each micro-batch and its number."""


@dataclass(frozen=True)
class Feed:
    """The streams of a job, in order, the folder of Spark's own checkpoint, and when a micro-batch begins."""

    session: SparkSession
    streams: tuple[JobStream, ...]
    checkpoint: str
    trigger: Mapping[str, Any]

    def union(self, queries: Iterable[Query]) -> Intake:
        """The union of the streams with the columns that the queries read."""
        with settings(self.session, QUERY_SETTINGS):
            return intake(self.streams, needs(queries, [stream.schema.name for stream in self.streams]))

    def start(self, frame: DataFrame, fold: Fold) -> StreamingQuery:
        """Have `fold` called with each micro-batch of a union."""
        writer = frame.writeStream.foreachBatch(fold).option("checkpointLocation", self.checkpoint)
        if self.trigger:
            writer = writer.trigger(**self.trigger)
        with settings(self.session, QUERY_SETTINGS):
            return writer.start()

    @property
    def jvm_process(self) -> int:
        """The process that Spark's driver runs in."""
        jvm: Any = self.session._jvm
        return int(jvm.java.lang.ProcessHandle.current().pid())


def align(folder: str, manifest: Manifest, outputs: Outputs) -> None:
    """Have Spark do again every batch after the manifest's step, and take back what sinks got of them.

    Commonly there is none: a manifest is published before Spark commits its batch. After `ManifestLog.rewind` there
    are.
    """
    last = manifest.step
    commits, offsets = _batches(f"{folder}/commits"), _batches(f"{folder}/offsets")
    if last >= 0 and last not in offsets:
        raise CheckpointError(
            f"Spark does not know where step {last}, the newest, ended",
            place=folder,
            remedy="restore the folder, go back to a newer step, or begin with another checkpoint",
        )
    if max(commits, default=-1) <= last:
        return
    outputs.forget_after(manifest)
    for kind, batches in (("commits", commits), ("offsets", offsets)):
        for batch in sorted(batches, reverse=True):
            if batch > last:
                _remove(f"{folder}/{kind}", batch)


def _batches(folder: str) -> set[int]:
    return {int(name) for name in names_in(folder) if name.isdigit()}


def _remove(folder: str, batch: int) -> None:
    try:
        for name in (f"{batch}", f".{batch}.crc"):
            if os.path.exists(f"{folder}/{name}"):
                os.unlink(f"{folder}/{name}")
    except OSError as error:
        raise cannot_write(error, folder) from error
