"""What the result operators have in common whose groups are answered once, at their end, and kept until then."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.model.ids import StateId, StateKind
from midstream.model.window import EVENT_TIME
from midstream.operators.aggregate import AggregateOperator, evaluated
from midstream.runtime.dead_letters import together
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, with_time
from midstream.state.combinations import Combinations, Words


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
