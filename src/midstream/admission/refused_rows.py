"""Late rows and dead letters as tables: rows that did not enter, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from midstream.admission.mixed import with_texts
from midstream.model.python_values import BEYOND_PYTHON, python_values
from midstream.model.schema import without_runs
from midstream.state.base_state import TIME

WATERMARK, REASON = "_watermark", "_reason"
FILE = "_file"
"""The column of dead letters that says which file a row is of."""
TOPIC, PARTITION, OFFSET = "_topic", "_partition", "_offset"
"""The columns next to the rows of a topic: of dead letters they say which message each is; each partition has a
watermark of its own.
"""
CORRUPT, NO_OBJECT = "_corrupt_record", "the line is not a JSON object"
"""The column of dead letters that has lines which are not JSON, and the reason of these."""
UNREAD = "the file cannot be read"
"""How the reason of a file begins that cannot be read at all, and is one dead letter."""
ROWS_KEPT = 100_000
"""Late rows, and dead letters, of a stream that an engine without a checkpoint keeps: a stream has no end."""


def late_rows(rows: pa.RecordBatch, watermark: int, kind: pa.DataType) -> pa.Table:
    """Make a table of rows that arrived too late, with the `_watermark` they missed, of the type `kind`.

    `_ts` is left out. What a Parquet file cannot hold is a text, as in dead letters.
    """
    mark = pa.array(np.full(rows.num_rows, watermark)).cast(kind)
    names = [name for name in rows.schema.names if name != TIME]
    return storable(pa.Table.from_batches([rows.select(names).append_column(WATERMARK, mark)]))


def dead_letters(rows: pa.Table, reasons: Sequence[str]) -> pa.Table:
    """Make a table of rows that could not be read, in their original form, with the `_reason`."""
    return rows.append_column(REASON, pa.array(reasons, pa.string()))


def storable(rows: pa.Table) -> pa.Table:
    """Convert columns to texts that are of a type that Parquet files have not."""
    return _as_text(rows, [field.name for field in rows.schema if not _has_files(field.type)])


def readable(rows: pa.Table) -> pa.Table:
    """Convert columns to texts that Python, or a Parquet file, cannot hold as they are."""
    return _as_text(rows, [name for name in rows.column_names if not _is_readable(rows.column(name))])


def all_texts(rows: pa.Table) -> pa.Table:
    """Turn all columns of rows into texts."""
    return _as_text(with_texts(without_runs(rows)), rows.column_names)


def _is_readable(column: pa.ChunkedArray) -> bool:
    if not _has_files(column.type):
        return False
    if pt.is_integer(column.type) or pt.is_floating(column.type):
        return True
    try:
        column.to_pylist()
    except BEYOND_PYTHON:
        return False
    return True


def _has_files(kind: pa.DataType) -> bool:
    if pt.is_nested(kind):
        parts = [kind.field(at).type for at in range(kind.num_fields)]
        views = pt.is_list_view(kind) or pt.is_large_list_view(kind)
        return bool(parts) and not (views or pt.is_union(kind)) and all(map(_has_files, parts))
    return not (pt.is_interval(kind) or (pt.is_decimal(kind) and kind.scale < 0))


def appended(
    kept: Mapping[str, pa.Table], added: Mapping[str, pa.Table], most: int | None = None
) -> dict[str, pa.Table]:
    """Append a step's rows to those kept so far, by stream, in whatever types they arrived. Keep the newest `most`,
    or all."""
    if not added:
        return {**kept}
    joined = {name: _joined(kept[name], rows) if name in kept else rows for name, rows in added.items()}
    if most is not None:
        joined = {name: rows.slice(max(0, rows.num_rows - most)) for name, rows in joined.items()}
    return {**kept, **joined}


_OF_QUERY = "query "


def of_queries(rejected: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Name dead letters of queries so that they can be kept with those of streams, which may have equal names."""
    return {_OF_QUERY + name: rows for name, rows in rejected.items()}


def by_name(kept: Mapping[str, pa.Table], streams: Collection[str]) -> dict[str, pa.Table]:
    """Name dead letters of streams and `of_queries` for users; a query with a stream's name becomes `query name`.

    >>> sorted(by_name({"A": pa.table({}), **of_queries({"A": pa.table({}), "q": pa.table({})})}, ["A"]))
    ['A', 'q', 'query A']
    """
    found: dict[str, pa.Table] = {}
    for key, rows in kept.items():
        name = key.removeprefix(_OF_QUERY)
        found = appended(found, {key if key in streams or name in streams else name: rows})
    return found


def apart(shown: Mapping[str, pa.Table], streams: Collection[str]) -> dict[str, pa.Table]:
    """Restore the names under which dead letters are kept from those that `by_name` gave.

    >>> sorted(apart({"A": pa.table({}), "q": pa.table({}), "query A": pa.table({}), "query q": pa.table({})}, ["A"]))
    ['A', 'query A', 'query q', 'query query q']
    """
    own = {name: rows for name, rows in shown.items() if name in streams}
    others = {_query_of(name, streams): rows for name, rows in shown.items() if name not in streams}
    return {**own, **of_queries(others)}


def _query_of(shown: str, streams: Collection[str]) -> str:
    # A query has another shown name only where a stream has its name.
    name = shown.removeprefix(_OF_QUERY)
    return name if name in streams else shown


def _joined(kept: pa.Table, added: pa.Table) -> pa.Table:
    # A column that arrived in two types that Arrow cannot unite becomes text.
    try:
        return pa.concat_tables([kept, added], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        shared = [name for name in kept.column_names if name in added.column_names]
        clashing = [name for name in shared if kept.schema.field(name).type != added.schema.field(name).type]
        pieces = [_as_text(table, clashing) for table in (kept, added)]
        return pa.concat_tables(pieces, promote_options="permissive")


def _as_text(table: pa.Table, names: list[str]) -> pa.Table:
    for name in names:
        values = [None if value is None else str(value) for value in python_values(table.column(name))]
        table = table.set_column(table.column_names.index(name), name, pa.array(values, pa.string()))
    return table
