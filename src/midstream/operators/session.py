"""The result operator of a query that groups rows by sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.language.query import START
from midstream.model.ids import StateId, StateKind
from midstream.model.window import EVENT_TIME
from midstream.operators.aggregate import AggregateOperator, evaluated, group_numbers
from midstream.runtime.dead_letters import together
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, with_time
from midstream.state.base_state import SLOT
from midstream.state.combinations import Combinations, Words
from midstream.state.rows import united

_TIME = "_ts"


@dataclass(frozen=True)
class SessionOperator(AggregateOperator):
    """Answers each session once the watermark has passed its end, at that time.

    What is grouped and summed up of the rows of sessions that go on is a table of its own, for no window says how long
    a row is needed. The rows stay spread by their slots, so that lanes can be divided. `name` is the query's and the
    step it began with.
    """

    name: str

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        rows, dead = self.sorted_out(lane, deltas[0])
        known, (begin, end) = lane.table(self._table), self.span(lane)
        nothing = Answer(self.schema().empty_table(), np.zeros(0, np.int64), dead)
        if not len(rows) and (known is None or end <= begin):
            return nothing
        whole, ends = self._going_on(lane, rows, known)
        over = ends < end
        if len(rows) or over.any():
            lane.keep(self._table, whole.filter(pa.array(~over)))
        if not over.any():
            return nothing
        closed = whole.filter(pa.array(over))
        columns = {name: closed.column(name) for name in closed.schema.names}
        columns[START] = columns[_TIME].cast(self.query.time)
        found = self._summed_up(columns, ends[over])
        return replace(found, dead=together(dead, found.dead))

    @override
    def tables(self, lane: Lane) -> frozenset[StateId]:
        kept = lane.table(self._table)
        return frozenset() if kept is None or not kept.num_rows else frozenset({self._table})

    @property
    def _table(self) -> StateId:
        return StateId(self.name, "sessions", StateKind.HELD.value)

    def _going_on(self, lane: Lane, rows: Combinations, known: pa.RecordBatch | None) -> tuple[pa.RecordBatch, Words]:
        """The rows of sessions that are not answered yet, by group and time, and when the session of each ends."""
        assert self.query.aggregate is not None and self.query.aggregate.session is not None
        batches = [batch for batch in (known, self._arrived(lane, rows)) if batch is not None]
        whole = united(batches, batches[0].schema.names)
        times = whole.column(_TIME).to_numpy()
        groups = [whole.column(f"g{number}") for number in range(len(self.query.aggregate.groups))]
        numbers, _ = group_numbers(pa.array(np.zeros(len(times), np.int64)), groups)
        order = np.lexsort((times, numbers))
        return whole.take(pa.array(order)), session_ends(times[order], numbers[order], self.query.aggregate.session)

    def _arrived(self, lane: Lane, rows: Combinations) -> pa.RecordBatch | None:
        assert self.query.aggregate is not None
        if not len(rows):
            return None
        (label,) = self.rows
        times = rows.valid_from[EVENT_TIME]
        columns = evaluated(self.query.aggregate, with_time(lane.reader(self.rows, rows), times), len(rows))
        columns[_TIME] = pa.array(times)
        stored = lane.rows(self.rows[label])
        if SLOT in stored.new.batch.schema.names:
            columns[SLOT] = stored.fetch(SLOT, rows.refs[label])
        return pa.RecordBatch.from_pydict(columns)


def session_ends(times: Words, numbers: Words, gap: int) -> Words:
    """For each row, in order of group and time, when its session ends.

    >>> session_ends(np.array([0, 5, 11, 0]), np.array([1, 1, 1, 2]), 5).tolist()
    [10, 10, 16, 5]
    """
    if not len(times):
        return times
    first = np.ones(len(times), np.bool_)
    first[1:] = (numbers[1:] != numbers[:-1]) | (times[1:] - times[:-1] > gap)
    last = np.append(np.flatnonzero(first)[1:], len(times)) - 1
    found: Words = (times[last] + gap)[np.cumsum(first) - 1]
    return found
