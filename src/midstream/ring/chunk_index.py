"""Rows of a chunk in the order that they are searched in; made once for a chunk that lives on from step to step."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from midstream.language.evaluate import Columns, evaluate
from midstream.language.expression import Expression
from midstream.operators.candidates import Ranges, band_pairs
from midstream.operators.join_condition import JoinCondition
from midstream.ring.columns import Words
from midstream.ring.joined_rows import times
from midstream.state.keys import Codes, Mask, band_codes, key_codes

Found = TypeVar("Found")


@dataclass(frozen=True)
class ChunkIndex:
    """Rows in order of their code, and of time where codes are equal; rows whose key is NULL are left out.

    `order` has their places in the chunk. Base rows are all that is kept of a ring (an M-Join), so that an index is no
    state: it is made of the chunk by whoever searches it.
    """

    order: Words
    codes: Codes
    ts: Words

    @staticmethod
    def of(on: JoinCondition, batch: pa.RecordBatch) -> ChunkIndex:
        """The index of a chunk for a join condition, whose right side the chunk's rows are."""
        ts = times(batch)
        codes, valid = codes_of(on, on.right_key, lambda column: batch.column(column.name), batch.num_rows)
        order = np.lexsort((ts, codes))
        if valid is not None:
            order = order[valid[order]]
        return ChunkIndex(order, codes[order], ts[order])

    def candidates(self, on: JoinCondition, codes: Codes, low: Words, high: Words) -> Iterator[tuple[Words, Words]]:
        """Pairs of a visit and a place in the chunk that lie within the visit's bounds and, for a hash condition, have
        equal codes, or lie in the range of a band.
        """
        if not len(self.order) or not len(codes):
            return
        if on.index == "band":
            for left, right in band_pairs(codes, self.codes, on.low, on.high):
                within = (low[left] <= self.ts[right]) & (self.ts[right] <= high[left])
                yield left[within], self.order[right[within]]
            return
        for left, right in self._ranges(codes, low, high).blocks():
            yield left, self.order[right]

    def _ranges(self, codes: Codes, low: Words, high: Words) -> Ranges:
        """The ranges of equal code and of times from `low` to `high`: both are searched for as one word of ranks."""
        distinct, rank = np.unique(self.codes, return_inverse=True)
        moments = np.unique(self.ts)
        span = len(moments) + 1
        words = rank * span + np.searchsorted(moments, self.ts)
        at = np.minimum(np.searchsorted(distinct, codes), len(distinct) - 1)
        known = distinct[at] == codes
        start = np.searchsorted(words, at * span + np.searchsorted(moments, low, "left"), "left")
        end = np.searchsorted(words, at * span + np.searchsorted(moments, high, "right"), "left")
        return Ranges(start, np.where(known, end, start))


def codes_of(on: JoinCondition, key: Sequence[Expression], read: Columns, count: int) -> tuple[Codes, Mask | None]:
    """The codes of one side of a join condition, and which of them are of no NULL; without a key all are equal."""
    if on.index == "scan":
        return np.zeros(count, np.int64), None
    values = [evaluate(expression, read, count) for expression in key]
    return key_codes(values) if on.index == "hash" else band_codes(values[0])


Made = dict[int, tuple[weakref.ref[pa.RecordBatch], dict[object, Any]]]

_MADE: Made = {}
"""What was made of batches that are in use, by identity and by what it is."""


def made_once(batch: pa.RecordBatch, what: object, make: Callable[[], Found]) -> Found:
    """What `make` makes of a batch: made once while the batch lives."""
    known = _MADE.get(id(batch))
    if known is None or known[0]() is not batch:
        known = _MADE[id(batch)] = weakref.ref(batch, partial(_forget, _MADE, id(batch))), {}
    if what not in known[1]:
        known[1][what] = make()
    found: Found = known[1][what]
    return found


def _forget(made: Made, key: int, gone: weakref.ref[pa.RecordBatch]) -> None:
    # As the process ends, the module's names are gone before its batches are.
    if (known := made.get(key)) is not None and known[0] is gone:
        del made[key]
