"""The streams of a job as one narrow streaming DataFrame, and how tasks read those that Spark brings as they are.

Spark's micro-batch hands `foreachBatch` rows that have already been computed: what is selected there is not pushed
into the source's scan. So the columns are chosen here, before the query starts. The streams' columns are packed by
type into shared slot columns, so that the union is as wide as its widest stream and not as all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from midstream.admission.refused_rows import REASON
from midstream.spark.job_streams import JobStream, Reader, brings_texts, named
from midstream.spark.whole_files import given_name
from midstream.state.base_state import TIME

STREAM = "_stream"
"""The column of the union that holds the number of a row's stream; next to it are `_ts` and the slots."""

ARRIVALS = "_arrivals"
"""How the columns begin that count arrivals."""


def kept_column(group: int) -> str:
    """Name the column that says whether a lane group can use a row."""
    return f"_kept{group}"


def arrivals_columns(counted: Sequence[str]) -> dict[str, str]:
    """Name for each counted stream the column of its arrival numbers, as Spark carries it.

    Names of streams may hold characters that Spark's SQL, and the Python of it, treats as more than a name.

    >>> arrivals_columns(["A", "odd`one"])
    {'A': '_arrivals0', 'odd`one': '_arrivals1'}
    """
    return {name: f"{ARRIVALS}{number}" for number, name in enumerate(counted)}


@dataclass(frozen=True)
class TaskReader:
    """Reads rows of a stream in a task: the `reader` takes the slots `given`, and its columns fill the `slots`."""

    given: tuple[str, ...]
    reader: Reader
    slots: Mapping[str, str]

    def __call__(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows that some rows of the union stand for."""
        for read in self.reader(iter([rows.select(self.given)])):
            yield read.rename_columns([self.slots[name] for name in read.schema.names])


@dataclass(frozen=True)
class UnionReader:
    """Reads the rows of a union in a task for Spark: `fields` are the columns `_stream`, `_ts` and every slot."""

    readers: tuple[TaskReader | None, ...]
    fields: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the batches."""
        for batch in batches:
            for stream, brought in by_stream(batch):
                reader = self.readers[stream]
                for rows in [brought] if reader is None else reader(brought):
                    number = pa.repeat(pa.scalar(stream, pa.int8()), rows.num_rows)
                    columns = {**dict(zip(rows.schema.names, rows.columns, strict=True)), STREAM: number}
                    arrays = [
                        columns[one.name].cast(one.type) if one.name in columns else pa.nulls(rows.num_rows, one.type)
                        for one in self.fields
                    ]
                    yield pa.RecordBatch.from_arrays(arrays, schema=self.fields)


def by_stream(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Part the rows of a union by the numbers of their streams."""
    owners = batch.column(STREAM).to_numpy()
    if not len(owners):
        return
    if owners[0] == owners[-1] and (owners == owners[0]).all():
        yield int(owners[0]), batch
        return
    for stream in np.unique(owners).tolist():
        yield stream, batch.filter(pa.array(owners == stream))


@dataclass(frozen=True)
class StepLayout:
    """Where the columns of each stream are in the rows of a step.

    `slots` has for each stream the slot of each column that is carried; that of a timestamp which is nothing but the
    event time is `_ts`. `originals` has the slots of values as they arrived, filled where a row could not be read, and
    `reasons` for each stream that may have such rows the slot of the reason. Of the streams that have `readers` the
    union brings what these take; a slot is of one of the `kinds`.
    """

    streams: tuple[str, ...]
    slots: Mapping[str, Mapping[str, str]]
    originals: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, TaskReader] = field(default_factory=dict)
    kinds: Mapping[str, T.DataType] = field(default_factory=dict)

    @property
    def width(self) -> tuple[str, ...]:
        """The slot columns that the union brings, in order."""
        own = (slots.values() for name, slots in self.slots.items() if name not in self.readers)
        used = {slot for of in (*own, *(one.given for one in self.readers.values())) for slot in of}
        return tuple(slot for slot in self.kinds if slot in used)

    def task_readers(self) -> tuple[TaskReader | None, ...]:
        """Return the reader of each stream by its number; None where Spark has read the rows."""
        return tuple(self.readers.get(name) for name in self.streams)

    def read(self, batch: DataFrame) -> DataFrame:
        """Read a batch of the union for what Spark does with its rows, which it then brings back to a task."""
        if not self.readers:
            return batch
        slots = [T.StructField(slot, kind) for slot, kind in self.kinds.items()]
        fields = T.StructType([T.StructField(STREAM, T.ByteType()), T.StructField(TIME, T.LongType()), *slots])
        return batch.mapInArrow(UnionReader(self.task_readers(), to_arrow_schema(fields, timezone="UTC")), fields)

    def covers(self, needs: Mapping[str, frozenset[str]]) -> bool:
        """Return whether the rows carry these columns; columns of answers, which no row brings, may be missing."""
        return all(needed <= self.slots[stream].keys() for stream, needed in needs.items() if stream in self.slots)


@dataclass(frozen=True)
class Intake:
    """The union of a job's streams, as a streaming DataFrame and its layout."""

    frame: DataFrame
    layout: StepLayout


def intake(streams: Sequence[JobStream], needed: Mapping[str, frozenset[str]]) -> Intake:
    """Build the union of the streams, with the columns that are needed and all event times."""
    layout = _layout(streams, needed)
    frames = [_packed(number, stream, layout) for number, stream in enumerate(streams)]
    return Intake(reduce(DataFrame.unionAll, frames), layout)


class _Slots:
    """Slot columns, handed out by type: a stream has a slot once, streams share them."""

    def __init__(self) -> None:
        self.kinds: dict[str, T.DataType] = {}
        self._by_kind: dict[str, list[str]] = {}

    def take(self, kind: T.DataType, taken: set[str]) -> str:
        known = self._by_kind.setdefault(kind.simpleString(), [])
        slot = next((one for one in known if one not in taken), None)
        if slot is None:
            slot = f"_c{len(self.kinds)}"
            self.kinds[slot] = kind
            known.append(slot)
        taken.add(slot)
        return slot


def _layout(streams: Sequence[JobStream], needed: Mapping[str, frozenset[str]]) -> StepLayout:
    found, slots, originals, reasons = _Slots(), dict[str, dict[str, str]](), dict[str, dict[str, str]](), {}
    readers = dict[str, TaskReader]()
    for stream in streams:
        name, timestamp, taken = stream.schema.name, stream.schema.timestamp, set[str]()
        own = {c: found.take(stream.kinds[c], taken) for c in sorted(needed[name] - {timestamp})}
        # A row with a damaged text has no event time, and its dead letter shows the time that it came with.
        may_be_dead = any(brings_texts(stream.kinds[c]) for c in needed[name])
        by_itself = stream.has_own_timestamp or may_be_dead or (timestamp in needed[name] and not stream.is_timed)
        own[timestamp] = found.take(stream.kinds[timestamp], taken) if by_itself else TIME
        slots[name] = own
        if stream.is_read:
            originals[name] = {c: found.take(kind, taken) for c, kind in stream.originals.items()}
            reasons[name] = found.take(T.StringType(), taken)
            columns = _columns(own)
            brought = set[str]()
            given = tuple(found.take(field.dataType, brought) for field in stream.given(columns).schema)
            filled = {column: own[column] for column in columns} | {TIME: TIME, REASON: reasons[name]}
            filled |= {given_name(column): slot for column, slot in originals[name].items()}
            readers[name] = TaskReader(given, stream.reader(columns), filled)
    names = tuple(stream.schema.name for stream in streams)
    return StepLayout(names, slots, originals, reasons, readers, found.kinds)


def _columns(slots: Mapping[str, str]) -> list[str]:
    return sorted(column for column, slot in slots.items() if slot != TIME)


def _packed(number: int, stream: JobStream, layout: StepLayout) -> DataFrame:
    name = stream.schema.name
    own, columns = layout.slots[name], _columns(layout.slots[name])
    reader = layout.readers.get(name)
    frame = stream.read(columns) if reader is None else stream.given(columns)
    filled = {own[column]: named(column) for column in columns}
    if reader is not None:
        filled = {slot: named(column) for slot, column in zip(reader.given, frame.columns, strict=True)}
    slots = [filled.get(slot, F.lit(None)).cast(layout.kinds[slot]).alias(slot) for slot in layout.width]
    time = named(TIME) if reader is None else F.lit(None).cast("bigint").alias(TIME)
    return frame.select(F.lit(number).cast("tinyint").alias(STREAM), time, *slots)
