"""What can be pushed besides Arrow tables: data frames, batches, readers, lists of dicts; no package is imported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.types as pt

from midstream.admission.given import NO_VALUES, column_of, rows_too_deep, shown
from midstream.model.errors import InputError
from midstream.model.schema import StreamSchema


@runtime_checkable
class ArrowStream(Protocol):
    """Gives its rows through Arrow's PyCapsule interface: frames of pandas and Polars, results of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with a stream of record batches."""


@runtime_checkable
class ArrowArray(Protocol):
    """The same for a single record batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return capsules with a schema and an array."""


Rows: TypeAlias = (
    pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream | ArrowArray | Sequence[Mapping[str, Any]]
)
"""What a stream's rows may be given as."""

NO_STREAMS: Mapping[str, StreamSchema] = {}

_KINDS = "a pyarrow table, batch or reader, a frame of pandas or Polars, or a list of dicts"


def tables_of(
    given: Mapping[str, Rows] | None, streams: Mapping[str, StreamSchema] = NO_STREAMS
) -> dict[str, pa.Table]:
    """Convert the rows of each stream to an Arrow table; raises an `InputError` for values without rows and columns.

    Of a list of dicts a key that a row lacks is NULL. Each value is read by itself as its column is declared, so that
    one that is none of the type is a dead letter, as from anywhere else, and changes no other. A column that
    no stream declares must have values of one type. An empty list brings nothing.

    >>> tables_of({"A": [{"k": 1}, {"k": 2, "v": 2.5}], "B": []})["A"].to_pydict()
    {'k': [1, 2], 'v': [None, 2.5]}
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(
            f"push needs a mapping from streams to rows, not a {type(given).__name__}",
            place="push",
            remedy='name the stream of the rows: engine.push({"A": rows})',
        )
    found = {name: _table(_STREAM, name, rows, streams.get(name)) for name, rows in given.items()}
    return {name: table for name, table in found.items() if table is not None}


def static_rows(name: str, rows: Rows) -> pa.Table | None:
    """Convert the rows of a static table to an Arrow table; None for no columns.

    Each column of a list of dicts must have values of one type.
    """
    return _table(_TABLE, name, rows, None)


_Words: TypeAlias = tuple[str, str, str]
"""What is given rows, where that is done, and what to do, for messages."""

_STREAM: _Words = ("stream", "push, stream", f"push {_KINDS}")
_TABLE: _Words = ("table", "table", f"give {_KINDS}; each column of dicts has values of one type")


def _table(words: _Words, name: str, rows: Any, stream: StreamSchema | None) -> pa.Table | None:
    if isinstance(rows, pa.Table):
        return rows
    what, place, remedy = words
    try:
        if isinstance(rows, pa.RecordBatch):
            return pa.Table.from_batches([rows])
        if isinstance(rows, list | tuple):
            return _of_dicts(words, name, rows, stream) if rows else None
        # A class has these too, but no rows.
        if isinstance(rows, ArrowStream | ArrowArray) and not isinstance(rows, type):
            return _plain(pa.table(rows))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"the rows of {what} {name!r} cannot be read: {str(error) or type(error).__name__}",
            place=f"{place} {name}",
            remedy=remedy,
        ) from error
    raise InputError(
        f"a {type(rows).__name__} cannot be the rows of {what} {name!r}", place=f"{place} {name}", remedy=remedy
    )


def _of_dicts(words: _Words, name: str, rows: Sequence[Any], stream: StreamSchema | None) -> pa.Table:
    what, place, _ = words
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(
                f"row {number} of {what} {name!r} is a {type(row).__name__}, not a dict of its columns",
                place=f"{place} {name}",
                remedy='give each row as {"column": value, ...}',
            )
    columns = dict.fromkeys(str(column) for row in rows for column in row)
    given = {column: [row.get(column) for row in rows] for column in columns}
    if stream is None:
        return pa.table({column: _of_one_type(column, values) for column, values in given.items()})
    declared = {field.name: field for field in stream.columns}
    return pa.table(
        {
            column: column_of(values, declared[column]) if column in declared else _not_read(values)
            for column, values in given.items()
        }
    )


def _of_one_type(column: str, values: list[Any]) -> pa.Array:
    # Arrow may change a value to make it fit: what comes back must be what was given.
    classes = {*map(type, values)} - {type(None)}
    try:
        found = pa.array(values)
    except NO_VALUES:
        if len(classes) == 1 and not any(issubclass(one, int | Collection) for one in classes):
            return _texts(values)
    else:
        pairs = zip(values, found.to_pylist(), strict=True)
        if len(classes) < 2 or all(given == kept or given != given for given, kept in pairs):
            return found
    named = ", ".join(sorted(one.__name__ for one in classes))
    raise ValueError(f"no column type fits all values of {column!r} ({named})")


def _not_read(values: list[Any]) -> pa.Array:
    # The stream does not have the column: its values are for the dead letters to show.
    if deep := rows_too_deep(values):
        values = [None if row in deep else value for row, value in enumerate(values)]
    try:
        return pa.array(values)
    except NO_VALUES:
        return _texts(values)


def _texts(values: list[Any]) -> pa.Array:
    return pa.array([shown(value) for value in values], pa.string())


def _plain(table: pa.Table) -> pa.Table:
    # Polars gives texts as views, which not all of Arrow's functions take.
    fields = [field.with_type(_without_view(field.type)) for field in table.schema]
    return table if fields == list(table.schema) else table.cast(pa.schema(fields))


def _without_view(kind: pa.DataType) -> pa.DataType:
    if pt.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pt.is_binary_view(kind) else kind
