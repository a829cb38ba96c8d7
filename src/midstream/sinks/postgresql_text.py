"""Arrow tables as PostgreSQL takes them: the types of its columns, and the CSV text of its `COPY`."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as pt

from midstream.model.errors import SinkError
from midstream.sinks.formats import json_texts

ROWS_AT_ONCE = 65_536
_QUOTED = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")
"""Every value is quoted and NULL is nothing, so an empty text is not a NULL."""

_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.uint64(): "numeric(20)",
    pa.float16(): "real",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.null(): "text",
}


def column_type(field: pa.Field) -> str:
    """Return the type of the column that holds a result column; nested values are held as `jsonb`."""
    kind = field.type.value_type if pt.is_dictionary(field.type) else field.type
    if kind in _TYPES:
        return _TYPES[kind]
    if pt.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pt.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    for test, name in (
        (_is_text, "text"),
        (_is_binary, "bytea"),
        (pt.is_time, "time"),
        (pt.is_duration, "interval"),
        (pt.is_nested, "jsonb"),
    ):
        if test(kind):
            return name
    raise SinkError(
        f"PostgreSQL has no type for column {field.name!r} of type {kind}",
        place="sink",
        remedy="leave the column out of the query, or CAST it",
    )


def copy_text(table: pa.Table) -> Iterator[bytes]:
    """Yield the rows for `COPY ... FROM STDIN (FORMAT csv)`, in pieces."""
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        columns = [_text(column) for column in batch.columns]
        piece = io.BytesIO()
        named = pa.RecordBatch.from_arrays(columns, names=[str(n) for n in range(len(columns))])
        pyarrow.csv.write_csv(named, piece, _QUOTED)
        yield piece.getvalue()


def _text(column: pa.Array) -> pa.Array:
    # Arrow must write the values as PostgreSQL reads them.
    kind = column.type
    if pt.is_dictionary(kind):
        return _text(column.dictionary_decode())
    if _is_binary(kind):
        return pa.array([None if value is None else "\\x" + value.hex() for value in column.to_pylist()], pa.string())
    if pt.is_duration(kind):
        counted = column.cast(pa.duration("us")).cast(pa.int64()).cast(pa.string())
        return pc.binary_join_element_wise(counted, "microseconds", " ")
    if pt.is_nested(kind):
        return json_texts(column)
    if kind == pa.float16():
        return column.cast(pa.float32())
    return column.cast(pa.string()) if pt.is_null(kind) else column


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_binary(kind: pa.DataType) -> bool:
    return kind in (pa.binary(), pa.large_binary(), pa.binary_view()) or bool(pt.is_fixed_size_binary(kind))
