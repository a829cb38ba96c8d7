"""Sums that do not wrap: what does not fit its type is NULL."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

Words = npt.NDArray[np.int64]

HALF = 32


def as_double(values: pa.Array) -> pa.Array:
    """Numbers as doubles, to the nearest where a number has more digits."""
    return values if pt.is_float64(values.type) else pc.cast(values, pa.float64(), safe=False)


def exact_sum(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """The sum of integers as int64 or of decimals as decimal(38, s) per group; NULL for a group without values.

    >>> exact_sum(pa.array([2**62, 2**62, 5]), np.array([0, 0, 2]), 3).to_pylist()
    [None, None, 5]
    """
    if pt.is_decimal(values.type):
        return _decimal_sum(values, owner, groups)
    return _integer_sum(values, owner, groups)


def _integer_sum(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    """Upper and lower halves are summed apart; neither can overflow below two milliard rows."""
    unsigned = pt.is_unsigned_integer(values.type)
    numbers = values.cast(pa.uint64() if unsigned else pa.int64()).to_numpy(zero_copy_only=False)
    upper, lower = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    np.add.at(upper, owner, (numbers >> HALF).astype(np.int64))
    np.add.at(lower, owner, (numbers & 0xFFFFFFFF).astype(np.int64))
    upper += lower >> HALF
    fits = (upper >= -(1 << (HALF - 1))) & (upper < 1 << (HALF - 1))
    total = (np.where(fits, upper, 0) << HALF) + (lower & 0xFFFFFFFF)
    empty = np.bincount(owner, minlength=groups) == 0
    return pa.array(total, mask=empty | ~fits)


def _decimal_sum(values: pa.Array, owner: Words, groups: int) -> pa.Array:
    scale = values.type.scale
    wide = pa.table({"owner": owner, "value": values.cast(pa.decimal256(76, scale))})
    summed = wide.group_by("owner", use_threads=False).aggregate([("value", "sum")])
    found: list[object] = [None] * groups
    for group, total in zip(summed["owner"].to_pylist(), summed["value_sum"].to_pylist(), strict=True):
        found[group] = total if len(total.as_tuple().digits) <= 38 else None
    return pa.array(found, pa.decimal128(38, scale))
