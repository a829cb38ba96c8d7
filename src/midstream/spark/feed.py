"""The micro-batches of a job: the streaming query over the union of its streams, and Spark's own log of it.

Once a micro-batch is over, Spark reports what it took to ask the sources, and what waits there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from midstream.expr.duration import parse_duration
from midstream.logical.query import Query
from midstream.model.errors import CheckpointError, MidstreamError
from midstream.model.window import SECOND
from midstream.pipeline.carried_log import SparkLog
from midstream.spark.job_streams import JobStream, needs
from midstream.spark.layout import Intake, intake
from midstream.spark.log_files import log_file_manager
from midstream.spark.session import QUERY_SETTINGS, settings
from midstream.spark.topic import lags

_ASKING = ("latestOffset", "getOffset", "getBatch")
_WAITING = "maxOffsetsBehindLatest", "avgOffsetsBehindLatest"


class BatchProgress(NamedTuple):
    """A micro-batch: its number, seconds by phase around what `foreachBatch` did, and the backlog by stream."""

    number: int
    phases: Mapping[str, float]
    backlog: Mapping[str, int]


def last_progress(query: StreamingQuery, streams: Sequence[str]) -> BatchProgress | None:
    """Read what Spark reports of the last trigger of a query over the union of `streams`. None where there was none.

    One call to the JVM: `lastProgress` of PySpark takes a hundred.
    """
    told: Any = query._jsq.lastProgress()
    return None if told is None else progress_of(json.loads(told.json()), streams)


def progress_of(value: Mapping[str, Any], streams: Sequence[str]) -> BatchProgress:
    """Read Spark's JSON of a trigger. Only sources that know what waits there, as Kafka does, report it.

    >>> took = {"latestOffset": 20, "getBatch": 10, "addBatch": 300, "triggerExecution": 400}
    >>> progress_of({"batchId": 7, "durationMs": took, "sources": []}, ["A"])
    BatchProgress(number=7, phases={'listing': 0.03, 'spark': 0.07}, backlog={})
    """
    took = value.get("durationMs", {})
    listing = sum(took.get(name, 0) for name in _ASKING)
    around = max(0, took.get("triggerExecution", 0) - took.get("addBatch", 0) - listing)
    backlog: dict[str, int] = {}
    sources = value.get("sources", [])
    names = streams if len(streams) == len(sources) else [""] * len(sources)
    for name, source in zip(names, sources, strict=True):
        metrics = source.get("metrics") or {}
        found = next((metrics[key] for key in _WAITING if key in metrics), None)
        if found is not None:
            backlog[name] = backlog.get(name, 0) + round(float(found))
        backlog |= {f"{name}{part}": count for part, count in (lags(source) or {}).items()}
    return BatchProgress(int(value["batchId"]), {"listing": listing / 1e3, "spark": around / 1e3}, backlog)


Fold = Callable[[DataFrame, int], None]
"""What Spark calls with each micro-batch and its number."""

_OPENING = "Initializing"
"""How Spark's word for a query begins whose sources are not open yet."""

_LOOK_AGAIN = 0.005
"""Seconds."""


@dataclass(frozen=True)
class Feed:
    """The streams of a job, in order, Spark's own log of it, and when a micro-batch begins. It bears its
    `name` on Spark's own pages and in its progress events; no two queries of a session may have one name.
    """

    session: SparkSession
    streams: tuple[JobStream, ...]
    log: SparkLog
    trigger: Mapping[str, Any]
    name: str = ""

    def of(self, names: Iterable[str]) -> Feed:
        """Select the streams of these names, in this order; raises CheckpointError where one is not declared."""
        known = {stream.schema.name: stream for stream in self.streams}
        names = tuple(names)
        if missing := [name for name in names if name not in known]:
            raise CheckpointError(
                f"stream {missing[0]!r} was added to the job, but this program does not declare the stream",
                place=self.log.folder,
                remedy=f"declare the stream: job.stream({missing[0]!r}, ...)",
            )
        return replace(self, streams=tuple(known[name] for name in names))

    def union(self, queries: Iterable[Query]) -> Intake:
        """Build the union of the streams with the columns that the queries read."""
        with settings(self.session, QUERY_SETTINGS):
            return intake(self.streams, needs(queries, [stream.schema.name for stream in self.streams]))

    @staticmethod
    def sources(frame: DataFrame) -> int:
        """Count the sources that Spark finds in a union: a stream may be made of several."""
        leaves: Any = frame._jdf.queryExecution().analyzed().collectLeaves()
        return sum(bool(leaves.apply(at).isStreaming()) for at in range(leaves.size()))

    def start(self, frame: DataFrame, fold: Fold) -> StreamingQuery:
        """Start a query that calls `fold` with each micro-batch of a union.

        Returns when Spark has opened the sources, because file sources take their settings from the session then.
        """
        writer = frame.writeStream.foreachBatch(fold).option("checkpointLocation", self.log.folder)
        if self.name:
            writer = writer.queryName(self.name)
        if self.trigger:
            writer = writer.trigger(**self.trigger)
        manager = {"spark.sql.streaming.checkpointFileManagerClass": log_file_manager(self.session)}
        with settings(self.session, {**QUERY_SETTINGS, **manager}):
            query = writer.start()
            while query.isActive and query.status["message"].startswith(_OPENING):
                time.sleep(_LOOK_AGAIN)
        return query

    @property
    def interval(self) -> float | None:
        """The seconds between two micro-batches; None where the next one begins as soon as there are rows."""
        try:
            found = parse_duration(self.trigger.get("processingTime", 0), what="processingTime")
        except MidstreamError:  # Spark reads more than we do, such as months.
            return None
        return found / SECOND or None

    @property
    def workers(self) -> int:
        """How many tasks Spark runs at the same time."""
        return int(self.session.sparkContext.defaultParallelism)

    @property
    def jvm_process(self) -> int:
        """The process that Spark's driver runs in."""
        jvm: Any = self.session._jvm
        return int(jvm.java.lang.ProcessHandle.current().pid())
