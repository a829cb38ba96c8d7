"""How many bytes values are, whatever a host adds to send them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.ring.columns import Words


def value_sizes(column: pa.Array) -> Words:
    """Compute the bytes of each value; texts and lists differ in size, and a NULL of them has none.

    >>> value_sizes(pa.array(["ab", None, ""])), value_sizes(pa.array([1, None])), value_sizes(pa.array([[1.0], []]))
    (array([2, 0, 0]), array([8, 8]), array([8, 0]))
    """
    kind = column.type
    if pt.is_dictionary(kind):
        return value_sizes(column.dictionary_decode())
    if _is_varying(kind):
        return _numbers(pc.binary_length(column))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        counts = _numbers(pc.list_value_length(column))
        until = np.concatenate([[0], np.cumsum(value_sizes(column.flatten()))])
        ends = np.cumsum(counts)
        return np.asarray(until[ends] - until[ends - counts], np.int64)
    if pt.is_struct(kind):
        return np.asarray(sum(map(value_sizes, column.flatten()), np.zeros(len(column), np.int64)), np.int64)
    return np.full(len(column), fixed_size(kind) or 0, np.int64)


def fixed_size(kind: pa.DataType) -> int | None:
    """Return the bytes of a value of this type; None where values differ.

    >>> fixed_size(pa.int32()), fixed_size(pa.null()), fixed_size(pa.string())
    (4, 0, None)
    """
    if pt.is_nested(kind) or pt.is_dictionary(kind) or _is_varying(kind):
        return None
    try:
        return int(kind.bit_width + 7) // 8
    except ValueError:  # A NULL type, or one that no value's size is known of.
        return 0


def _is_varying(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_string(kind) or pt.is_large_binary(kind))


def _numbers(counts: pa.Array) -> Words:
    return np.asarray(pc.fill_null(counts, 0).to_numpy(zero_copy_only=False), np.int64)
