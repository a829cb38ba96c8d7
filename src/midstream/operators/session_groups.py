"""The result operator of a query that groups rows by sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.logical.query import START, Aggregate
from midstream.model.window import EVENT_TIME
from midstream.operators.group_numbers import group_numbers
from midstream.operators.open_groups import OpenGroupsOperator
from midstream.operators.result_compiler import Asked, ResultCompiler
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import ResultOperator
from midstream.state.combinations import Combinations, Words
from midstream.state.rows import united

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

    @override
    def takes(self, asked: Asked) -> bool:
        return asked.form == "session"

    @override
    def compile(self, asked: Asked) -> ResultOperator:
        return SessionOperator(asked.query, asked.binding.rows(), (), asked.name)
