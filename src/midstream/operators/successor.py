"""A user's operator that will take over from another one, and is fed until it may (HybMig §4.2, §4.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.model.codec import written_as
from midstream.operators.user_operator import OperatorSpec
from midstream.state.rows import one_batch

WATERMARK = "_watermark"
"""The column of a queue that has the watermark of the step in which a row arrived."""

QUEUE = "the queue of a user's operator"
"""The place of an error about rows that wait there."""

Pieces = list[tuple[pa.Table, int | None]]


@dataclass(frozen=True)
class Successor:
    """The operator, and how it is fed: next to the old one, or with a `budget` of rows a step from a queue.

    `since` is the watermark at which it began, `ends` the event time after which no row matters that arrived before;
    `fed` counts the rows it has been fed, `waiting` those in its queue, `last_watermark` is the last one it was given.
    """

    spec: OperatorSpec
    mark: str
    since: int | None
    ends: int | None
    budget: int | None = None
    fed: int = 0
    waiting: int = 0
    last_watermark: int | None = field(default=None, metadata=written_as("told"))

    def fed_with(
        self, waiting: pa.RecordBatch | None, rows: pa.Table, watermark: int | None, before: int | None
    ) -> tuple[Successor, Pieces, pa.RecordBatch | None]:
        """After a step's rows: what it is fed now, with the watermark of each piece, and what waits after that."""
        if self.budget is None:
            return replace(self, fed=self.fed + rows.num_rows, last_watermark=watermark), [(rows, watermark)], None
        queue = queued(rows, watermark)
        if waiting is not None:
            queue = pa.concat_tables([self._living(pa.Table.from_batches([waiting]), before), queue])
        count = min(self.budget, queue.num_rows)
        pieces = _pieces(queue, count, self.last_watermark)
        if count == queue.num_rows and (not pieces or pieces[-1][1] != watermark):
            pieces.append((rows.slice(0, 0), watermark))
        given = pieces[-1][1] if pieces else self.last_watermark
        left = one_batch(queue.slice(count), QUEUE)
        return replace(self, fed=self.fed + count, waiting=left.num_rows, last_watermark=given), pieces, left

    def is_over(self, before: int | None) -> bool:
        """Whether it remembers all that the old one does."""
        return self._is_spent(before) if self.budget is None else not self.waiting

    def _is_spent(self, before: int | None) -> bool:
        return self.ends is None or (before is not None and before > self.ends)

    def _living(self, queue: pa.Table, before: int | None) -> pa.Table:
        """Return the rows that it may still remember when it is fed them."""
        if before is None:
            return queue
        bound = pa.scalar(before, pa.int64())
        ends = queue["_until"].cast(pa.timestamp("us")).cast(pa.int64())
        kept = pc.add(queue["_ts"].cast(pa.timestamp("us")).cast(pa.int64()), self.spec.remembers())
        return queue.filter(pc.or_(pc.greater_equal(ends, bound), pc.greater_equal(kept, bound)))

    def report(self, before: int | None) -> dict[str, Any]:
        """How it stands, as JSON values."""
        if self.budget is None:
            phase = "the new operator gets the rows of the old one, without output"
        else:
            phase = f"{self.waiting} rows wait for the new operator, which has no output yet"
        return {
            "phase": phase,
            "progress": round(self._progress(before), 3),
            "old_serves": "all results",
            "new_serves": "none until it remembers what the old operator does",
            "predicted_end": self.ends if self.budget is None else None,  # A queue ends when it is empty.
            "fed": self.fed,
            "queue": self.waiting,
        }

    def _progress(self, before: int | None) -> float:
        if self.budget is not None:
            return self.fed / (self.fed + self.waiting) if self.waiting else 1.0
        if self.ends is None or before is None or self.since is None or self.ends <= self.since:
            return 0.0
        return min(max((before - self.since) / (self.ends - self.since), 0.0), 1.0)


def queued(rows: pa.Table, watermark: int | None) -> pa.Table:
    """Rows as they wait in a queue."""
    return rows.append_column(WATERMARK, pa.array([watermark] * rows.num_rows, pa.int64()))


def _pieces(queue: pa.Table, count: int, given: int | None) -> Pieces:
    """The first rows of a queue, cut where the watermark changes; a step's watermark is given with its last row."""
    marks = queue[WATERMARK].fill_null(-(2**63)).to_numpy()
    cuts = [0, *(np.flatnonzero(np.diff(marks)) + 1).tolist(), len(marks)]
    rows = queue.drop_columns([WATERMARK])
    pieces: Pieces = []
    for begin, end in pairwise(cuts):
        if begin >= count:
            break
        if end <= count:
            given = queue[WATERMARK][begin].as_py()
        pieces.append((rows.slice(begin, min(end, count) - begin), given))
    return pieces
