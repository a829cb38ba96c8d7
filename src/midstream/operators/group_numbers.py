"""Groups of rows: each row gets the number of the group that its values make up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from midstream.expr.kernels.nested_keys import nested_key
from midstream.operators.collected import canonical, told_apart
from midstream.state.combinations import Words

_DENSE = 4
"""Whole numbers are their own codes where their range is at most so many times their number."""


def codes_of(column: pa.Array) -> Words:
    """Small numbers that are equal exactly where the values are, NULL being equal to NULL."""
    if (pt.is_integer(column.type) or pt.is_temporal(column.type)) and column.type.bit_width == 64:
        offsets = _offsets(column)
        if offsets is not None:
            return offsets
    if pt.is_nested(column.type):
        return codes_of(nested_key(pa.binary(), column))
    plain = canonical(column) if pt.is_floating(column.type) else told_apart(column)
    return np.asarray(plain.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False), np.int64)


def _offsets(column: pa.Array) -> Words | None:
    """Return how much each value exceeds the least one; None if there are NULLs, or if values lie far apart."""
    if column.null_count or not len(column):
        return None
    values = column.view(pa.int64()).to_numpy()
    least, greatest = int(values.min()), int(values.max())
    return values - least if greatest - least < _DENSE * len(values) else None


def group_numbers(instants: pa.Array, groups: Sequence[pa.Array]) -> tuple[Words, pa.Array]:
    """For each row the number of its group, and for each group its first row; groups in order of instant."""
    numbers, size = np.zeros(len(instants), np.int64), 1
    for column in (instants, *groups):
        codes = codes_of(column)
        most = int(codes.max(initial=0)) + 1
        if size * most >= 2**63:
            numbers = codes_of(pa.array(numbers))
            size = int(numbers.max(initial=0)) + 1
        numbers, size = numbers * most + codes if size > 1 else codes, size * most
    numbers = codes_of(pa.array(numbers))
    first = np.full(int(numbers.max(initial=-1)) + 1, -1, np.int64)
    # Of several that are put in one place the last remains.
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    there = np.flatnonzero(first >= 0)
    order = there[np.lexsort((first[there], instants.to_numpy()[first[there]]))]
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(order))
    return rank[numbers], pa.array(first[order])
