"""Partial results with the columns they carry from node to node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from midstream.expr.evaluate import evaluate
from midstream.expr.expression import Column
from midstream.plan.key_classes import KeyClass
from midstream.ring.columns import Partials, StreamRows, Words
from midstream.ring.late_rows import LateRows
from midstream.state.base_state import TIME
from midstream.state.keys import key_codes

Keys = Mapping[str, KeyClass]
"""The key classes that rows are placed by, by name."""


@dataclass(frozen=True)
class JoinedRows:
    """Partial results: the i-th rows of all `parts`, by source label, belong together.

    A part has the event time and those columns of its source that later predicates and the select list read: a partial
    result travels with its rows, because no other node has them. Within a process they are gathered as late as can be.
    `moment` is as in `Partials`. `origin` is the node of each one's first hop, where nodes have orders of their own.
    """

    parts: Mapping[str, LateRows]
    moment: Words
    origin: Words | None = None

    def __len__(self) -> int:
        return len(self.moment)

    def take(self, at: Words) -> JoinedRows:
        """Select the partial results at these places."""
        origin = None if self.origin is None else self.origin[at]
        return JoinedRows({label: part.take(at) for label, part in self.parts.items()}, self.moment[at], origin)

    def joined(self, at: Words, label: str, rows: LateRows) -> JoinedRows:
        """Select the partial results at these places, and add a row of one more source to each."""
        found = self.take(at)
        return JoinedRows({**found.parts, label: rows}, found.moment, found.origin)

    def without_origin(self) -> JoinedRows:
        """Forget the nodes of the first hops, which no later hop asks for."""
        return self if self.origin is None else JoinedRows(self.parts, self.moment)

    def read(self, column: Column) -> pa.Array:
        """Read a column."""
        return self.parts[column.alias].column(column.name)

    @cached_property
    def newest(self) -> Words:
        """The event time of each partial result's newest row."""
        found: Words = np.maximum.reduce([times(part) for part in self.parts.values()])
        return found

    def size(self, at: Words) -> int:
        """Count the bytes of the values of the partial results at these places, however they are sent."""
        words = self.moment.itemsize * (1 if self.origin is None else 2)
        return words * len(at) + sum(part.size(at) for part in self.parts.values())

    def partials(self, keys: Keys) -> Partials:
        """Extract what a spreading sees of them: event times, and the codes of the keys that they carry."""
        carried = {name: [part for label in self.parts if (part := _codes(one, label, self.parts[label])) is not None]
                   for name, one in keys.items()}  # fmt: skip
        return Partials(
            {label: times(part) for label, part in self.parts.items()},
            {name: codes[0] for name, codes in carried.items() if codes},
            self.moment,
        )


def concatenated(pieces: Sequence[JoinedRows]) -> JoinedRows:
    """Concatenate partial results of equal sources, in any order of sources."""
    if len(pieces) == 1:
        return pieces[0]
    parts = {label: LateRows.together([piece.parts[label] for piece in pieces]) for label in pieces[0].parts}
    origins = [piece.origin for piece in pieces if piece.origin is not None]
    moment, origin = np.concatenate([piece.moment for piece in pieces]), np.concatenate(origins) if origins else None
    return JoinedRows(parts, moment, origin)


def stream_rows(label: str, batch: pa.RecordBatch, keys: Keys) -> StreamRows:
    """Extract what a spreading sees of a source's rows."""
    codes = {name: found for name, one in keys.items() if (found := _codes(one, label, batch)) is not None}
    return StreamRows(times(batch), codes)


def times(rows: pa.RecordBatch | LateRows) -> Words:
    """Return the event times of rows."""
    return np.asarray(rows.column(TIME).to_numpy(zero_copy_only=False), np.int64)


def _codes(key: KeyClass, label: str, rows: pa.RecordBatch | LateRows) -> Words | None:
    # None where the source has no part in the key class.
    members = key.within((label,))
    if not members:
        return None
    return key_codes([evaluate(members[0], lambda column: rows.column(column.name), len(rows))])[0]
