"""Words at many places: what a join does most, and what waits for memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.int64]

MANY = 1 << 16
"""From so many words on Arrow's way pays: it has more reads of memory under way at once than numpy's."""

POOL = pa.system_memory_pool()
# Arrow's default pool gives large buffers back at once, and each step's columns are then faulted in anew.

_INT64 = pa.int64()


def column_of(words: Words) -> pa.Array:
    """Wrap the words as a column on the same memory, without Arrow's conversion, which first looks for their type."""
    return pa.Array.from_buffers(_INT64, len(words), [None, pa.py_buffer(words)])


def block_of(columns: Sequence[pa.Array]) -> Words | None:
    """View columns of words as the rows of one block on the same memory; None where they do not lie one by one.

    In a chunk's file they do, so that a mapped chunk takes no memory of the process.

    >>> words = np.arange(6).reshape(2, 3)
    >>> block_of([column_of(row) for row in words]).tolist(), block_of([pa.array([1, 2]), pa.array([3, 4])])
    ([[0, 1, 2], [3, 4, 5]], None)
    """
    buffers, length = [column.buffers()[1] for column in columns], len(columns[0])
    begin = buffers[0].address if length else 0
    for row, (column, buffer) in enumerate(zip(columns, buffers, strict=True)):
        if column.type != _INT64 or column.offset or column.null_count or not length:
            return None
        if buffer.address != begin + row * length * 8:
            return None
    # Each column keeps its own memory, which another one may not.
    block = pa.foreign_buffer(begin, len(columns) * length * 8, base=buffers)
    return np.frombuffer(block, np.int64).reshape(len(columns), length)


def all_of(mask: npt.NDArray[np.bool_]) -> bool:
    """Return whether a non-empty mask marks all; stops at the first position that it does not mark.

    >>> all_of(np.array([True, True])), all_of(np.array([True, False])), all_of(np.array([False, True]))
    (True, False, False)
    """
    return bool(mask[mask.argmin()])


FEW = 32
"""Of so many words Python finds the least and the greatest before numpy has begun to."""


def extremes(words: Words) -> tuple[int, int]:
    """Return the least and the greatest of some words.

    >>> extremes(np.array([5, 3, 4])), extremes(np.arange(FEW + 1))
    ((3, 5), (0, 32))
    """
    if words.size <= FEW:
        few: list[int] = words.tolist()
        return min(few), max(few)
    return int(np.minimum.reduce(words)), int(np.maximum.reduce(words))


def greatest(words: Words) -> int:
    """Return the greatest of some words.

    >>> greatest(np.array([5, 3, 4])), greatest(np.arange(FEW + 1))
    (5, 32)
    """
    return max(words.tolist()) if words.size <= FEW else int(np.maximum.reduce(words))


def gather(words: Words, order: Words) -> Words:
    """Take the words in an order of their own places, without checking bounds.

    >>> gather(np.array([5, 6, 7]), np.array([2, 0, 1])).tolist()
    [7, 5, 6]
    """
    if order.size < MANY:
        return words.take(order)
    found = pc.take(column_of(words), column_of(order), boundscheck=False, memory_pool=POOL)
    return np.frombuffer(found.buffers()[1], np.int64)[found.offset : found.offset + len(found)]


def taken(column: pa.Array, places: Words) -> pa.Array:
    """Take the values of a column at these places; raises IndexError for a place outside it."""
    if not places.size:
        return column.slice(0, 0)
    few, length = places.size < MANY, len(column)
    if few and (column.null_count or not is_word(column.type)):
        return pc.take(column, pa.array(places), memory_pool=POOL)
    if few and not np.count_nonzero(places < 0):
        return _few_taken(column, places)
    # Looking for the least and the greatest costs a third of what Arrow's own check does.
    if int(np.minimum.reduce(places)) < 0 or int(np.maximum.reduce(places)) >= length:
        raise IndexError(f"a row number is outside the column, which has {length} rows")
    return pc.take(column, pa.array(places), boundscheck=False, memory_pool=POOL)


def _few_taken(column: pa.Array, places: Words) -> pa.Array:
    # For words without NULLs numpy begins sooner than Arrow.
    kind, begin = column.type, column.offset
    words = np.frombuffer(column.buffers()[1], f"i{kind.bit_width // 8}")[begin : begin + len(column)]
    return pa.Array.from_buffers(kind, len(places), [None, pa.py_buffer(words.take(places))])


_TIMES = (pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.duration("us"))
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_WORDS = frozenset(kind.id for kind in (*_INTEGERS, pa.float16(), pa.float32(), pa.float64(), *_TIMES))


def is_word(kind: pa.DataType) -> bool:
    """Return whether values of a type are numbers of whole bytes: integers, floats, dates and times.

    >>> is_word(pa.int16()), is_word(pa.timestamp("us")), is_word(pa.bool_()), is_word(pa.string())
    (True, True, False, False)
    """
    return kind.id in _WORDS
