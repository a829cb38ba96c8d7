"""The stream generator as a source of Spark's structured streaming, written in Python.

An offset is the last piece of event time that was generated: so a job goes on, whatever happened to it, with the piece
that follows the last one in its own checkpoint, and a batch that is done again has the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from midstream.embedded.generator_source import GeneratorSource, Piece
from midstream.model.codec import decode, encode
from midstream.spark.declared import declared_schema
from midstream.spark.session import ship
from midstream.sql.job_specs import GENERATOR, SourceSpec

FORMAT = "midstream_generator"


def generated_stream(
    spark: SparkSession, name: str, timestamp: str, schema: str, options: Mapping[str, str | int | float]
) -> DataFrame:
    """Read a generated stream as a streaming DataFrame: the rows that `Engine.source(name, "generator", ...)` brings.

    Every micro-batch has one piece of event time. Raises an `InputError` where the options do not say what to draw.
    """
    given = {key: str(one) for key, one in options.items()}
    return frame_of(spark, name, SourceSpec(GENERATOR, None, schema, timestamp, options=given), 0)


def frame_of(spark: SparkSession, name: str, spec: SourceSpec, patience: int) -> DataFrame:
    """Read a stream of a job file that has the format `generator`; it waits for nothing."""
    GeneratorSource.of(name, spec)
    ship(spark.sparkContext)
    spark.dataSource.register(GeneratorDataSource)
    columns = declared_schema(spec.schema or "", f"[streams.{name}]")
    reader = spark.readStream.format(FORMAT).schema(columns)
    return reader.options(stream=name, declared=json.dumps(encode(spec))).load()


class GeneratorDataSource(DataSource):
    """The source of the options `stream`, its name, and `declared`, what a job file says of it."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the source for `readStream.format`."""
        return FORMAT

    def streamReader(self, schema: StructType) -> GeneratorReader:
        """Make a reader for a streaming query; each has its own."""
        return GeneratorReader(self.options, to_arrow_schema(schema, timezone="UTC"))


class Pieces(InputPartition):
    """What one task generates."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)


class GeneratorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Generates the pieces of a stream in order, one in each micro-batch."""

    def __init__(self, options: MutableMapping[str, str], columns: pa.Schema) -> None:
        self._source = GeneratorSource.of(options["stream"], decode(SourceSpec, json.loads(options["declared"])))
        self._columns = columns

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first piece."""
        return {"number": -1, "step": self._source.length}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return no limit: a batch has one piece in any case."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing: a generator with an end has all its pieces now, and one without goes on until it is stopped."""

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the piece that follows; the last one again at the end of the stream."""
        following = self._source.next_piece(Piece(**start))
        return start if following is None else following._asdict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Give the pieces to one task, which keeps their order."""
        numbers = range(start["number"] + 1, end["number"] + 1)
        return [Pieces(tuple(str(Piece(number, end["step"])) for number in numbers))] if numbers else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Generate the rows, in a task."""
        yield from self._source.read(partition.value).cast(self._columns).to_batches()
