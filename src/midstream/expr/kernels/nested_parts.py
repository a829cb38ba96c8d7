"""Parts of nested values: fields of structs, items of lists, values of maps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.kernels.datum import Datum, is_scalar


def field(type: pa.DataType, struct: Datum, name: pa.Scalar) -> Datum:
    """The field of each struct; NULL where the struct is.

    >>> field(pa.int64(), pa.array([{"n": 1}, None]), pa.scalar("n")).to_pylist()
    [1, None]
    """
    return pc.struct_field(struct, name.as_py())


def item(type: pa.DataType, lists: Datum, position: Datum) -> Datum:
    """The item of each list at a position, from 1, or from -1 at the end; NULL where there is none.

    >>> [item(pa.int64(), pa.array([[1, 2], [], None]), pa.scalar(at)).to_pylist() for at in (2, -2)]
    [[2, None, None], [1, None, None]]
    """
    if is_scalar(lists) and is_scalar(position):
        return item(type, pa.array([lists.as_py()], lists.type), position)[0]
    lists, position = _as_long(lists, position)
    if pa.types.is_fixed_size_list(lists.type):
        lists = lists.cast(pa.list_(type))
    at = np.asarray(pc.fill_null(position, 0), np.int64)
    offsets = np.asarray(lists.offsets, np.int64)
    begin, end = offsets[:-1], offsets[1:]
    found = np.where(at > 0, begin + at - 1, end + at)
    there = np.asarray(pc.is_valid(lists)) & (at != 0) & (found >= begin) & (found < end)
    return lists.values.take(pa.array(found, mask=~there))


def _as_long(one: Datum, other: Datum) -> tuple[pa.Array, pa.Array]:
    rows = max(len(datum) if isinstance(datum, pa.Array) else 1 for datum in (one, other))
    first, second = (pa.repeat(datum, rows) if isinstance(datum, pa.Scalar) else datum for datum in (one, other))
    return first, second


def count(type: pa.DataType, lists: Datum) -> Datum:
    """How many items each list or map has."""
    if pa.types.is_map(lists.type):
        lists = pa.ListArray.from_arrays(lists.offsets, lists.keys, mask=pc.is_null(lists))
    return pc.list_value_length(lists).cast(type)


def contains(type: pa.DataType, lists: Datum, value: Datum) -> Datum:
    """Whether a value is among the items of each list.

    >>> contains(pa.bool_(), pa.array([[1, 2], [None], None]), pa.scalar(2)).to_pylist()
    [True, False, None]
    """
    lists, value = _as_long(lists, value)
    if pa.types.is_fixed_size_list(lists.type):
        lists = lists.cast(pa.list_(lists.type.value_type))
    there = np.flatnonzero(np.asarray(pc.is_valid(lists)))
    # A list that is NULL may have items all the same, of which one of Arrow's functions knows and another does not.
    known, sought = lists.take(pa.array(there)), value.take(pa.array(there))
    rows = pc.list_parent_indices(known)
    same = np.asarray(pc.fill_null(pc.equal(pc.list_flatten(known), sought.take(rows)), False))
    found = np.zeros(len(lists), np.bool_)
    found[there[np.asarray(rows)[same]]] = True
    return pa.array(found, mask=np.asarray(pc.is_null(lists)) | np.asarray(pc.is_null(value)))


def entry(type: pa.DataType, maps: Datum, key: Datum) -> Datum:
    """The value that each map has under a key; NULL where it has none.

    >>> entry(pa.int64(), pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), pa.scalar("a")).to_pylist()
    [1, None]
    """
    if isinstance(key, pa.Scalar) and key.is_valid and not pa.types.is_floating(key.type):
        return pc.map_lookup(maps, query_key=key, occurrence="first")
    maps, key = _as_long(maps, key)
    offsets = np.asarray(maps.offsets, np.int64)
    lengths = np.where(np.asarray(pc.is_valid(maps)), np.diff(offsets), 0)
    row = np.repeat(np.arange(len(maps)), lengths)
    place = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(offsets[:-1], lengths)
    same = pc.equal(maps.keys.take(pa.array(place)), key.take(pa.array(row)))
    hits = np.flatnonzero(np.asarray(pc.fill_null(same, False)))
    rows, first = np.unique(row[hits], return_index=True)
    found = np.full(len(maps), -1, np.int64)
    found[rows] = place[hits[first]]
    return maps.items.take(pa.array(found, mask=found < 0))
