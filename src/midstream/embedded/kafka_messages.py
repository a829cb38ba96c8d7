"""Messages of a partition between the client, which brings them a few at a time, and the step that takes them.

In: runs of the client's messages. Out: record batches of them, with the columns `offset` and `value`, and where a
stream shows them `key`, `timestamp` and `timestampType`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.sinks.kafka_client import kafka

PIECE = 1 << 14
"""Messages that are put together, and decoded together: where one of them is bad, so many are read one by one."""

_Counts = npt.NDArray[np.int64]
_NO_VALUE = -1
"""The size that stands for the value of a message without one."""


class Pile:
    """Messages of a partition that no step has taken, in the order of their offsets.

    `rows` counts them, `size` is the bytes of their values, and `end` is the offset behind the last one.
    """

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = kinds
        self._batches = deque[pa.RecordBatch]()
        self._begin()
        self.rows = self.size = 0
        self.end = 0

    def _begin(self) -> None:
        self._values, self._sizes, self._offsets = list[bytes](), list[_Counts](), list[_Counts]()
        self._others: dict[str, list[Any]] = {kind: [] for kind in self._kinds}
        self._loose = 0

    def add(self, run: Sequence[Any]) -> None:
        """Add messages of the client that follow the last ones."""
        # Methods of the class, called by `map`: a loop over the messages takes longer than to fetch them. The values
        # are joined at once, so the next run gets their memory, and the garbage collector finds no objects that wait.
        own = kafka().Message
        sizes = _counts(map(len, run), len(run))
        try:
            values = b"".join(map(own.value, run))
        except TypeError:  # Of messages without a value.
            given = list(map(own.value, run))
            sizes[[one is None for one in given]] = _NO_VALUE
            values = b"".join([one or b"" for one in given])
        self._values.append(values)
        self._sizes.append(sizes)
        first, end = run[0].offset(), run[-1].offset() + 1
        whole = end - first == len(run)  # No offset is missing between them.
        self._offsets.append(np.arange(first, end) if whole else _counts(map(own.offset, run), len(run)))
        for kind, column in self._others.items():
            column.extend(map(getattr(own, kind), run))
        self.rows, self.size, self.end = self.rows + len(run), self.size + len(values), end
        self._loose += len(run)
        if self._loose >= PIECE:
            self._bind()

    def take(self, rows: int, size: int) -> list[pa.RecordBatch]:
        """Take messages off the front: at most so many, and as soon as they have so many bytes no more."""
        self._bind()
        found = list[pa.RecordBatch]()
        while self._batches and rows > 0 and size > 0:
            ends = _ends(self._batches[0])
            at = min(rows, len(ends) - 1, int(np.searchsorted(ends[1:], size)) + 1)
            found.append(self._split(at))
            rows, size = rows - at, size - int(ends[at])
        return found

    def take_to(self, end: int) -> list[pa.RecordBatch]:
        """Take the messages before an offset off the front."""
        self._bind()
        found = list[pa.RecordBatch]()
        while self._batches and (at := int(np.searchsorted(self._batches[0].column("offset").to_numpy(), end))):
            found.append(self._split(at))
        return found

    def _split(self, at: int) -> pa.RecordBatch:
        first = self._batches.popleft()
        if at < len(first):
            self._batches.appendleft(first.slice(at))
        self.rows, self.size = self.rows - at, self.size - int(_ends(first)[at])
        return first.slice(0, at)

    def _bind(self) -> None:
        if not self._loose:
            return
        columns = {"offset": pa.array(np.concatenate(self._offsets))}
        columns["value"] = _binaries(b"".join(self._values), np.concatenate(self._sizes))
        if "key" in self._others:
            columns["key"] = pa.array(self._others["key"], pa.large_binary())
        if "timestamp" in self._others:
            types, times = np.array(self._others["timestamp"], np.int64).reshape(-1, 2).T
            columns |= {"timestamp": pa.array(times), "timestampType": pa.array(types)}
        self._batches.append(pa.record_batch(columns))
        self._begin()


def _counts(numbers: Any, count: int) -> _Counts:
    return np.fromiter(numbers, np.int64, count)


def _binaries(data: bytes, sizes: _Counts) -> pa.LargeBinaryArray:
    # With offsets of eight bytes, because the values of a step may have more than 2 GB.
    ends, absent = np.append(0, np.cumsum(np.maximum(sizes, 0))), sizes == _NO_VALUE
    valid = pa.py_buffer(np.packbits(~absent, bitorder="little")) if absent.any() else None
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [valid, pa.py_buffer(ends), pa.py_buffer(data)])


def _ends(messages: pa.RecordBatch) -> _Counts:
    """Return how many bytes the values before each message have, and at the end how many all have."""
    values = messages.column("value")
    _, ends, _ = values.buffers()
    found = np.frombuffer(ends, np.int64)[values.offset : values.offset + len(values) + 1]
    return np.asarray(found - found[0], np.int64)
