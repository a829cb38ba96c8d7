"""Parts of nested values: fields of structs, items of lists, values of maps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.language.kernels.datum import Datum


def field(type: pa.DataType, struct: Datum, name: pa.Scalar) -> Datum:
    """The field of each struct; NULL where the struct is.

    >>> field(pa.int64(), pa.array([{"n": 1}, None]), pa.scalar("n")).to_pylist()
    [1, None]
    """
    return pc.struct_field(struct, name.as_py())


def item(type: pa.DataType, lists: Datum, position: pa.Scalar) -> Datum:
    """The item of each list at a position, from 1, or from -1 at the end; NULL where there is none.

    >>> [item(pa.int64(), pa.array([[1, 2], [], None]), pa.scalar(at)).to_pylist() for at in (2, -2)]
    [[2, None, None], [1, None, None]]
    """
    at = position.as_py()
    if pa.types.is_fixed_size_list(lists.type):
        lists = lists.cast(pa.list_(type))
    offsets = np.asarray(lists.offsets, np.int64)
    found = offsets[:-1] + at - 1 if at > 0 else offsets[1:] + at
    there = np.asarray(pc.is_valid(lists)) & (found >= offsets[:-1]) & (found < offsets[1:])
    return lists.values.take(pa.array(found, mask=~there))


def entry(type: pa.DataType, maps: Datum, key: pa.Scalar) -> Datum:
    """The value that each map has under a key; NULL where it has none.

    >>> entry(pa.int64(), pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), pa.scalar("a")).to_pylist()
    [1, None]
    """
    return pc.map_lookup(maps, query_key=key, occurrence="first")
