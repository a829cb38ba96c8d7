"""Tables written as files: Parquet, JSON lines, CSV; Parquet also read back."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pyarrow.parquet as pq
import pyarrow.types as pt

from midstream.model.errors import SinkError
from midstream.model.python_values import python_values
from midstream.state.gather import POOL

ARROW = "arrow"
"""The format of staged files that nothing but a sink reads: it takes less than half the time of Parquet."""


def written(table: pa.Table, format: str) -> pa.Buffer:
    """Write a table as the bytes of a file in one of `FORMATS`, or as `arrow`."""
    sink = pa.BufferOutputStream(POOL)
    (_arrow if format == ARROW else FORMATS[format])(table, sink)
    return sink.getvalue()


def read_back(data: pa.Buffer | bytes, file: str) -> pa.Table:
    """Read what `written` gave as `parquet`, or as `arrow` if the name of the `file` ends so."""
    return pa.ipc.open_file(data).read_all() if file.endswith(f".{ARROW}") else parquet_rows(data, file)


def _arrow(table: pa.Table, file: pa.NativeFile) -> None:
    with pa.ipc.new_file(file, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)


def check_types(columns: pa.Schema, format: str, place: str) -> None:
    """Raise SinkError where files of a format cannot have columns of these types.

    >>> check_types(pa.schema([("v", pa.month_day_nano_interval())]), "json", "query q")
    """
    unlike = [f"{field.name} ({field.type})" for field in columns if not _takes(format, field.type)]
    if unlike:
        raise SinkError(
            f"{format} files cannot have columns of these types: {', '.join(unlike)}",
            place=place,
            remedy="leave these columns out of SELECT, or cast them; "
            'a sink of files with format = "json" takes every type',
        )


@lru_cache(maxsize=1 << 10)
def _takes(format: str, kind: pa.DataType) -> bool:
    # Only a format's writer knows which types it does not have.
    try:
        written(pa.table({"value": pa.nulls(1, kind)}), format)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False
    return True


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
        for lines in _json_lines(pa.table(batch)):
            file.write(lines)


def json_objects(rows: pa.Table) -> list[bytes]:
    """Write each row as the JSON object that a file of `written` has; columns that are NULL are left out.

    >>> json_objects(pa.table({"k": [1, 2], "v": ["a\\nb", None]}))
    [b'{"k": 1, "v": "a\\\\nb"}', b'{"k": 2}']
    """
    # No line break stands in an object as it is.
    return b"".join(_json_lines(rows)).split(b"\n")[:-1]


def _json_lines(rows: pa.Table) -> list[bytes]:
    """Put the lines together by columns, with few joins: texts that follow each other are one."""
    if not rows.num_columns:
        return [b"{}\n" * rows.num_rows]
    parts, literal = list[pa.ChunkedArray](), "{"
    for at, name in enumerate(rows.column_names):
        column = rows.column(at)
        quote, texts = _json_parts(column)
        before = f"{json.dumps(name, ensure_ascii=False)}: {quote}"
        if column.null_count:
            own = pc.coalesce(_joined(_large(before), texts, _large(f"{quote}, ")), _large(""))
            parts, literal = [*parts, _large(literal), own], ""
        else:
            parts = [*parts, _large(literal + before), texts]
            literal = quote if at == rows.num_columns - 1 else f"{quote}, "
    if rows.column(-1).null_count:
        parts = [pc.ascii_rtrim(_joined(*parts), ", ")]
    return [_data(chunk).tobytes() for chunk in _joined(*parts, _large(literal + "}\n")).chunks]


def _json_parts(column: pa.ChunkedArray) -> tuple[str, pa.ChunkedArray]:
    """Return what stands around each JSON text of a column, and the rest of the texts; NULL stays NULL."""
    kind = column.type
    if pt.is_dictionary(kind):
        return _json_parts(column.cast(kind.value_type))
    if pt.is_integer(kind) or pt.is_boolean(kind):
        return "", column.cast(pa.large_string())
    if pt.is_decimal(kind):
        return '"', column.cast(pa.large_string())
    if pt.is_timestamp(kind):
        return '"', _texts_of_times(column).cast(pa.large_string())
    if (pt.is_string(kind) or pt.is_large_string(kind)) and _are_plain(column):
        return '"', column.cast(pa.large_string())
    return "", pa.chunked_array([json_texts(column).cast(pa.large_string())])


def _are_plain(texts: pa.ChunkedArray) -> bool:
    # Quotes, backslashes and control characters do not stand in a text of JSON as they are.
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    chunks = [_data(chunk) for chunk in texts.cast(pa.large_string()).chunks]
    return not any(((data < 0x20) | (data == ord('"')) | (data == ord("\\"))).any() for data in chunks)


def _data(texts: pa.LargeStringArray) -> np.ndarray[Any, np.dtype[np.uint8]]:
    # The bytes of all texts, one after the other.
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return np.empty(0, np.uint8)
    begin, end = np.frombuffer(offsets, np.int64)[[texts.offset, texts.offset + len(texts)]]
    return np.frombuffer(data, np.uint8)[begin:end]


def _joined(*parts: pa.Scalar | pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*parts, _large(""))


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


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
    """Convert the values of a column to JSON texts; NULL stays NULL."""
    values = _values(column)
    if pt.is_float64(column.type) and pc.all(pc.is_finite(column)).as_py():
        return pa.array([None if value is None else repr(value) for value in values], pa.string())
    return pa.array([None if value is None else _dumped(value) for value in values], pa.string())


def _texts(table: pa.Table) -> list[str]:
    return [field.name for field in table.schema if pt.is_string(field.type) or pt.is_large_string(field.type)]


def _whole_numbers(table: pa.Table) -> list[str]:
    # As which Parquet stores these types.
    kinds = (pt.is_integer, pt.is_timestamp, pt.is_date, pt.is_time)
    return [field.name for field in table.schema if any(holds(field.type) for holds in kinds)]


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    # Timestamps become text in Arrow, which is faster than Python; Python has no type for nanoseconds, so they become
    # integers.
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = _as_utc(column)
    kind = column.type
    if pt.is_timestamp(kind):
        return _texts_of_times(column).to_pylist()  # type: ignore[no-any-return]
    counted = _with(kind, _counted)
    if counted == kind:
        return python_values(column)
    return [_told(kind, value) for value in column.cast(counted).to_pylist()]


def _texts_of_times(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    column = _as_utc(column)
    kind = column.type
    fine = pa.timestamp("ns" if kind.unit == "ns" else "us", kind.tz)
    return pc.strftime(column.cast(fine), format=f"%Y-%m-%dT%H:%M:%S{'Z' if kind.tz else ''}")


def _as_utc(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    kind = _with(column.type, _in_utc)
    return column if column.type == kind else column.cast(kind)


def _with(kind: pa.DataType, plain: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    # Replaces each plain type, at any depth of nesting.
    if pt.is_map(kind):
        return pa.map_(_with(kind.key_type, plain), _with(kind.item_type, plain))
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_with(field.type, plain)) for field in kind])
    for holds, made in ((pt.is_list, pa.list_), (pt.is_large_list, pa.large_list)):
        if holds(kind):
            return made(kind.value_field.with_type(_with(kind.value_type, plain)))
    if pt.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(_with(kind.value_type, plain)), kind.list_size)
    return plain(kind)


def _in_utc(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp(kind.unit, "UTC") if pt.is_timestamp(kind) and kind.tz else kind


def _counted(kind: pa.DataType) -> pa.DataType:
    # Times in nanoseconds become integers.
    counts = (pt.is_timestamp(kind) or pt.is_time64(kind) or pt.is_duration(kind)) and kind.unit == "ns"
    return pa.int64() if counts else kind


def _told(kind: pa.DataType, value: Any) -> Any:
    # Of a type whose times are `_counted`: these become text.
    if value is None or _with(kind, _counted) == kind:
        return value
    if pt.is_map(kind):
        return [(_told(kind.key_type, key), _told(kind.item_type, item)) for key, item in value]
    if pt.is_struct(kind):
        return {field.name: _told(field.type, value[field.name]) for field in kind}
    if pt.is_nested(kind):
        return [_told(kind.value_type, item) for item in value]
    seconds, rest = divmod(value, 1_000_000_000)
    whole = datetime.timedelta(seconds=seconds)
    if pt.is_duration(kind):
        return f"{whole}.{rest:09}"
    moment = datetime.datetime(1970, 1, 1) + whole
    if pt.is_time(kind):
        return f"{moment.time()}.{rest:09}"
    return f"{moment.isoformat()}.{rest:09}{'+00:00' if kind.tz else ''}"


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


def parquet_rows(data: pa.Buffer | bytes, place: str) -> pa.Table:
    """Read the rows of a file that has these data; raises `SinkError` where it is damaged."""
    try:
        return pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise SinkError(
            "the file is damaged: midstream cannot read the file as Parquet", place=place,
            remedy="restore the file from a backup, or move the file away: its rows are then lost",
        ) from error  # fmt: skip
