"""How many bytes values are, whatever a host adds to send them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.ring.columns import Words


def value_sizes(column: pa.Array) -> Words:
    """The bytes of each value: those of a text or a list are its own, a NULL of them has none.

    >>> value_sizes(pa.array(["ab", None, ""])), value_sizes(pa.array([1, None])), value_sizes(pa.array([[1.0], []]))
    (array([2, 0, 0]), array([8, 8]), array([8, 0]))
    """
    kind = column.type
    if pt.is_dictionary(kind):
        return value_sizes(column.dictionary_decode())
    if pt.is_string(kind) or pt.is_binary(kind) or pt.is_large_string(kind) or pt.is_large_binary(kind):
        return _numbers(pc.binary_length(column))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        counts = _numbers(pc.list_value_length(column))
        until = np.concatenate([[0], np.cumsum(value_sizes(column.flatten()))])
        ends = np.cumsum(counts)
        return np.asarray(until[ends] - until[ends - counts], np.int64)
    if pt.is_struct(kind):
        return np.asarray(sum(map(value_sizes, column.flatten()), np.zeros(len(column), np.int64)), np.int64)
    try:
        width = (kind.bit_width + 7) // 8
    except ValueError:  # A NULL type, or one that no value's size is known of.
        width = 0
    return np.full(len(column), width, np.int64)


def _numbers(counts: pa.Array) -> Words:
    return np.asarray(pc.fill_null(counts, 0).to_numpy(zero_copy_only=False), np.int64)
