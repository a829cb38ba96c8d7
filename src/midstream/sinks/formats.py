"""Tables written as files: Parquet, JSON lines, CSV."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pyarrow.types as pt

from midstream.step.admission.outputs import python_values


def written(table: pa.Table, format: str) -> pa.Buffer:
    """A table as the bytes of a file in one of `FORMATS`."""
    sink = pa.BufferOutputStream()
    FORMATS[format](table, sink)
    return sink.getvalue()


def _parquet(table: pa.Table, file: pa.NativeFile) -> None:
    # Results of joins hardly repeat; a dictionary would cost more than it saves.
    pyarrow.parquet.write_table(
        table,
        file,
        use_dictionary=_texts(table),
        column_encoding=dict.fromkeys(_whole_numbers(table), "DELTA_BINARY_PACKED"),
        compression="snappy",
        write_statistics=False,
    )


def _json(table: pa.Table, file: pa.NativeFile) -> None:
    for batch in table.to_batches(max_chunksize=65_536):
        file.write("".join(_line(row) for row in _rows(_plain(batch))).encode())


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    cells = [python_values(column) for column in batch.columns]
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*cells, strict=True)]


def _line(row: dict[str, Any]) -> str:
    return _dumped({name: value for name, value in row.items() if value is not None}) + "\n"


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, default=_value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # JSON has no word for NaN.
        return json.dumps(_speakable(value), default=_value, ensure_ascii=False)


def _speakable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _speakable(inner) for name, inner in value.items()}
    return [_speakable(inner) for inner in value] if isinstance(value, list | tuple) else value


def _csv(table: pa.Table, file: pa.NativeFile) -> None:
    columns = {name: _cell(table.column(name)) for name in table.column_names}
    pyarrow.csv.write_csv(pa.table(columns), file)


FORMATS: dict[str, Callable[[pa.Table, pa.NativeFile], None]] = {"parquet": _parquet, "json": _json, "csv": _csv}
"""How each format is written. JSON leaves NULL out and writes times as ISO 8601, binary as base64, NaN as text, as
Spark does, and decimals as text, so that no digit is lost."""


def json_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values of a column as JSON texts, NULL left NULL."""
    return pa.array([None if value is None else _dumped(value) for value in python_values(column)], pa.string())


def _texts(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if pt.is_string(field.type) or pt.is_large_string(field.type)]


def _whole_numbers(table: pa.Table) -> list[str]:
    """The columns that Parquet stores as integers of 32 or 64 bits."""
    kinds = (pt.is_integer, pt.is_timestamp, pt.is_date, pt.is_time)
    return [field.name for field in table.schema if any(holds(field.type) for holds in kinds)]


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Times as text, which Arrow does faster than Python."""
    columns = [_iso(column) if pt.is_timestamp(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _iso(column: pa.Array) -> pa.Array:
    zone = "Z" if column.type.tz else ""
    return pc.strftime(column.cast(pa.timestamp("us", column.type.tz)), format=f"%Y-%m-%dT%H:%M:%S{zone}")


def _value(value: Any) -> Any:
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def _cell(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        return pa.chunked_array([[None if v is None else _value(v) for v in column.to_pylist()]], pa.string())
    if pt.is_nested(kind):
        return pa.chunked_array([json_texts(column)], pa.string())
    return column
