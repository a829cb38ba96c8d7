"""Admission: which rows of a table enter, which are late, which cannot be read. Nothing is ever dropped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.model.errors import InputError
from midstream.model.schema import StreamSchema, plain_type
from midstream.runtime.lane import BEGINNING
from midstream.state.base_state import TIME
from midstream.state.keys import band_codes

WATERMARK, REASON = "_watermark", "_reason"


@dataclass(frozen=True)
class Admitted:
    """A table sorted out: rows with `_ts`, late rows with their `_watermark`, dead letters with a `_reason`."""

    rows: pa.RecordBatch
    late: pa.Table
    dead: pa.Table


def admit(schema: StreamSchema, table: pa.Table, watermark: int = BEGINNING) -> Admitted:
    """Sort out the rows of a table pushed into a stream.

    Columns are brought to the declared types; a row that cannot be, or whose timestamp is NULL, becomes a dead letter
    in its original form. A missing column is an `InputError`, other columns are ignored.
    """
    missing = [name for name in schema.columns.names if name not in table.column_names]
    if missing:
        raise InputError(
            f"the table pushed into stream {schema.name!r} lacks {', '.join(map(repr, missing))}",
            place=f"stream {schema.name}",
            remedy=f"push tables with the columns {', '.join(schema.columns.names)}",
        )
    doubled = [name for name in schema.columns.names if table.column_names.count(name) > 1]
    if doubled:
        raise InputError(
            f"the table pushed into stream {schema.name!r} has {doubled[0]!r} more than once",
            place=f"stream {schema.name}",
            remedy="rename one of the columns",
        )
    given = table.select(schema.columns.names).combine_chunks()
    reasons: dict[int, str] = {}
    columns = [_read(given.column(f.name), f, reasons) for f in schema.columns]
    times = _times(columns[schema.columns.names.index(schema.timestamp)], schema.timestamp, reasons)
    read = pa.RecordBatch.from_arrays([*columns, times], names=[*schema.columns.names, TIME])
    dead = _dead(table, reasons)
    if reasons:
        alive = np.ones(len(times), np.bool_)
        alive[list(reasons)] = False
        read = read.filter(pa.array(alive))
    on_time = read.column(TIME).to_numpy(zero_copy_only=False) >= watermark
    if on_time.all():
        return Admitted(read, _late(read.slice(0, 0), watermark), dead)
    return Admitted(read.filter(pa.array(on_time)), _late(read.filter(pa.array(~on_time)), watermark), dead)


def _late(rows: pa.RecordBatch, watermark: int) -> pa.Table:
    mark = pa.array(np.full(rows.num_rows, watermark)).cast(pa.timestamp("us", "UTC"))
    names = [name for name in rows.schema.names if name != TIME]
    return pa.Table.from_batches([rows.select(names).append_column(WATERMARK, mark)])


def _dead(table: pa.Table, reasons: dict[int, str]) -> pa.Table:
    rows = sorted(reasons)
    kinds = [field.with_type(plain_type(field.type)) for field in table.schema]
    chosen = table.cast(pa.schema(kinds)).take(pa.array(rows)) if rows else table.slice(0, 0)
    return chosen.append_column(REASON, pa.array([reasons[r] for r in rows], pa.string()))


def _read(column: pa.ChunkedArray, field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    values = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
    if values.type == field.type:
        return values
    return pa.concat_arrays(_cast(values, field, 0, reasons) or [pa.array([], field.type)])


def _cast(values: pa.Array, field: pa.Field, offset: int, reasons: dict[int, str]) -> list[pa.Array]:
    """The values cast; where that fails the array is halved until the rows at fault stand alone."""
    try:
        return [pc.cast(values, options=pc.CastOptions(field.type, allow_time_truncate=True))]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if len(values) == 1:
            shown = str(values[0].as_py())
            reasons[offset] = f"column {field.name!r}: cannot read {shown[:80]!r} as {field.type}"
            return [pa.nulls(1, field.type)]
        half = len(values) // 2
        if not half:
            return [pa.nulls(0, field.type)]
        front = _cast(values.slice(0, half), field, offset, reasons)
        return front + _cast(values.slice(half), field, offset + half, reasons)


def _times(column: pa.Array, name: str, reasons: dict[int, str]) -> pa.Array:
    if pt.is_string(column.type) or pt.is_large_string(column.type):
        pieces = _cast(column, pa.field(name, pa.timestamp("us")), 0, reasons)
        column = pa.concat_arrays(pieces)
    for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
        reasons.setdefault(row, f"timestamp column {name!r} is NULL")
    if not (pt.is_timestamp(column.type) or pt.is_date(column.type) or pt.is_integer(column.type)):
        raise InputError(
            f"column {name!r} of type {column.type} cannot be a timestamp",
            place=f"timestamp column {name}",
            remedy="use a TIMESTAMP, a DATE or an integer of microseconds",
        )
    return pa.array(band_codes(column)[0])
