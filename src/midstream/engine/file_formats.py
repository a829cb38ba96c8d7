"""Files of rows as Arrow tables: Parquet and ORC as they are, CSV and JSON lines as texts, read later as declared.

Rows are as Spark has them: the columns of a CSV file by their position, those of Parquet and ORC by their names, in
whatever case these are written, NULL for what is missing, times in microseconds. A line that is none of its format
becomes a row without values, hence a dead letter, with the line in `_corrupt_record`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet
import pyarrow.types as pt

from midstream.model.columns_of_files import AlikeColumns, decoded, own_names, refuse_alike, spelled
from midstream.model.errors import InputError
from midstream.step.admission.given import judged

CORRUPT = "_corrupt_record"
Options = Mapping[str, str]


def file_columns(data: pa.Buffer, place: str, format: str, options: Options) -> pa.Schema:
    """The columns of a file, those of a CSV file by its header; types of texts are what all values look like."""
    with _named(place):
        if format == "parquet":
            return _apart(pyarrow.parquet.read_schema(pa.BufferReader(data)).remove_metadata())
        if format == "orc":
            return _apart(_declarable(pyarrow.orc.ORCFile(pa.BufferReader(data)).schema))
        if format == "csv":
            parse = pyarrow.csv.ParseOptions(delimiter=_delimiter(options))
            return _declarable(pyarrow.csv.read_csv(pa.BufferReader(data), parse_options=parse).schema)
        return _apart(_declarable(pyarrow.json.read_json(pa.BufferReader(data)).schema))


def file_rows(data: pa.Buffer, place: str, format: str, columns: pa.Schema, options: Options) -> pa.Table:
    """The rows of a file in the declared columns; `place` is what an error names."""
    with _named(place):
        return READERS[format](data, columns, options)


@contextmanager
def _named(place: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, AlikeColumns) as error:
        raise InputError(
            f"the file cannot be read: {error}", place=place, remedy="replace it, or take it out of the folder"
        ) from error


def _declarable(columns: pa.Schema) -> pa.Schema:
    """The types that a schema text would declare."""
    kinds = {field.name: field.type for field in columns}
    for name, kind in kinds.items():
        if pt.is_timestamp(kind):
            kinds[name] = pa.timestamp("us", kind.tz)
        elif pt.is_null(kind):
            kinds[name] = pa.string()
    return pa.schema(list(kinds.items()))


def _delimiter(options: Options) -> str:
    return options.get("sep", options.get("delimiter", ","))


def _parquet(data: pa.Buffer, columns: pa.Schema, options: Options) -> pa.Table:
    opened = pyarrow.parquet.ParquetFile(pa.BufferReader(data))
    own = own_names(columns.names, opened.schema_arrow.names)
    rows = opened.read(list(own.values()))
    found = {name: _spelled(rows.column(given), columns.field(name).type) for name, given in own.items()}
    return _complete(found, columns, rows.num_rows)


def _orc(data: pa.Buffer, columns: pa.Schema, options: Options) -> pa.Table:
    opened = pyarrow.orc.ORCFile(pa.BufferReader(data))
    own = own_names(columns.names, opened.schema.names)
    rows = opened.read(list(own.values()))
    found = {
        name: _spelled(_in_microseconds(rows.column(given)), columns.field(name).type) for name, given in own.items()
    }
    return _complete(found, columns, rows.num_rows)


def _spelled(column: pa.ChunkedArray, declared: pa.DataType) -> pa.ChunkedArray:
    """The column with the fields of its structs called as they are declared: Arrow finds them by their very names."""
    kind = spelled(column.type, declared) if pt.is_nested(column.type) else column.type
    if kind == column.type:
        return column
    column, kind = column.cast(decoded(column.type)), decoded(kind)
    batches = (pa.record_batch([chunk], [""]).serialize() for chunk in column.chunks)
    return pa.chunked_array(
        [pa.ipc.read_record_batch(batch, pa.schema([("", kind)])).column(0) for batch in batches], kind
    )


def _apart(columns: pa.Schema) -> pa.Schema:
    """The columns of a file that nobody declared; raises where two of them differ only by case."""
    refuse_alike(columns.names)
    return columns


def _in_microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times without their nanoseconds, which the format always has."""
    return column.cast(pa.timestamp("us", column.type.tz), safe=False) if pt.is_timestamp(column.type) else column


def _csv(data: pa.Buffer, columns: pa.Schema, options: Options) -> pa.Table:
    delimiter = _delimiter(options)
    uneven: list[list[str]] = []

    def even(row: pyarrow.csv.InvalidRow) -> str:
        uneven.extend(csv.reader([row.text], delimiter=delimiter))
        return "skip"

    if not data.size:
        return _complete({}, columns, 0)
    header = options.get("header", "false").lower() == "true"
    rows = pyarrow.csv.read_csv(
        pa.BufferReader(data),
        pyarrow.csv.ReadOptions(column_names=columns.names, skip_rows=int(header), use_threads=False),
        pyarrow.csv.ParseOptions(delimiter=delimiter, invalid_row_handler=even),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(columns.names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    width = len(columns)
    padded = [[value or None for value in row[:width]] + [None] * (width - len(row)) for row in uneven]
    more = [pa.array([row[at] for row in padded], pa.string()) for at in range(width)]
    return pa.concat_tables([rows, pa.table(more, names=columns.names)]) if padded else rows


def _json(data: pa.Buffer, columns: pa.Schema, options: Options) -> pa.Table:
    lines = [line for line in data.to_pybytes().decode("utf-8").split("\n") if line.strip()]
    objects = [_object(line) for line in lines]
    found = {
        field.name: _column([None if one is None else one.get(field.name) for one in objects], field)
        for field in columns
    }
    rows = pa.table(found)
    if None not in objects:
        return rows
    corrupt = [line if one is None else None for line, one in zip(lines, objects, strict=True)]
    return rows.append_column(CORRUPT, pa.array(corrupt, pa.string()))


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line, parse_float=_Number, parse_int=_Number)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class _Number(str):
    """A number as it is written, so that no digit of it is lost."""


def _column(values: list[Any], field: pa.Field) -> pa.Array:
    texts = [_text(value) for value in values]
    return judged(values, field, texts) if pt.is_nested(field.type) else pa.array(texts, pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, _Number):
        return json.loads(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _complete(found: Mapping[str, pa.ChunkedArray], columns: pa.Schema, rows: int) -> pa.Table:
    """All declared columns, those that a file lacks with NULLs."""
    return pa.table({field.name: found.get(field.name, pa.nulls(rows, field.type)) for field in columns})


READERS: dict[str, Callable[[pa.Buffer, pa.Schema, Options], pa.Table]] = {
    "parquet": _parquet,
    "orc": _orc,
    "csv": _csv,
    "json": _json,
}
"""How each format is read."""
