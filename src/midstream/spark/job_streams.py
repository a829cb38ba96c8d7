"""The streams of a job: what each declares, and the DataFrame that brings it, with its rows read as declared.

Where a column's own type surely holds only values of the declared one, as it does when nothing else was declared,
Spark casts it. All other columns, and timestamps that are text or integers of another unit than microseconds, are read
in Python workers as the embedded engine reads them; a row that cannot be read goes on without an event time, with the
reason and its original values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

from midstream.admission.admit import check_columns, judge
from midstream.admission.reading import never_fails, read_rows
from midstream.admission.refused_rows import CORRUPT, FILE, NO_OBJECT, REASON
from midstream.expr.duration import stream_duration
from midstream.logical.query import Query
from midstream.model.errors import InputError
from midstream.model.schema import StreamSchema, has_texts, is_uuid
from midstream.runtime.watermark import BEGINNING
from midstream.spark.whole_files import FileReader, WholeFiles, given_name, kind_beside
from midstream.sql.ddl import columns_of
from midstream.state.base_state import TIME

Reader = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Reads what Spark brings of a stream in a Python worker."""

_MICROSECONDS_OF_DAY = 86_400_000_000
_MOST_DAYS = 100_000_000


@dataclass(frozen=True)
class JobStream:
    """A stream of a job.

    `kinds` are the types in which Spark carries its columns; `unlike` are the columns that arrive in a type which may
    hold other values than the declared one.
    """

    schema: StreamSchema
    frame: DataFrame
    kinds: Mapping[str, T.DataType]
    unlike: frozenset[str]
    files: WholeFiles | None = None
    """The files that tasks read by themselves, of which the frame has the names."""

    @property
    def is_read(self) -> bool:
        """Whether rows are read in Python workers, and may so have a reason why they could not be."""
        return bool(self.unlike) or self.has_own_timestamp

    @property
    def has_own_timestamp(self) -> bool:
        """Whether the timestamp must be read to be an event time: a text, or an integer of another unit."""
        return isinstance(self.kinds[self.schema.timestamp], T.StringType) or self.schema.time_unit != "us"

    @property
    def originals(self) -> dict[str, T.DataType]:
        """Return the types of what a dead letter shows: `unlike` columns as they came, its file and its line."""
        kinds = {name: T.StringType() if self.files else self.frame.schema[name].dataType for name in self.unlike}
        names = self.beside if self.files is None else self.files.source.beside
        return {name: kinds[name] for name in sorted(kinds)} | {name: kind_beside(name) for name in names}

    @cached_property
    def beside(self) -> dict[str, SparkColumn]:
        """The columns that a dead letter has in addition: the line that is not JSON, and the file, if there are any."""
        found = {name: named(name) for name in (CORRUPT, FILE) if name in self.frame.columns}
        if FILE not in found and _is_of_files(self.frame):
            found[FILE] = F.col("_metadata.file_path")
        return {name: column for name, column in found.items() if name not in self.schema.columns.names}

    @property
    def is_timed(self) -> bool:
        """Whether the timestamp is nothing but its event time in microseconds."""
        return isinstance(self.kinds[self.schema.timestamp], T.TimestampType | T.TimestampNTZType)

    def read(self, names: Collection[str]) -> DataFrame:
        """Read the columns of these names by Spark, with the event time `_ts`, which is NULL where there is none."""
        columns, timestamp = [self._cast(name) for name in names], self.schema.timestamp
        time = _microseconds(self._cast(timestamp), self.kinds[timestamp])
        for name in names:
            if (whole := _whole_texts(self._cast(name), self.kinds[name])) is not None:
                # Spark takes any bytes of a file for a text. Such a row has no time, so that it is a dead letter.
                time = F.when(whole, time)
        return self.frame.select(*columns, time.alias(TIME))

    def given(self, names: Collection[str]) -> DataFrame:
        """Return what the `reader` of these columns takes, of a stream that `is_read`, in its order."""
        if self.files is not None:
            return self.frame.select("path")
        # Names may hold a dot or a backtick, which PySpark takes for more than a part of one.
        columns = [named(name) if name in self.unlike else self._cast(name) for name in self._taken(names)]
        every = [*columns, *self.beside.values()]
        return self.frame.select(*(column.alias(f"_{number}") for number, column in enumerate(every)))

    def reader(self, names: Collection[str]) -> Reader:
        """Make the reader of the columns of these names, of a stream that `is_read`.

        It gives them with the event time `_ts`, the `_reason` of rows that cannot be read, and of these the `originals`
        as `given_name` names them.
        """
        kinds = {name: self.kinds[name] for name in names} | {TIME: T.LongType(), REASON: T.StringType()}
        kinds |= {given_name(name): kind for name, kind in self.originals.items()}
        fields = pa.schema([(name, to_arrow_type(kind, timezone="UTC")) for name, kind in kinds.items()])
        if self.files is not None:
            return FileReader(self.files.source, self.schema, fields)
        return RowReader(self.schema, self._taken(names), tuple(names), self.unlike, tuple(self.beside), fields)

    def _taken(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(sorted({*names, *self.unlike, self.schema.timestamp}))

    def _cast(self, name: str) -> SparkColumn:
        column, kind = named(name), self.kinds[name]
        return column if self.frame.schema[name].dataType == kind else column.cast(kind).alias(name)


@dataclass(frozen=True)
class RowReader:
    """Reads the rows of a stream as declared, in a Python worker.

    `taken` are the columns that come, in order, with those `beside` them, and `fields` is what it gives.
    """

    schema: StreamSchema
    taken: tuple[str, ...]
    names: tuple[str, ...]
    unlike: frozenset[str]
    beside: tuple[str, ...]
    fields: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the batches."""
        for arrived in batches:
            batch = arrived.rename_columns([*self.taken, *self.beside])
            texts = {name for name in self.names if has_texts(batch.schema.field(name).type)}
            reading = read_rows(self.schema, batch, {*self.unlike, *texts, self.schema.timestamp})
            unread = judge(reading.times, BEGINNING).dead
            gone = pa.array(np.zeros(batch.num_rows, np.bool_) if unread is None else unread)
            as_given = texts - self.unlike - {self.schema.timestamp}
            found = {
                name: batch.column(name) if name in as_given else reading.columns.get(name, batch.column(name))
                for name in self.names
            }
            found[TIME] = reading.times
            reasons = np.full(batch.num_rows, None, object)
            for row, reason in reading.reasons.items():
                reasons[row] = reason
            if CORRUPT in self.beside:
                for row in np.flatnonzero(np.asarray(batch.column(CORRUPT).is_valid())).tolist():
                    if not _is_object(batch.column(CORRUPT)[row].as_py()):  # Else a value in it is at fault.
                        reasons[row] = NO_OBJECT
            found[REASON] = pa.array(reasons, pa.string())
            for name in (*self.unlike, *self.beside):
                found[given_name(name)] = pc.if_else(gone, batch.column(name), None)
            arrays = [found[field.name].cast(field.type, safe=False) for field in self.fields]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.fields)


def job_stream(
    name: str,
    frame: DataFrame | WholeFiles,
    timestamp: str,
    lateness: int,
    idle_timeout: int | None,
    declared: pa.Schema | None,
    unit: str | None = None,
    max_ahead: int | None = None,
) -> JobStream:
    """Make a stream over a streaming DataFrame, of the declared columns.

    Without a declaration they are those of the DataFrame, except columns of a type that Arrow has not.
    """
    files, frame = (frame, frame.frame) if isinstance(frame, WholeFiles) else (None, frame)
    if not isinstance(frame, DataFrame) or not frame.isStreaming:
        raise InputError(
            f"stream {name!r} is not a streaming DataFrame",
            place=f"stream {name}",
            remedy="read the stream with spark.readStream",
        )
    if files is not None:
        schema = StreamSchema(name, files.source.columns, timestamp, lateness, idle_timeout, unit, max_ahead=max_ahead)
        schema = schema.in_unit()
        kinds = {field.name: _spark_type(schema, field) for field in schema.columns}
        return JobStream(schema, frame, kinds, frozenset(kinds), files)
    own = {field.name: kind for field in frame.schema if (kind := arrow_type(field.dataType)) is not None}
    columns = pa.schema(list(own.items())) if declared is None else declared
    schema = StreamSchema(name, columns, timestamp, lateness, idle_timeout, unit, max_ahead=max_ahead).in_unit()
    if declared is None:
        kinds = {column: frame.schema[column].dataType for column in own}
        return JobStream(schema, frame, kinds, frozenset())
    check_columns(schema, [field.name for field in frame.schema if field.name in own])
    kinds = {field.name: _spark_type(schema, field) for field in schema.columns}
    unlike = {f.name for f in schema.columns if is_uuid(f) or not never_fails(own[f.name], f.type)}
    return JobStream(schema, frame, kinds, frozenset(unlike))


def declared_stream(
    name: str,
    frame: DataFrame | WholeFiles,
    timestamp: str,
    lateness: str | int,
    idle_timeout: str | int | None,
    schema: pa.Schema | str | None,
    unit: str | None,
    max_ahead: str | int | None = None,
) -> JobStream:
    """Make a stream as a user declares it: durations are text or microseconds, the schema may be DDL."""
    idle = None if idle_timeout is None else stream_duration(name, "idle_timeout", idle_timeout)
    columns = None if schema is None else columns_of(schema)
    late = stream_duration(name, "lateness", lateness)
    ahead = None if max_ahead is None else stream_duration(name, "max_ahead", max_ahead)
    return job_stream(name, frame, timestamp, late, idle, columns, unit, ahead)


def needs(queries: Iterable[Query], streams: Iterable[str]) -> dict[str, frozenset[str]]:
    """Collect for each of these streams the columns that any of the queries reads."""
    found: dict[str, set[str]] = {stream: set() for stream in streams}
    for query in queries:
        for source in query.sources:
            if source.stream in found:
                found[source.stream] |= set(query.columns_of(source.alias))
    return {stream: frozenset(columns) for stream, columns in found.items()}


def named(column: str) -> SparkColumn:
    """Return the column of a name, which may hold any characters."""
    return F.col("`" + column.replace("`", "``") + "`")


def brings_texts(kind: T.DataType) -> bool:
    """Return whether values of a type are texts, or have some in them.

    >>> brings_texts(T.ArrayType(T.StringType())), brings_texts(T.BinaryType())
    (True, False)
    """
    if isinstance(kind, T.StructType):
        return any(brings_texts(field.dataType) for field in kind)
    if isinstance(kind, T.MapType):
        return brings_texts(kind.keyType) or brings_texts(kind.valueType)
    return brings_texts(kind.elementType) if isinstance(kind, T.ArrayType) else isinstance(kind, T.StringType)


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _is_of_files(frame: DataFrame) -> bool:
    try:
        return isinstance(frame.select("_metadata.file_path").schema[0].dataType, T.StringType)
    except AnalysisException:
        return False


def _whole_texts(column: SparkColumn, kind: T.DataType) -> SparkColumn | None:
    # NULL counts as whole; None where a value never has any texts.
    if not brings_texts(kind):
        return None
    if isinstance(kind, T.StructType):
        parts = [(column.getField(field.name), field.dataType) for field in kind]
        found = [whole for part in parts if (whole := _whole_texts(*part)) is not None]
    elif isinstance(kind, T.MapType):
        lists = [(F.map_keys(column), kind.keyType), (F.map_values(column), kind.valueType)]
        found = [_all_whole(part, inner) for part, inner in lists if brings_texts(inner)]
    elif isinstance(kind, T.ArrayType):
        found = [_all_whole(column, kind.elementType)]
    else:
        found = [F.is_valid_utf8(column)]
    return F.coalesce(reduce(SparkColumn.__and__, found), F.lit(True))


def _all_whole(values: SparkColumn, kind: T.DataType) -> SparkColumn:
    return F.forall(values, lambda value: cast(SparkColumn, _whole_texts(value, kind)))


def _microseconds(column: SparkColumn, kind: T.DataType) -> SparkColumn:
    # The session's time zone must be UTC.
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return F.unix_micros(column.cast("timestamp"))
    if isinstance(kind, T.DateType):
        # No product beyond 64 bits, for Spark ends a step for it: such a date is beyond all event times in any case.
        days = F.least(F.greatest(F.unix_date(column).cast("bigint"), F.lit(-_MOST_DAYS)), F.lit(_MOST_DAYS))
        return F.when(column.isNotNull(), days * F.lit(_MICROSECONDS_OF_DAY))
    return column.cast("bigint")


def arrow_type(kind: T.DataType) -> pa.DataType | None:
    """Return the type in which Spark hands values to Python; None where Arrow has none."""
    try:
        return to_arrow_type(kind, timezone="UTC")
    except Exception:  # Spark has no common class for the types that Arrow lacks.
        return None


def _spark_type(schema: StreamSchema, field: pa.Field) -> T.DataType:
    try:
        return from_arrow_type(field.type, prefer_timestamp_ntz=True)
    except Exception as error:  # Spark has no common class for the types that it lacks.
        raise InputError(
            f"column {field.name!r} of type {field.type} cannot be used on Spark",
            place=f"stream {schema.name}",
            remedy="declare the column with a type of Spark",
        ) from error


def rows_of_frame(rows: Any, place: str) -> Any:
    """Collect a DataFrame as an Arrow table; return anything else as it is. Raises InputError for one that streams."""
    if not isinstance(rows, DataFrame):
        return rows
    if rows.isStreaming:
        raise InputError(
            "a streaming DataFrame has no end, but a static table needs all its rows",
            place=place,
            remedy="declare a stream, or read the table with spark.read",
        )
    return rows.toArrow()
