"""Lists and structs as bytes that are equal where the values are, NULLs within them too, as for `=` of DuckDB."""

from __future__ import annotations

import decimal
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as is_
from numpy.typing import NDArray

from midstream.expr.kernels.datum import Datum

Ragged = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""The bytes of several values, one behind the other, and how many each has."""


def nested_key(type: pa.DataType, values: Datum) -> Datum:
    """The bytes of each list or struct; NULL where it is NULL itself.

    >>> lists = pa.array([[1, None], [1, None], [1], None], pa.list_(pa.int32()))
    >>> a, b, c, d = nested_key(pa.binary(), lists).to_pylist()
    >>> a == b, a == c, d
    (True, False, None)
    """
    if isinstance(values, pa.Scalar):
        return nested_key(type, pa.array([values.as_py()], values.type))[0]
    data, lengths = _bytes(values)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    valid = pa.array(_mask(values)).buffers()[1]
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers).cast(type)


def _mask(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _bytes(values: pa.Array) -> Ragged:
    kind = values.type
    if is_.is_dictionary(kind):
        return _bytes(values.dictionary_decode())
    valid = _mask(values)
    there = (valid.astype(np.uint8), np.ones(len(values), np.int64))
    if is_.is_struct(kind):
        return _woven([there, *map(_bytes, values.flatten())])
    if is_.is_fixed_size_list(kind):
        return _bytes(values.cast(pa.list_(kind.value_type)))
    if is_.is_list(kind) or is_.is_large_list(kind):
        counts = np.where(valid, np.diff(np.asarray(values.offsets, np.int64)), 0)
        data, lengths = _bytes(values.flatten())
        ends, cut = np.cumsum(counts), np.concatenate([[0], np.cumsum(lengths)])
        return _woven([there, _fixed(counts), (data, cut[ends] - cut[ends - counts])])
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_binary(kind) or is_.is_large_binary(kind):
        texts = values.cast(pa.large_binary()).fill_null(b"")
        offsets = np.frombuffer(texts.buffers()[1] or b"", np.int64)[texts.offset : texts.offset + len(texts) + 1]
        letters = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        sizes = np.diff(offsets) if len(texts) else np.zeros(0, np.int64)
        inside = letters[offsets[0] : offsets[-1]] if len(texts) else letters[:0]
        return _woven([there, _fixed(sizes), (inside, sizes)])
    return _woven([there, _fixed(_words(values))])


def _words(values: pa.Array) -> NDArray[np.int64]:
    """Values of fixed size as one or two words each; zeros where they are NULL."""
    kind = values.type
    if is_.is_decimal(kind):
        whole = values.cast(pa.decimal128(38, kind.scale)).fill_null(decimal.Decimal(0))
        return np.frombuffer(whole.buffers()[1], np.int64)[whole.offset * 2 : (whole.offset + len(whole)) * 2]
    if is_.is_floating(kind):
        numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        return np.asarray(numbers.view(np.int64))
    if is_.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz), safe=False)
    if is_.is_temporal(kind):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    words = values.cast(pa.int64(), safe=False).fill_null(0)
    return np.asarray(words.to_numpy(zero_copy_only=False), np.int64)


def _fixed(words: NDArray[np.int64], width: int = 8) -> Ragged:
    data = np.ascontiguousarray(words).view(np.uint8)
    return data, np.full(len(words), width, np.int64)


def _woven(pieces: Sequence[Ragged]) -> Ragged:
    total = np.sum([lengths for _, lengths in pieces], axis=0).astype(np.int64)
    found = np.empty(int(total.sum()), np.uint8)
    begins = np.cumsum(total) - total
    for data, lengths in pieces:
        before = np.cumsum(lengths) - lengths
        found[np.repeat(begins - before, lengths) + np.arange(int(lengths.sum()))] = data
        begins = begins + lengths
    return found, total
