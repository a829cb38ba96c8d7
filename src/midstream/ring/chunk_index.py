"""Rows of a chunk in the order that they are searched in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from midstream.expr.evaluate import Columns, evaluate
from midstream.expr.expression import Expression
from midstream.operators.candidates import Ranges, band_pairs, equal_ranges
from midstream.operators.join_condition import JoinCondition
from midstream.ring.columns import Words
from midstream.ring.joined_rows import times
from midstream.state.chunk_store import Chunk
from midstream.state.keys import Codes, Mask, band_codes, key_codes, stable_order

OFTEN = 4
"""So many pairs of equal code for each row and visit are looked at one by one; of more, times are searched as well."""


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
    def of_chunk(on: JoinCondition, chunk: Chunk) -> ChunkIndex:
        """Return the index of a chunk, which is built once."""
        what = on.index, *(expression.text() for expression in on.right_key)
        return chunk.once(what, lambda: ChunkIndex.of(on, chunk.batch))

    @staticmethod
    def of(on: JoinCondition, batch: pa.RecordBatch) -> ChunkIndex:
        """Build the index of a chunk for a join condition, whose right side the chunk's rows are."""
        ts = times(batch)
        codes, valid = codes_of(on, on.right_key, lambda column: batch.column(column.name), batch.num_rows)
        if (ts[1:] >= ts[:-1]).all():
            order = stable_order(codes)
        else:
            order = stable_order(ts)
            order = order[stable_order(codes[order])]
        if valid is not None:
            order = order[valid[order]]
        return ChunkIndex(order, codes[order], ts[order])

    def candidates(self, on: JoinCondition, codes: Codes, low: Words, high: Words) -> Iterator[tuple[Words, Words]]:
        """Find the pairs of a visit and a place in the chunk that may join.

        The row lies within the visit's bounds and, for a hash condition, codes are equal; for a band they are in its
        range.
        """
        if not len(self.order) or not len(codes):
            return
        first, last = self._span
        timely = np.flatnonzero((low <= last) & (first <= high))
        if len(timely) == len(codes):
            yield from self._candidates(on, codes, low, high)
        elif len(timely) and timely[-1] - timely[0] == len(timely) - 1:
            # Visits in a row, such as those of one of two rings that a node is of: they need not be copied.
            here = slice(timely[0], timely[-1] + 1)
            for left, right in self._candidates(on, codes[here], low[here], high[here]):
                yield left + here.start, right
        elif len(timely):
            for left, right in self._candidates(on, codes[timely], low[timely], high[timely]):
                yield timely[left], right

    def _candidates(self, on: JoinCondition, codes: Codes, low: Words, high: Words) -> Iterator[tuple[Words, Words]]:
        # Each of these visits may meet a row of the chunk by its times.
        first, last = self._span
        if on.index == "scan":
            start, end = self.ts.searchsorted(low, "left"), self.ts.searchsorted(high, "right")
            found = Ranges(start, np.maximum(start, end))
        elif on.index == "hash":
            found = equal_ranges(codes, self.codes)
            if int((found.end - found.start).sum()) > OFTEN * (len(codes) + len(self.order)):
                found = self._timely(found, low, high)
        blocks = band_pairs(codes, self.codes, on.low, on.high) if on.index == "band" else found.blocks()
        always = bool(low.max() <= first and last <= high.min())
        for left, right in blocks:
            if not always:
                ts = self.ts.take(right)
                within = np.flatnonzero((low.take(left) <= ts) & (ts <= high.take(left)))
                left, right = left.take(within), right.take(within)
            yield left, self.order.take(right)

    def _timely(self, found: Ranges, low: Words, high: Words) -> Ranges:
        # Code and time are searched for as one word of ranks.
        moments, words = self._words
        base = self._rank[np.minimum(found.start, len(self.order) - 1)] * (len(moments) + 1)
        start = words.searchsorted(base + moments.searchsorted(low, "left"), "left")
        end = words.searchsorted(base + moments.searchsorted(high, "right"), "left")
        return Ranges(start, np.where(found.start < found.end, np.maximum(start, end), start))

    @cached_property
    def _span(self) -> tuple[int, int]:
        return int(self.ts.min()), int(self.ts.max())

    @cached_property
    def _rank(self) -> Words:
        return np.append(0, np.cumsum(self.codes[1:] != self.codes[:-1]))

    @cached_property
    def _words(self) -> tuple[Words, Words]:
        # All times, ascending, and of each row a word that grows with its code and then with its time.
        moments = np.unique(self.ts)
        return moments, self._rank * (len(moments) + 1) + moments.searchsorted(self.ts)


def codes_of(on: JoinCondition, key: Sequence[Expression], read: Columns, count: int) -> tuple[Codes, Mask | None]:
    """Compute codes of one side of a join condition, and a mask of those without NULL; equal without a key."""
    if on.index == "scan":
        return np.zeros(count, np.int64), None
    values = [evaluate(expression, read, count) for expression in key]
    return key_codes(values) if on.index == "hash" else band_codes(values[0])
