"""The result operator of a query that groups a stream by days, weeks or other units of a calendar, in a time zone.

Such units are of unequal length: a day has 23, 24 or 25 hours. So each row is kept with the end of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.expr.kernels.date_functions import unit_ends
from midstream.logical.query import Aggregate
from midstream.model.window import EVENT_TIME
from midstream.operators.open_groups import OpenGroupsOperator
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import ResultOperator
from midstream.state.combinations import Combinations, Words
from midstream.state.rows import united

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

    @override
    def takes(self, asked: Asked) -> bool:
        return asked.form == "calendar"

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        return CalendarOperator(asked.query, asked.binding.rows(), (), asked.name)
