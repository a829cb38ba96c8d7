"""Key codes: what a state is sorted and searched by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.state.gather import is_word

Codes = npt.NDArray[np.int64] | npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BASE = np.uint64(0x100000001B3)


_INT64, _MICROSECONDS = pa.int64(), pa.timestamp("us")


BLOCK = 1 << 22
"""Letters hashed at once."""


def is_exact(types: Sequence[pa.DataType]) -> bool:
    """Whether equal codes mean equal keys; otherwise candidates must be compared once more.

    >>> is_exact([pa.int32()]), is_exact([pa.string()]), is_exact([pa.int32(), pa.int32()])
    (True, False, False)
    """
    return len(types) == 1 and _is_own_code(types[0])


def key_codes(keys: Sequence[pa.Array]) -> tuple[npt.NDArray[np.int64], Mask | None]:
    """One int64 per row for hash search: equal keys have equal codes, and NaN, -0.0 follow SQL equality.

    The mask marks rows whose key has no NULL; None means all of them. Codes of masked-out rows mean nothing.
    """
    codes = _column_codes(keys[0])
    for other in keys[1:]:
        mixed = (codes.view(np.uint64) ^ (codes.view(np.uint64) >> np.uint64(29))) * _MULTIPLIER
        codes = (mixed ^ _scramble(_column_codes(other))).view(np.int64)
    return codes, _valid(keys)


def band_codes(key: pa.Array) -> tuple[Codes, Mask | None]:
    """One ordered number per row for range search: int64 for integers and times (microseconds), else float64."""
    if key.type == _MICROSECONDS and not key.null_count:
        return np.asarray(key.view(_INT64).to_numpy()), None
    if is_integral(key.type):
        return _integers(key), _valid([key])
    return _numbers(key if pt.is_float64(key.type) else key.cast(pa.float64(), safe=False)), _valid([key])


def is_integral(kind: pa.DataType) -> bool:
    """Whether a type's band codes are integers."""
    return bool(pt.is_integer(kind) or pt.is_temporal(kind) or pt.is_boolean(kind))


FEW = 1_000
"""Up to so many values a merge sort is done sooner than words are packed for a faster one."""


def stable_sort(values: Codes, *, in_runs: bool = False) -> tuple[Indices, Codes]:
    """The indices that sort `values`, ties in their present order, and the values in that order.

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
    """The indices that sort `values`, ties in their present order; see `stable_sort`.

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
    return _words(key) if _is_own_code(kind) else _bytes_codes(key)


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
    """The values as they are stored, in whatever unit: the two sides of an equality have one type."""
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
    """Polynomial hashes of byte strings, as differences of running sums: one pass over the bytes."""
    kind = key.type
    if pt.is_decimal(kind):
        key = _decimal_bytes(key)
    elif pt.is_dictionary(kind):
        key = key.dictionary_decode()
    key = key.cast(pa.large_binary()) if not pt.is_large_binary(key.type) else key
    if key.null_count:
        key = key.fill_null(b"")
    count = len(key)
    _, offsets_buffer, data = key.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[key.offset : key.offset + count + 1]
    if count == 0 or data is None:
        return np.zeros(count, np.int64)
    start, end = int(offsets[0]), int(offsets[-1])
    if end - start > BLOCK and count > 1:
        # Several words a letter are in use at once: long texts go in blocks.
        half = count // 2
        return np.concatenate([_bytes_codes(key.slice(0, half)), _bytes_codes(key.slice(half))])
    letters = np.frombuffer(data, np.uint8)[start:end].astype(np.uint64) + np.uint64(1)
    # The position restarts with each string, so that equal strings meet equal powers wherever they stand.
    lengths = np.diff(offsets)
    position = np.arange(end - start) - np.repeat(offsets[:-1] - start, lengths)
    longest = int(lengths.max(initial=0))
    powers = np.cumprod(np.concatenate([np.ones(1, np.uint64), np.full(max(longest - 1, 0), _BASE)]))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(letters * powers[position])]) if longest else None
    if sums is None:
        return np.zeros(count, np.int64)
    hashes = sums[offsets[1:] - start] - sums[offsets[:-1] - start]
    return (_scramble(hashes.view(np.int64)) ^ lengths.astype(np.uint64)).view(np.int64)


def _decimal_bytes(key: pa.Array) -> pa.Array:
    return pc.cast(key, pa.string())
