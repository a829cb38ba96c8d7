"""What the result operators have in common whose groups are answered once, at their end, and kept until then."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.expr.kernels.date_functions import unit_ends
from midstream.logical.query import START, Aggregate
from midstream.model.ids import StateId, StateKind
from midstream.model.window import EVENT_TIME
from midstream.operators.aggregate import AggregateOperator, evaluated
from midstream.operators.group_numbers import group_numbers
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.dead_letters import together
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, with_time
from midstream.state.combinations import Combinations, Words
from midstream.state.rows import united


@dataclass(frozen=True)
class OpenGroupsOperator(AggregateOperator):
    """Answers each group once the watermark has passed its end, at that time.

    What is grouped and summed up for groups that go on is a table of its own, `content`, which has the
    values that are grouped by, so that lanes can be divided. `name` is the query's and the step it began with.
    """

    name: str
    content: ClassVar[str]

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        rows, dead = self.sorted_out(lane, deltas[0])
        known, (begin, end) = lane.table(self.open_groups), self.span(lane)
        nothing = Answer(self.schema().empty_table(), np.zeros(0, np.int64), dead)
        if not len(rows) and (known is None or end <= begin):
            return nothing
        whole, ends = self.going_on(lane, rows, known)
        over = ends < end
        if len(rows) or over.any():
            lane.keep(self.open_groups, whole.filter(pa.array(~over)))
        if not over.any():
            return nothing
        found = self._summed_up(self.closed(whole.filter(pa.array(over))), ends[over])
        return replace(found, dead=together(dead, found.dead))

    @override
    def tables(self, lane: Lane) -> frozenset[StateId]:
        kept = lane.table(self.open_groups)
        return frozenset() if kept is None or not kept.num_rows else frozenset({self.open_groups})

    @property
    def open_groups(self) -> StateId:
        """The id of the lane's table of groups that are not answered yet."""
        return StateId(self.name, self.content, StateKind.HELD.value)

    @abstractmethod
    def going_on(self, lane: Lane, rows: Combinations, known: pa.RecordBatch | None) -> tuple[pa.RecordBatch, Words]:
        """What is `known` of the groups that are not answered yet, with the step's rows, and when the group of each row
        ends; one of both there is.
        """

    def closed(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """What is summed up of rows of groups that have ended."""
        return {name: rows.column(name) for name in rows.schema.names}

    def evaluated(self, lane: Lane, rows: Combinations) -> dict[str, pa.Array]:
        """What is grouped and summed up of the step's rows."""
        read = with_time(lane.reader(self.rows, rows), rows.valid_from[EVENT_TIME])
        return evaluated(self.node, read, len(rows))


_TIME = "_ts"


@dataclass(frozen=True)
class SessionOperator(OpenGroupsOperator):
    """Keeps what is read of each row of a session that goes on, because no window says how long a row is needed."""

    content: ClassVar[str] = "sessions"

    @override
    def going_on(self, lane: Lane, rows: Combinations, known: pa.RecordBatch | None) -> tuple[pa.RecordBatch, Words]:
        assert self.node.session is not None
        batches = [batch for batch in (known, self._arrived(lane, rows)) if batch is not None]
        whole = united(batches, batches[0].schema.names)
        times = whole.column(_TIME).to_numpy()
        groups = [whole.column(f"g{number}") for number in range(len(self.node.groups))]
        numbers, _ = group_numbers(pa.array(np.zeros(len(times), np.int64)), groups)
        order = np.lexsort((times, numbers))
        return whole.take(pa.array(order)), session_ends(times[order], numbers[order], self.node.session)

    @override
    def closed(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        return {**super().closed(rows), START: rows.column(_TIME).cast(self.query.time)}

    def _arrived(self, lane: Lane, rows: Combinations) -> pa.RecordBatch | None:
        if not len(rows):
            return None
        times = pa.array(rows.valid_from[EVENT_TIME])
        return pa.RecordBatch.from_pydict({**self.evaluated(lane, rows), _TIME: times})


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


class SessionCompiler(ResultCompiler):
    """Compiles an aggregate over sessions."""

    name = "session"
    node = Aggregate
    forms = ("session",)

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        return SessionOperator(asked.query, asked.binding.rows(), (), asked.name)


_END = "_end"


@dataclass(frozen=True)
class CalendarOperator(OpenGroupsOperator):
    """Keeps what is read of each row until the unit that it is in has ended; a group's time is its last microsecond."""

    content: ClassVar[str] = "calendar"

    @override
    def going_on(self, lane: Lane, rows: Combinations, known: pa.RecordBatch | None) -> tuple[pa.RecordBatch, Words]:
        batches = [batch for batch in (known, self._arrived(lane, rows)) if batch is not None]
        whole = united(batches, batches[0].schema.names)
        return whole, whole.column(_END).to_numpy()

    def _arrived(self, lane: Lane, rows: Combinations) -> pa.RecordBatch | None:
        if not len(rows):
            return None
        assert self.node.calendar is not None
        unit, zone = self.node.calendar
        times = pa.array(rows.valid_from[EVENT_TIME]).cast(pa.timestamp("us"))
        ends = unit_ends(times, unit, zone).cast(pa.int64())
        last = pa.array(ends.to_numpy() - 1)
        return pa.RecordBatch.from_pydict({**self.evaluated(lane, rows), _END: last})


class CalendarCompiler(ResultCompiler):
    """Compiles an aggregate over units of a calendar."""

    name = "calendar"
    node = Aggregate
    forms = ("calendar",)

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        return CalendarOperator(asked.query, asked.binding.rows(), (), asked.name)
