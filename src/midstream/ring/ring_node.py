"""A node during one step: the rows it has, and the partial results that visit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from midstream.expr.evaluate import holds
from midstream.expr.expression import Column, Expression
from midstream.operators.join_condition import JoinCondition
from midstream.ring.chunk_index import ChunkIndex, codes_of
from midstream.ring.columns import Visits, Words
from midstream.ring.joined_rows import JoinedRows
from midstream.ring.late_rows import NumberedBatches
from midstream.ring.shared_queries import SharedQueries
from midstream.state.chunk_store import Chunk
from midstream.state.gather import taken
from midstream.state.keys import Codes, Mask


@dataclass(frozen=True)
class NodeRows:
    """A chunk as it is listed at a node: `here` marks the rows that are at home there, None where all are."""

    chunk: Chunk
    here: Mask | None = None


class HopTally:
    """Pairs that partial results compared and matched in a hop at a node, by the node of their first hop if known.

    `by_origin` has a row for those compared and one for those matched, and a column for each node of a first hop.
    """

    def __init__(self, origins: int, *, goes_on: bool) -> None:
        """Count nothing yet; where what is met `goes_on`, it carries the node of its first hop."""
        self.compared, self.matched, self.goes_on = 0, 0, goes_on
        self.by_origin = np.zeros((2, origins), np.int64) if origins > 1 else None

    def add(self, joined: JoinedRows, compared: Sequence[Words], matched: Sequence[Words]) -> None:
        """Add pairs, by the places of their partial results."""
        self.compared += sum(map(len, compared))
        self.matched += sum(map(len, matched))
        if joined.origin is not None and self.by_origin is not None:
            for counts, places in zip(self.by_origin, (compared, matched), strict=True):
                if places:
                    counts += np.bincount(joined.origin[np.concatenate(places)], minlength=len(counts))


class RingNode:
    """The rows that a node keeps of each source: those from before the step, and the step's own.

    Their chunks are among the `batches` of the source, which nodes of one process have in common. Counts what it does:
    pairs compared, pairs that a predicate was evaluated for, pairs that joined, and visits. `tallies`
    have the first and the third by way and hop. Where queries share the ring, a pair that none of them needs is not
    compared.
    """

    def __init__(
        self,
        number: int,
        old: Mapping[str, Sequence[NodeRows]],
        new: Mapping[str, Sequence[NodeRows]],
        batches: Mapping[str, NumberedBatches],
        shared: SharedQueries | None = None,
    ) -> None:
        self.number, self._old, self._new, self._batches, self._shared = number, old, new, batches, shared
        self.comparisons = self.predicates = self.rows_out = self.visits = 0
        self.tallies = dict[tuple[int, int], HopTally]()

    def meet(
        self, joined: JoinedRows, visits: Visits, label: str, on: JoinCondition, tally: HopTally, *, new: bool
    ) -> Iterator[JoinedRows]:
        """Join partial results with each matching row of the source here; with `new`, rows of the step as well.

        A row is met if its time is within the bounds of the visit, which windows are part of.
        """
        self.visits += len(visits)
        at = visits.partial
        codes, valid = codes_of(on, on.left_key, lambda column: taken(joined.read(column), at), len(at))
        if valid is not None:
            visits, codes = visits.where(valid), codes[valid]
        compared, matched = list[Words](), list[Words]()
        carried = joined if tally.goes_on else joined.without_origin()
        for rows in (*self._old.get(label, ()), *(self._new.get(label, ()) if new else ())):
            batch = rows.chunk.batch
            for pairs in self._matches(joined, visits, codes, label, on, rows, compared):
                matched.append(pairs.partial)
                yield carried.joined(pairs.partial, label, self._batches[label].at(batch, pairs.row))
        tally.add(joined, compared, matched)

    def _matches(
        self,
        joined: JoinedRows,
        visits: Visits,
        codes: Codes,
        label: str,
        on: JoinCondition,
        rows: NodeRows,
        compared: list[Words],
    ) -> Iterator[_Pairs]:
        # What is compared is added by the places of partial results.
        batch = rows.chunk.batch
        for visit, row in ChunkIndex.of_chunk(on, rows.chunk).candidates(on, codes, visits.low, visits.high):
            if rows.here is not None:
                here = rows.here[row]
                visit, row = visit[here], row[here]
            partial = visits.partial[visit]
            if self._shared is not None and len(row):
                needed = self._shared.met(joined, partial, label, batch, row)
                partial, row = partial[needed], row[needed]
            pairs = _Pairs(joined, partial, label, batch, row)
            for condition in on.verify:
                pairs = pairs.where(condition)
            self.comparisons += len(pairs)
            compared.append(pairs.partial)
            for condition in on.residual:
                if len(pairs):
                    self.predicates += len(pairs)
                    pairs = pairs.where(condition)
            self.rows_out += len(pairs)
            if len(pairs):
                yield pairs


class _Pairs:
    """Partial results and rows of a chunk, by their places, side by side."""

    def __init__(self, joined: JoinedRows, partial: Words, label: str, batch: pa.RecordBatch, row: Words) -> None:
        self.joined, self.partial, self.label, self.batch, self.row = joined, partial, label, batch, row

    def __len__(self) -> int:
        return len(self.row)

    def read(self, column: Column) -> pa.Array:
        if column.alias == self.label:
            return taken(self.batch.column(column.name), self.row)
        return taken(self.joined.read(column), self.partial)

    def where(self, condition: Expression) -> _Pairs:
        at = np.flatnonzero(holds(condition, self.read, len(self)))
        if len(at) == len(self):
            return self
        return _Pairs(self.joined, self.partial[at], self.label, self.batch, self.row[at])
