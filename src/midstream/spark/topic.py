"""A topic of Kafka as a source of Spark's structured streaming, written in Python: it brings ranges of offsets.

The driver chooses the ranges of a micro-batch, which Spark notes in its log before the step begins. A task reads each
through the client of the embedded engine's source and decodes it alike, so one job file gives the same rows and dead
letters on both hosts. An offset of the source has for each partition the range that the newest step with messages of it
has read; it says also where the first step begins, so a step that is done again reads the same.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from midstream.embedded.kafka_source import KafkaSource, Range
from midstream.model.errors import CheckpointError, ReadError
from midstream.spark.session import ship
from midstream.spark.whole_files import WholeFiles

FORMAT = "midstream_topic_"
"""How the formats begin that streams of topics get, each its own."""

Offset = dict[str, str]
Asked = TypeVar("Asked")

_PAUSE = 1.0
"""Seconds between two questions to a broker that does not answer."""

log = logging.getLogger(__name__)


class TopicDataSource(DataSource):
    """The ranges of a `topic`, each a row with its name."""

    topic: ClassVar[KafkaSource]
    patience: ClassVar[float]

    def streamReader(self, schema: StructType) -> TopicReader:
        """Make a reader for a streaming query; each has its own."""
        return TopicReader(self.topic, self.patience)

    def schema(self) -> str:
        """Return the one column."""
        return "path STRING"


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Chooses ranges, in a process of the driver."""

    def __init__(self, topic: KafkaSource, patience: float) -> None:
        self._topic, self._patience = topic, patience
        self._ends: dict[int, int] | None = None

    def initialOffset(self) -> Offset:
        """Return the offset before the first step, which says nothing yet."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Limit a batch to as many messages as the options say."""
        return ReadMaxRows(self._topic.rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix where to end: what is there now is all there will be."""
        self._ends = self._asked(self._topic.ends)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Choose the ranges of the next step; `start` itself if nothing waits."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        ranges = self._asked(lambda: self._topic.plan(start.values(), most, self._ends))
        return {**start, **{str(one.partition): str(one) for one in ranges}}

    def reportLatestOffset(self) -> Offset | None:
        """Return where each partition ends, for the progress of the query."""
        return {str(one): str(Range(self._topic.topic, one, 0, end)) for one, end in self._topic.highs.items()}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Give each range a task."""
        found = []
        for partition, text in end.items():
            one = Range.parse(text)
            first = Range.parse(start[partition]).end if partition in start else one.first
            if first < one.end:
                found.append(InputPartition(str(one._replace(first=first))))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the name of the range, in the task that is to read it."""
        yield pa.record_batch({"path": [partition.value]})

    def _asked(self, ask: Callable[[], Asked]) -> Asked:
        """Ask the broker, again while it does not answer, for as long as the job has patience."""
        began = time.monotonic()
        while True:
            try:
                return ask()
            except ReadError as error:
                if time.monotonic() - began >= self._patience:
                    raise
                log.warning("%s", error)
            time.sleep(_PAUSE)

    def stop(self) -> None:
        """Close the connections."""
        self._topic.close()


def topic_stream(session: SparkSession, topic: KafkaSource, patience: int) -> WholeFiles:
    """Read a topic as a stream whose ranges are read by tasks.

    While the broker does not answer it is asked again, for as long as `patience` says, in microseconds.
    """
    ship(session.sparkContext)
    format = FORMAT + secrets.token_hex(8)
    # The class holds the declaration, and so the login, which options would show in Spark's plans and logs.
    own: dict[str, Any] = {
        "topic": topic,
        "patience": patience / 1e6,
        "name": classmethod(lambda cls: format),
    }
    session.dataSource.register(type("TopicOfStream", (TopicDataSource,), dict(own)))
    return WholeFiles(session.readStream.format(format).load(), topic)


def lags(progress: Mapping[str, Any]) -> dict[str, int] | None:
    """Count what waits in each partition by what Spark reports of a source; None if it is not a topic of ours.

    >>> lags({"endOffset": {"0": "orders[0]@2-5"}, "latestOffset": {"0": "orders[0]@0-9"}})
    {'[0]': 4}
    """
    ends, latest = progress.get("endOffset"), progress.get("latestOffset")
    if not isinstance(ends, dict) or not isinstance(latest, dict):
        return None
    try:
        reached = {partition: Range.parse(text).end for partition, text in ends.items()}
        highs = {partition: Range.parse(text).end for partition, text in latest.items()}
    except (TypeError, CheckpointError):
        return None
    return {f"[{partition}]": max(0, highs.get(partition, end) - end) for partition, end in reached.items()}
