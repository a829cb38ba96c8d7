"""Values under evaluation: an Arrow array, or an Arrow scalar that stands for every row.

`Datum` is `pa.Array | pa.Scalar`; pyarrow carries no types for mypy to see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.types import family

Datum: TypeAlias = Any
Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

STORED_AS_NUMBERS = frozenset({"integer", "float", "date", "time", "timestamp", "duration"})


def is_scalar(datum: Datum) -> bool:
    """Whether a datum stands for every row."""
    return isinstance(datum, pa.Scalar)


def column_of(datum: Datum, rows: int) -> pa.Array:
    """The datum as an array of so many rows."""
    if not isinstance(datum, pa.Scalar):
        return datum
    return pa.repeat(datum, rows) if datum.is_valid else pa.nulls(rows, datum.type)


def storage_type(type: pa.DataType) -> pa.DataType:
    """The number type that a date, a time, a timestamp or a duration is stored as."""
    if family(type) in ("integer", "float"):
        return type
    return pa.int32() if type.bit_width == 32 else pa.int64()


def storage(datum: Datum) -> Datum:
    """A number, date or time as the number it is stored as; no copy."""
    target = storage_type(datum.type)
    if datum.type == target:
        return datum
    if isinstance(datum, pa.Scalar):
        return pa.scalar(datum.value if datum.is_valid else None, target)
    return datum.view(target)


def restore(datum: Datum, type: pa.DataType) -> Datum:
    """The inverse of `storage`."""
    if datum.type == type:
        return datum
    return datum.cast(type) if isinstance(datum, pa.Scalar) else datum.view(type)


def values(datum: Datum) -> Values:
    """The stored numbers as numpy sees them, without a copy where nothing is NULL; anything where a row is NULL."""
    plain = storage(datum)
    if isinstance(plain, pa.Scalar):
        return np.asarray(plain.as_py() if plain.is_valid else 0, dtype=plain.type.to_pandas_dtype())
    if plain.null_count:
        plain = pc.fill_null(plain, pa.scalar(0, plain.type))
    found: Values = plain.to_numpy(zero_copy_only=False)
    return found


def valid(*data: Datum) -> Mask | None:
    """Where no datum is NULL; None if nowhere one is."""
    result: Mask | None = None
    for datum in data:
        if datum.null_count if isinstance(datum, pa.Array) else not datum.is_valid:
            here = np.asarray(pc.is_valid(datum)) if isinstance(datum, pa.Array) else np.asarray(False)
            result = here if result is None else result & here
    return result


def build(numbers: Values, mask: Mask | None, type: pa.DataType) -> Datum:
    """The datum of stored numbers, NULL where the mask is False; a scalar if the numbers have no dimension."""
    flat = np.atleast_1d(numbers)
    hidden = None if mask is None else np.broadcast_to(~mask, flat.shape)
    array = restore(pa.array(flat, storage_type(type) if type != pa.bool_() else type, mask=hidden), type)
    return array[0] if np.ndim(numbers) == 0 else array


def lift(function: Callable[..., Values], type: pa.DataType, *data: Datum, ok: Mask | None = None) -> Datum:
    """A numpy function over stored numbers, NULL where an argument is NULL or `ok` is False."""
    mask = valid(*data)
    if ok is not None and not ok.all():
        mask = ok if mask is None else mask & ok
    with np.errstate(all="ignore"):
        return build(np.asarray(function(*(values(d) for d in data))), mask, type)


def by_row(function: Callable[..., Any], type: pa.DataType, *data: Datum) -> Datum:
    """A Python function over rows without NULL: the slow way, for what has no kernel; None or an error is NULL."""

    def one(*row: Any) -> Any:
        if any(value is None for value in row):
            return None
        try:
            return function(*row)
        except (ArithmeticError, ValueError):
            return None

    if all(is_scalar(d) for d in data):
        return pa.scalar(one(*(d.as_py() for d in data)), type)
    rows = max(len(d) for d in data if isinstance(d, pa.Array))
    columns = [d.to_pylist() if isinstance(d, pa.Array) else [d.as_py()] * rows for d in data]
    return pa.array([one(*row) for row in zip(*columns, strict=True)], type)
