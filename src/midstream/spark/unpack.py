"""The rows of one stream in one lane: as they travel, and as declared; runs in a Python worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.admission.admit import Mask
from midstream.admission.reading import far_time, null_time, reasons_of_texts
from midstream.admission.refused_rows import all_texts, dead_letters, late_rows, readable
from midstream.logical.result_time import time_in
from midstream.model.schema import StreamSchema
from midstream.spark.layout import StepLayout, arrivals_columns
from midstream.state.base_state import TIME, count_column


@dataclass(frozen=True)
class StreamSlots:
    """How one stream's columns are found again: name, slot and declared type of each, of values that could not be
    read the original's name and slot, and the slot of the reason. `mark` is the type of the watermark of late rows.
    """

    name: str
    timestamp: str
    columns: tuple[tuple[str, str, pa.DataType], ...]
    originals: tuple[tuple[str, str], ...]
    reason: str | None
    mark: pa.DataType
    max_ahead: int | None = None

    @staticmethod
    def of(schema: StreamSchema, layout: StepLayout) -> StreamSlots:
        """Find the slots of a stream in a layout; columns in the order of the schema."""
        name, slots = schema.name, layout.slots[schema.name]
        columns = tuple((f.name, slots[f.name], f.type) for f in schema.columns if f.name in slots)
        originals = tuple(layout.originals.get(name, {}).items())
        mark = time_in([schema])
        reason = layout.reasons.get(name)
        return StreamSlots(name, schema.timestamp, columns, originals, reason, mark, schema.max_ahead)

    @property
    def slots(self) -> frozenset[str]:
        """Every slot that the stream fills."""
        own = {slot for _, slot, _ in self.columns} | {slot for _, slot in self.originals}
        return frozenset(own if self.reason is None else {*own, self.reason})

    def declared(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the stream's own columns, of the types it was declared with."""
        return {name: as_declared(rows.column(slot), kind) for name, slot, kind in self.columns}


@dataclass(frozen=True)
class Share:
    """The rows of one stream in one lane, as the exchange brought them."""

    stream: StreamSlots
    rows: pa.RecordBatch

    def inputs(self, entering: Mask | None, counted: Sequence[str]) -> pa.RecordBatch:
        """Make a lane's input: declared columns, `_ts` and arrival numbers of the rows that enter."""
        rows = self.rows if entering is None else self.rows.filter(pa.array(entering))
        columns = self.stream.declared(rows)
        columns[TIME] = rows.column(TIME)
        columns |= {count_column(stream): rows.column(name) for stream, name in arrivals_columns(counted).items()}
        return pa.RecordBatch.from_pydict(columns)

    def late(self, late: Mask, watermark: int) -> pa.Table:
        """Return the late rows."""
        rows = pa.RecordBatch.from_pydict(self.stream.declared(self.rows.filter(pa.array(late))))
        return late_rows(rows, watermark, self.stream.mark)

    def dead(self, dead: Mask, ceiling: int) -> pa.Table:
        """Return the rows that could not be read, with their reasons."""
        rows, stream = self.rows.filter(pa.array(dead)), self.stream
        originals = {name: rows.column(slot) for name, slot in stream.originals}
        told = [None] * rows.num_rows if stream.reason is None else rows.column(stream.reason).to_pylist()
        times, declared = rows.column(TIME).to_pylist(), stream.declared(rows)
        damaged = reasons_of_texts(declared)
        reasons = [
            why or damaged.get(row) or _no_time(stream, time, ceiling)
            for row, (why, time) in enumerate(zip(told, times, strict=True))
        ]
        shown = declared | {name: _shown(column, declared.get(name)) for name, column in originals.items()}
        return dead_letters(readable(pa.table(shown)), reasons)


def _shown(given: pa.Array, read: pa.Array | None) -> pa.Array:
    """Return the values of a column of dead letters as they came, with those that were read in their places."""
    if read is None or not pt.is_string(given.type):
        return given.cast(pa.string()) if pt.is_dictionary(given.type) else given
    if given.null_count == len(given):
        return read
    return pc.coalesce(given, all_texts(pa.table([read], [""])).column(0).combine_chunks())


def _no_time(stream: StreamSlots, time: int | None, ceiling: int) -> str:
    return null_time(stream.timestamp) if time is None else far_time(stream, time, ceiling)


def as_declared(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast values of a slot to the declared type; a timestamp that arrives as its microseconds costs nothing."""
    if values.type == kind:
        return values
    if (pt.is_timestamp(kind) or pt.is_date(kind)) and pt.is_int64(values.type):
        return values.view(pa.timestamp("us", getattr(kind, "tz", None))).cast(kind)
    return values.cast(kind)


def nothing(stream: StreamSlots, counted: Sequence[str]) -> pa.RecordBatch:
    """Make a lane's input for a stream that brought no row."""
    fields = [(name, kind) for name, _, kind in stream.columns] + [(TIME, pa.int64())]
    fields += [(count_column(other), pa.int64()) for other in counted]
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for _, kind in fields], schema=pa.schema(fields))
