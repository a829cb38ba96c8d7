"""Key codes: what a state is sorted and searched by."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from midstream.expr.kernels.nested_keys import nested_key
from midstream.state.gather import is_word
from midstream.state.xxhash import hash_bytes

Codes = npt.NDArray[np.int64] | npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


_INT64, _MICROSECONDS = pa.int64(), pa.timestamp("us")


DIGITS_OF_WORD = 18
"""Decimals of up to so many digits are words."""


def is_exact(types: Sequence[pa.DataType]) -> bool:
    """Return whether equal codes mean equal keys; otherwise candidates must be compared once more.

    >>> is_exact([pa.int32()]), is_exact([pa.string()]), is_exact([pa.int32(), pa.int32()])
    (True, False, False)
    """
    return len(types) == 1 and _is_own_code(types[0])


def key_codes(keys: Sequence[pa.Array]) -> tuple[npt.NDArray[np.int64], Mask | None]:
    """Compute one int64 per row for hash search: equal keys have equal codes, and NaN, -0.0 follow SQL equality.

    The mask marks rows whose key has no NULL; None means all of them. Codes of masked-out rows mean nothing.
    """
    codes = _column_codes(keys[0])
    for other in keys[1:]:
        mixed = (codes.view(np.uint64) ^ (codes.view(np.uint64) >> np.uint64(29))) * _MULTIPLIER
        codes = (mixed ^ _scramble(_column_codes(other))).view(np.int64)
    return codes, _valid(keys)


def band_codes(key: pa.Array) -> tuple[Codes, Mask | None]:
    """Compute an ordered number per row for range search: int64 for integers and times (microseconds), else float64."""
    if key.type == _MICROSECONDS and not key.null_count:
        return np.asarray(key.view(_INT64).to_numpy()), None
    if is_integral(key.type):
        return _integers(key), _valid([key])
    return _numbers(key if pt.is_float64(key.type) else key.cast(pa.float64(), safe=False)), _valid([key])


def is_integral(kind: pa.DataType) -> bool:
    """Return whether a type's band codes are integers."""
    return bool(pt.is_integer(kind) or pt.is_temporal(kind) or pt.is_boolean(kind))


FEW = 1_000
"""Up to so many values a merge sort is done sooner than words are packed for a faster one."""


def stable_sort(values: Codes, *, in_runs: bool = False) -> tuple[Indices, Codes]:
    """Sort values, ties in their present order; returns the indices and the sorted values.

    Packs value and index into one word where both fit, for then one plain sort does it, several times faster. Where
    `values` are a few ascending runs one behind the other, `in_runs` has them merged, which is faster still.

    >>> [a.tolist() for a in stable_sort(np.array([3, 1, 3, 2]))]
    [[1, 3, 0, 2], [1, 2, 3, 3]]
    """
    count = len(values)
    if count < 2:
        return np.arange(count), values
    if count > FEW and not in_runs and values.dtype == np.int64:
        low, high = int(values.min()), int(values.max())
        bits = (count - 1).bit_length()
        if (high - low).bit_length() + bits <= 63:
            packed: Indices = ((values.view(np.int64) - low) << bits) | np.arange(count)
            packed.sort()
            return packed & ((1 << bits) - 1), (packed >> bits) + low
    order = values.argsort(kind="stable")
    return order, values.take(order)


def stable_order(values: Codes, *, in_runs: bool = False) -> Indices:
    """Return the indices that sort `values`, ties in their present order; see `stable_sort`.

    >>> stable_order(np.array([3, 1, 3, 2])).tolist()
    [1, 3, 0, 2]
    """
    return stable_sort(values, in_runs=in_runs)[0]


def _is_own_code(kind: pa.DataType) -> bool:
    return is_word(kind) or bool(pt.is_boolean(kind))


def _valid(keys: Sequence[pa.Array]) -> Mask | None:
    valid: Mask | None = None
    for key in keys:
        if key.null_count:
            here = np.asarray(key.is_valid().to_numpy(zero_copy_only=False))
            valid = here if valid is None else valid & here
    return valid


def _column_codes(key: pa.Array) -> npt.NDArray[np.int64]:
    kind = key.type
    if kind == _INT64 and not key.null_count:
        return np.asarray(key.to_numpy())
    if pt.is_floating(kind):
        values = _numbers(key if pt.is_float64(kind) else key.cast(pa.float64())) + 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.int64)
    if _is_own_code(kind):
        return _words(key)
    return _bytes_codes(nested_key(pa.binary(), key) if pt.is_nested(kind) else key)


def _integers(key: pa.Array) -> npt.NDArray[np.int64]:
    kind = key.type
    if pt.is_timestamp(kind) and kind.unit != "us":
        key = key.cast(pa.timestamp("us", kind.tz), safe=False)
    elif pt.is_date(kind) or (pt.is_timestamp(kind) and kind.unit != "us"):
        key = key.cast(pa.timestamp("us"))
    elif pt.is_duration(kind) and kind.unit != "us":
        key = key.cast(pa.duration("us"), safe=False)
    if pt.is_timestamp(key.type) or pt.is_duration(key.type) or pt.is_time64(key.type):
        key = key.view(pa.int64())
    elif not pt.is_int64(key.type):
        key = key.cast(pa.int64(), safe=False)
    if key.null_count:
        key = key.fill_null(0)
    return np.asarray(key.to_numpy(zero_copy_only=False), dtype=np.int64)


def _words(key: pa.Array) -> npt.NDArray[np.int64]:
    # Values keep the unit that they are stored in: the two sides of an equality have one type.
    kind = key.type
    if pt.is_temporal(kind):
        key = key.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if not pt.is_int64(key.type):
        key = key.cast(pa.int64(), safe=False)
    if key.null_count:
        key = key.fill_null(0)
    return np.asarray(key.to_numpy(zero_copy_only=False), dtype=np.int64)


def _numbers(key: pa.Array) -> npt.NDArray[np.float64]:
    if key.null_count:
        key = key.fill_null(0.0)
    return np.asarray(key.to_numpy(zero_copy_only=False), dtype=np.float64)


def _scramble(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    words = codes.view(np.uint64) * _MULTIPLIER
    return words ^ (words >> np.uint64(32))


def _bytes_codes(key: pa.Array) -> npt.NDArray[np.int64]:
    # Texts and binaries are hashed by their bytes, decimals by their unscaled value.
    kind = key.type
    if pt.is_dictionary(kind):
        return _column_codes(key.dictionary_decode())
    if pt.is_decimal(kind):
        return _decimal_codes(key)
    key = key.cast(pa.large_binary()) if not pt.is_large_binary(kind) else key
    if key.null_count:
        key = key.fill_null(b"")
    count = len(key)
    _, offsets_buffer, data = key.buffers()
    if count == 0 or offsets_buffer is None:
        return np.zeros(count, np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int64)[key.offset : key.offset + count + 1]
    letters = np.frombuffer(b"" if data is None else data, np.uint8)
    return hash_bytes(letters, offsets[:-1], np.diff(offsets))


def _decimal_codes(key: pa.Array) -> npt.NDArray[np.int64]:
    # A word is its own code; a longer value is hashed by its fewest bytes in two's complement, as in the JVM.
    kind = key.type
    if kind.bit_width < 128:
        key = key.cast(pa.decimal128(kind.precision, kind.scale))
    width = key.type.bit_width // 8
    if key.null_count:
        key = key.fill_null(pa.scalar(Decimal(0), key.type))
    if not len(key):
        return np.zeros(0, np.int64)
    data = np.frombuffer(key.buffers()[1], np.uint8)[key.offset * width : (key.offset + len(key)) * width]
    if kind.precision <= DIGITS_OF_WORD:
        return np.ascontiguousarray(data.view(np.int64)[:: width // 8])
    letters = data.reshape(-1, width)[:, ::-1]
    signs = np.where(letters[:, :1] >= 128, np.uint8(255), np.uint8(0))
    differs = letters != signs
    first = np.where(differs.any(1), differs.argmax(1), width)
    # A byte more where the first that says something would turn the sign.
    turns = (letters[np.arange(len(letters)), np.minimum(first, width - 1)] >= 128) != (signs[:, 0] == 255)
    skipped = np.minimum(np.where(turns & (first < width), first - 1, first), width - 1)
    starts = np.arange(len(letters)) * width + skipped
    return hash_bytes(np.ascontiguousarray(letters).ravel(), starts, width - skipped)
