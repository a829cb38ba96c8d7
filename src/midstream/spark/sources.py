"""The streams of a job as one narrow streaming DataFrame.

Spark's micro-batch hands `foreachBatch` rows that have already been computed: what is selected there is not pushed
into the source's scan. So the columns are chosen here, before the query starts. The streams' columns are packed by
type into shared slot columns, so that the union is as wide as its widest stream and not as all of them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from midstream.language.query import Query
from midstream.model.errors import InputError
from midstream.model.schema import StreamSchema

STREAM, TIME = "_stream", "_ts"
"""The columns of the union beside its slots: the stream's number and the event time in microseconds."""


@dataclass(frozen=True)
class JobStream:
    """A stream of a job: what it looks like, and the DataFrame that brings it."""

    schema: StreamSchema
    frame: DataFrame


@dataclass(frozen=True)
class Layout:
    """Where the columns of each stream stand in the union.

    `slots` has for each stream the slot of each column that is carried; a timestamp column that is told by `_ts`
    alone has the slot `_ts`. `raw` is the slot of a timestamp's text where it could not be read.
    """

    streams: tuple[str, ...]
    slots: Mapping[str, Mapping[str, str]]
    raw: Mapping[str, str]

    @property
    def width(self) -> tuple[str, ...]:
        """The slot columns, in order."""
        used = {slot for of in self.slots.values() for slot in of.values()} | set(self.raw.values())
        return tuple(sorted(used - {TIME}, key=lambda slot: int(slot[2:])))

    def covers(self, needs: Mapping[str, frozenset[str]]) -> bool:
        """Whether the union carries these columns."""
        return all(needed <= self.slots[stream].keys() for stream, needed in needs.items())


@dataclass(frozen=True)
class Intake:
    """The union of a job's streams, as a streaming DataFrame and its layout."""

    frame: DataFrame
    layout: Layout


def job_stream(name: str, frame: DataFrame, timestamp: str, lateness: int, idle_timeout: int | None) -> JobStream:
    """A stream over a streaming DataFrame; columns of a type Arrow has not are left out."""
    if not isinstance(frame, DataFrame) or not frame.isStreaming:
        raise InputError(
            f"stream {name!r} is not a streaming DataFrame",
            place=f"stream {name}",
            remedy="read it with spark.readStream",
        )
    fields = [(field.name, kind) for field in frame.schema if (kind := _arrow_type(field.dataType)) is not None]
    schema = StreamSchema(name, pa.schema(fields), timestamp, lateness, idle_timeout)
    _microseconds(frame.schema[timestamp])
    return JobStream(schema, frame)


def needs(queries: Iterable[Query], streams: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each stream the columns that any of the queries reads."""
    found: dict[str, set[str]] = {stream: set() for stream in streams}
    for query in queries:
        for source in query.sources:
            found[source.stream] |= set(query.columns_of(source.alias))
    return {stream: frozenset(columns) for stream, columns in found.items()}


def intake(streams: Sequence[JobStream], needed: Mapping[str, frozenset[str]]) -> Intake:
    """The union of the streams, carrying the columns that are needed."""
    layout, kinds = _layout(streams, needed)
    frames = [_packed(number, stream, layout, kinds) for number, stream in enumerate(streams)]
    return Intake(reduce(DataFrame.unionAll, frames), layout)


def _layout(streams: Sequence[JobStream], needed: Mapping[str, frozenset[str]]) -> tuple[Layout, dict[str, T.DataType]]:
    kinds: dict[str, T.DataType] = {}
    by_kind: dict[str, list[str]] = {}
    slots: dict[str, dict[str, str]] = {}
    raw: dict[str, str] = {}

    def take(kind: T.DataType, taken: set[str]) -> str:
        known = by_kind.setdefault(kind.simpleString(), [])
        free = [slot for slot in known if slot not in taken]
        slot = free[0] if free else f"_c{len(kinds)}"
        if not free:
            kinds[slot] = kind
            known.append(slot)
        taken.add(slot)
        return slot

    for stream in streams:
        name, taken, fields = stream.schema.name, set[str](), stream.frame.schema
        slots[name] = {}
        for column in sorted(needed[name]):
            kind = fields[column].dataType
            told = column == stream.schema.timestamp and isinstance(kind, T.TimestampType | T.TimestampNTZType)
            slots[name][column] = TIME if told else take(kind, taken)
        if isinstance(fields[stream.schema.timestamp].dataType, T.StringType):
            raw[name] = slots[name].get(stream.schema.timestamp) or take(T.StringType(), taken)
    return Layout(tuple(s.schema.name for s in streams), slots, raw), kinds


def _packed(number: int, stream: JobStream, layout: Layout, kinds: Mapping[str, T.DataType]) -> DataFrame:
    name, frame = stream.schema.name, stream.frame
    time = _microseconds(frame.schema[stream.schema.timestamp])
    filled = {slot: _named(column) for column, slot in layout.slots[name].items() if slot != TIME}
    if name in layout.raw and layout.raw[name] not in filled:
        filled[layout.raw[name]] = F.when(time.isNull(), _named(stream.schema.timestamp))
    slots = [filled.get(slot, F.lit(None)).cast(kinds[slot]).alias(slot) for slot in layout.width]
    return frame.select(F.lit(number).cast("tinyint").alias(STREAM), time.alias(TIME), *slots)


def _microseconds(field: T.StructField) -> SparkColumn:
    """The event time as microseconds; NULL where it cannot be read. The session's time zone must be UTC."""
    column, kind = _named(field.name), field.dataType
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return F.unix_micros(column.cast("timestamp"))
    if isinstance(kind, T.StringType):
        return F.unix_micros(F.try_to_timestamp(column))
    if isinstance(kind, T.DateType):
        return F.unix_date(column).cast("bigint") * F.lit(86_400_000_000)
    if isinstance(kind, T.IntegralType):
        return column.cast("bigint")
    raise InputError(
        f"column {field.name!r} of type {kind.simpleString()} cannot be a timestamp",
        place=f"timestamp column {field.name}",
        remedy="use a TIMESTAMP, a DATE, a STRING that reads as one, or a BIGINT of microseconds",
    )


def _named(column: str) -> SparkColumn:
    return F.col("`" + column.replace("`", "``") + "`")


def _arrow_type(kind: T.DataType) -> pa.DataType | None:
    try:
        return to_arrow_type(kind, timezone="UTC")
    except Exception:  # Spark has no common class for the types that Arrow lacks.
        return None
