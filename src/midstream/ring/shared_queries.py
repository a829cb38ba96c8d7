"""The queries that share a ring: which of them each row, partial result and result serves (Wang ch. 19, 20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from midstream.expr.evaluate import all_hold
from midstream.expr.expression import Expression
from midstream.ring.columns import Words
from midstream.ring.joined_rows import JoinedRows, times
from midstream.ring.late_rows import LateRows
from midstream.ring.logical_slices import Bitmaps, LogicalSlices, bitmaps, queries, routed, serving
from midstream.state.chunk_store import Chunk
from midstream.state.keys import Mask
from midstream.state.lineage import ARRIVED, BEFORE, filter_text, later

SERVES = "_serves"
"""The internal column of a row's bitmap, one bit for each query of the ring; it is never stored."""


@dataclass(frozen=True)
class RingQuery:
    """A query of a shared ring: by source its window, in microseconds, and its selections.

    It reads the rows that arrived in step `since` or later; None: also those from before any other query shared the
    ring, which were its own.
    """

    name: str
    windows: Mapping[str, int]
    selections: Mapping[str, tuple[Expression, ...]]
    since: int | None

    def text(self, label: str) -> str:
        """Format everything that a row's bit for the query depends on."""
        return f"{self.name} {self.since} {filter_text(self.selections[label])}"


@dataclass(frozen=True)
class SharedQueries:
    """Queries that join the same sources on the same predicates, with windows and selections of their own.

    A row serves the queries whose selections it passes; a partial result those that all its rows serve, and whose
    windows hold them together. The bits of each component are an entry of the vector T, which one AND goes through
    (§20.1); selections are entries like slices (§20.2). What serves no query is neither kept (Theorem 12) nor compared
    (Lemma 9, Theorem 13).

    >>> short, long = (RingQuery(name, {"A": w, "B": w}, {"A": (), "B": ()}, 0) for name, w in (("q", 5), ("p", 20)))
    >>> shared = SharedQueries((short, long))
    >>> row = lambda ts: pa.record_batch({"_ts": [ts], "_step": pa.array([0], pa.int64())})
    >>> rows = {label: shared.marked(label, row(ts)) for label, ts in (("A", 100), ("B", 110))}
    >>> joined = JoinedRows({label: LateRows.of(batch) for label, batch in rows.items()}, np.array([110]))
    >>> shared.ends("A", rows["A"]).tolist(), queries(shared.served(joined), 2).tolist()
    ([120], [[False, True]])
    """

    queries: tuple[RingQuery, ...]

    @cached_property
    def slices(self) -> Mapping[str, LogicalSlices]:
        """The logical slices of each source's state, at the windows of all queries."""
        labels = self.queries[0].windows
        return {label: LogicalSlices.by_windows([one.windows[label] for one in self.queries]) for label in labels}

    def marked(self, label: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Add bitmaps to a source's rows."""
        return rows.append_column(SERVES, _column(bitmaps(self._passed(label, rows))))

    def marked_once(self, label: str, chunk: Chunk) -> Chunk:
        """Add bitmaps to a chunk's rows, once for all steps."""
        what = ("serves", label, *(one.text(label) for one in self.queries))
        return chunk.once(what, lambda: Chunk(self.marked(label, chunk.batch)))

    def filters(self, label: str) -> int:
        """Count the selections that a row of a source is tested by: each once, however many queries have it."""
        return sum(len(conditions) for conditions in self._selections(label).values())

    def ends(self, label: str, rows: pa.RecordBatch) -> Words:
        """Compute the last moment of each row: that of the widest window among the queries that it serves."""
        ts, found = times(rows), queries(bits_of(rows), len(self.queries))
        ends = np.full(len(ts), BEFORE, np.int64)
        for place, one in enumerate(self.queries):
            ends = np.maximum(ends, np.where(found[:, place], later(ts, one.windows[label]), BEFORE))
        return ends

    def served(self, results: JoinedRows) -> Bitmaps:
        """Compute the queries that each result, or partial result, serves: its vector T, and one AND."""
        newest = results.newest
        return routed([self._entry(label, newest, times(part), bits_of(part)) for label, part in results.parts.items()])

    def met(self, joined: JoinedRows, partial: Words, label: str, rows: pa.RecordBatch, row: Words) -> Mask:
        """Test which pairs of a partial result and a source's row, by their places, any query needs."""
        ts, bits = times(rows)[row], bits_of(rows)[row]
        newest = np.maximum(joined.newest[partial], ts)
        vector = [self._entry(label, newest, ts, bits)]
        for other, part in joined.parts.items():
            vector.append(self._entry(other, newest, times(part)[partial], bits_of(part)[partial]))
        return serving(routed(vector))

    def _entry(self, label: str, newest: Words, ts: Words, bits: Bitmaps) -> Bitmaps:
        entry: Bitmaps = self.slices[label].reached(newest - ts) & bits
        return entry

    def _passed(self, label: str, rows: pa.RecordBatch) -> Mask:
        column = rows.column(ARRIVED)
        known = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)
        arrived = np.asarray(column.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
        passed = {text: all_hold(conditions, rows) for text, conditions in self._selections(label).items()}
        found = np.zeros((rows.num_rows, len(self.queries)), np.bool_)
        for place, one in enumerate(self.queries):
            own = passed[filter_text(one.selections[label])]
            found[:, place] = own | ~known if one.since is None else own & (arrived >= one.since)
        return found

    def _selections(self, label: str) -> dict[str, tuple[Expression, ...]]:
        return {filter_text(one.selections[label]): one.selections[label] for one in self.queries}


def bits_of(rows: pa.RecordBatch | LateRows) -> Bitmaps:
    """Return the bitmaps of rows that were marked."""
    column = rows.column(SERVES)
    width, data = column.type.byte_width, column.buffers()[1]
    if not len(column) or data is None:
        return np.zeros((0, width), np.uint8)
    at = column.offset * width
    return np.frombuffer(data, np.uint8)[at : at + len(column) * width].reshape(len(column), width)


def unmarked(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Remove the bitmaps of rows, as they are stored."""
    names: Sequence[str] = rows.schema.names
    return rows.select([name for name in names if name != SERVES]) if SERVES in names else rows


def _column(found: Bitmaps) -> pa.Array:
    kind = pa.binary(found.shape[1])
    return pa.Array.from_buffers(kind, len(found), [None, pa.py_buffer(np.ascontiguousarray(found).tobytes())])
