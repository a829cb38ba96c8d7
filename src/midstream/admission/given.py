"""Values of Python as a column of the declared type, each judged by itself: a bad value changes no other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from midstream.admission.mixed import Mixed, mixed, texts_of
from midstream.admission.reading import read_as, unlike
from midstream.model.columns_of_files import AlikeColumns, own_names
from midstream.model.python_values import python_values
from midstream.state.rows import one_batch

NO_VALUES = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What Arrow raises for values that it cannot put into one array."""

DEEPEST = 100
"""Levels of lists and structs that a value may have: what reads it, Arrow too, calls itself at each."""


def column_of(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Convert values to a column that is read as `field` declares.

    Values of one class are left as Arrow has them. Others are read at once, each as if it came alone: the column is of
    the declared type, or `Mixed` where some cannot be read.

    >>> column_of([1, "2", 3.0], pa.field("k", pa.int64())).to_pylist()
    [1, 2, 3]
    >>> column_of([[1], [2.5]], pa.field("l", pa.list_(pa.int64()))).storage.field("read").to_pylist()
    [[1], None]
    """
    if deep := rows_too_deep(values):
        kept = column_of([None if row in deep else value for row, value in enumerate(values)], field)
        reason = f"column {field.name!r}: the value is nested more than {DEEPEST} levels deep"
        return with_reasons(kept, field, dict.fromkeys(deep, reason))
    if not pt.is_nested(field.type) and len({*map(type, values)} - {type(None)}) < 2:
        try:
            return pa.array(values)
        except NO_VALUES:
            pass  # One of them may be at fault for all.
    reasons: dict[int, str] = {}
    read = _read(values, field, reasons)
    return _mixed(read, field, [shown(value) for value in values], reasons) if reasons else read


def rows_too_deep(values: Sequence[Any]) -> set[int]:
    """Return the rows of values that are nested more than `DEEPEST` levels deep.

    >>> endless = []
    >>> endless.append(endless)
    >>> rows_too_deep([[[1]], endless, {"x": 1}])
    {1}
    """
    if not any(issubclass(kind, list | tuple | Mapping) for kind in {*map(type, values)}):
        return set()
    found = {row: value for row, value in enumerate(values) if isinstance(value, list | tuple | Mapping)}
    return {row for row, value in found.items() if _is_too_deep(value)}


def _is_too_deep(value: Any) -> bool:
    level = {id(value): value}  # By their identity, because a value may be within itself.
    for _ in range(DEEPEST + 1):
        inner = (each for one in level.values() for each in (one.values() if isinstance(one, Mapping) else one))
        level = {id(each): each for each in inner if isinstance(each, list | tuple | Mapping)}
        if not level:
            return False
    return True


def judged(values: Sequence[Any], field: pa.Field, texts: Sequence[str | None]) -> pa.ExtensionArray:
    """Convert values of any kind to a column of `Mixed`; `texts` is how a dead letter shows them."""
    reasons: dict[int, str] = {}
    return _mixed(_read(values, field, reasons), field, texts, reasons)


def with_reasons(column: pa.Array, field: pa.Field, reasons: Mapping[int, str]) -> pa.ExtensionArray:
    """Read a column as declared, as `Mixed`; rows that have one of the `reasons` cannot be read for it."""
    found = dict(reasons)
    read = read_as(column, field, found)
    texts = texts_of(column) if isinstance(column.type, Mixed) else [shown(value) for value in python_values(column)]
    return mixed(read, texts, found)


def one_table(tables: Sequence[pa.Table], columns: pa.Schema) -> pa.Table:
    """Concatenate tables of a stream. A column that they have in several types is read as declared in each of them.

    >>> tables = [pa.table({"k": [1]}), pa.table({"k": ["2"]})]
    >>> one_table(tables, pa.schema([("k", pa.int64())])).column("k").to_pylist()
    [1, 2]
    """
    for field in columns:
        kinds = [table.schema.field(field.name).type for table in tables]
        if any(kind != kinds[0] for kind in kinds):
            tables = _read_apart(tables, field)
    return pa.concat_tables(tables, promote_options="permissive")


def _read_apart(tables: Sequence[pa.Table], field: pa.Field) -> list[pa.Table]:
    # If a value of one table cannot be read, the column is `Mixed` in all of them.
    given = [one_batch(table.select([field.name]), field.name).column(0) for table in tables]
    reasons = [dict[int, str]() for _ in given]
    read = [read_as(column, field, why) for column, why in zip(given, reasons, strict=True)]
    if any(reasons):
        read = [with_reasons(column, field, {}) for column in given]
    at = [table.schema.get_field_index(field.name) for table in tables]
    return [table.set_column(place, field.name, column) for table, place, column in zip(tables, at, read, strict=True)]


def _mixed(
    read: pa.Array, field: pa.Field, texts: Sequence[str | None], reasons: Mapping[int, str]
) -> pa.ExtensionArray:
    # The reason of a nested value is that of the whole of it.
    nested = pt.is_nested(field.type)
    return mixed(read, texts, {row: unlike(texts[row] or "", field) for row in reasons} if nested else reasons)


def shown(value: Any) -> str | None:
    """Show a value as a text, which holds nothing that cannot be written.

    >>> shown(2.5), shown(None), shown("\\ud800")
    ('2.5', None, '?')
    """
    return None if value is None else str(value).encode("utf-8", "replace").decode()


def _read(values: Sequence[Any], field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    # NULL for values that cannot be read, each of which gets one of the `reasons`.
    kind = field.type
    if pt.is_struct(kind):
        return _structs(values, field, reasons)
    if pt.is_map(kind):
        return _maps(values, field, reasons)
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _lists(values, field, reasons)
    classes: dict[type, list[int]] = {}
    for row, value in enumerate(values):
        classes.setdefault(type(value), []).append(row)
    found, order = [pa.nulls(0, kind)], list[int]()
    for rows in classes.values():
        within: dict[int, str] = {}
        found += _alike([values[row] for row in rows], field, 0, within)
        reasons.update({rows[at]: reason for at, reason in within.items()})
        order += rows
    return pa.concat_arrays(found).take(pa.array(np.argsort(np.array(order, np.int64))))


def _alike(values: list[Any], field: pa.Field, offset: int, reasons: dict[int, str]) -> list[pa.Array]:
    # Where Arrow has no array of the values, they are halved until it has.
    try:
        array = pa.array(values)
    except NO_VALUES:
        half = len(values) // 2
        if half:
            front = _alike(values[:half], field, offset, reasons)
            return front + _alike(values[half:], field, offset + half, reasons)
        # A number beyond 64 bits, or of a class that Arrow does not know, is what its text says.
        if isinstance(values[0], str | bytes | Collection) or pt.is_binary(field.type):
            reasons[offset] = unlike(shown(values[0]) or "", field)
            return [pa.nulls(1, field.type)]
        array = pa.array([shown(values[0])])
    within: dict[int, str] = {}
    found = read_as(array, field, within)
    reasons.update({offset + row: reason for row, reason in within.items()})
    return [found]


def _structs(values: Sequence[Any], field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    rows = _of_class(values, Mapping, field, reasons)
    rows = [None if row is None else _own_fields(row, field, at, reasons) for at, row in enumerate(rows)]
    parts = []
    for part in field.type.fields:
        parts.append(_read([None if row is None else row.get(part.name) for row in rows], part, reasons))
    gone = pa.array([row is None or at in reasons for at, row in enumerate(rows)], pa.bool_())
    if not parts:
        return pa.array(rows, field.type)
    return pa.StructArray.from_arrays(parts, fields=field.type.fields, mask=gone)


def _own_fields(row: Mapping[str, Any], field: pa.Field, at: int, reasons: dict[int, str]) -> Mapping[str, Any] | None:
    # In any case of letters; None, with a reason, where two fields could be meant, or only other fields have a value.
    names = [part.name for part in field.type.fields]
    if row.keys() <= set(names):
        return row
    try:
        own = own_names(names, [name for name in row if isinstance(name, str)])
    except AlikeColumns:
        own = {}
    found = {name: row[given] for name, given in own.items()}
    if any(value is not None for value in found.values()) or all(value is None for value in row.values()):
        return found
    reasons[at] = unlike(shown(row) or "", field)
    return None


def _lists(values: Sequence[Any], field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    rows = [None if row is None else list(row) for row in _of_class(values, list | tuple | np.ndarray, field, reasons)]
    read = _flat(rows, field.type.value_field, reasons)
    offsets, kept, gone = _offsets(rows, reasons)
    found = pa.ListArray.from_arrays(offsets, read.filter(kept), pa.list_(field.type.value_field), mask=gone)
    return found.cast(field.type)


def _maps(values: Sequence[Any], field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    # Maps are given as dicts, or as lists of pairs as Arrow gives them.
    rows = _of_class([_pairs(value) for value in values], list, field, reasons)
    for at, row in enumerate(rows):
        if row is not None and any(key is None for key, _ in row):
            reasons[at] = unlike(shown(row) or "", field)
    keys = _flat([row and [key for key, _ in row] for row in rows], field.type.key_field, reasons)
    items = _flat([row and [item for _, item in row] for row in rows], field.type.item_field, reasons)
    offsets, kept, gone = _offsets(rows, reasons)
    return pa.MapArray.from_arrays(offsets, keys.filter(kept), items.filter(kept), field.type, mask=gone)


def _pairs(value: Any) -> Any:
    # A list of other values than pairs becomes a tuple, so that it is not a map.
    if isinstance(value, Mapping):
        return list(value.items())
    if not isinstance(value, list | tuple):
        return value
    return list(value) if all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value) else tuple(value)


def _of_class(values: Sequence[Any], kind: Any, field: pa.Field, reasons: dict[int, str]) -> list[Any]:
    # None for those of another class.
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, kind):
            reasons[row] = unlike(shown(value) or "", field)
    return [value if isinstance(value, kind) else None for value in values]


def _flat(rows: Sequence[Sequence[Any] | None], field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    # A list in which something cannot be read has a reason.
    owners = [at for at, row in enumerate(rows) for _ in row or ()]
    within: dict[int, str] = {}
    read = _read([value for row in rows for value in row or ()], field, within)
    reasons.update({owners[at]: reason for at, reason in within.items()})
    return read


def _offsets(rows: Sequence[Sequence[Any] | None], reasons: Mapping[int, str]) -> tuple[pa.Array, pa.Array, pa.Array]:
    # Where lists begin in what is kept of all of them, which that is, and which lists are not there.
    lengths = [len(row or ()) for row in rows]
    good = np.array([row not in reasons for row in range(len(rows))], np.bool_)
    offsets = np.concatenate([[0], np.cumsum(np.array(lengths, np.int64) * good)])
    gone = [row is None or at in reasons for at, row in enumerate(rows)]
    return pa.array(offsets, pa.int32()), pa.array(np.repeat(good, lengths)), pa.array(gone, pa.bool_())
