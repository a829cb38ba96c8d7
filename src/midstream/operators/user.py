"""The result operator of a query with a user's operator on top (HybMig §4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from midstream.expr.evaluate import evaluate
from midstream.expr.expression import TIME_COLUMN
from midstream.logical.query import Output, Query
from midstream.model.codec import decode, encode, written_as
from midstream.model.ids import StateId, StateKind
from midstream.model.window import EVENT_TIME, FOREVER
from midstream.operators.successor import Successor
from midstream.operators.user_operator import LIFETIME, OperatorSpec
from midstream.runtime.lane import Lane
from midstream.runtime.result_operator import Answer, ResultOperator, time_array, with_time
from midstream.runtime.watermark import BEGINNING
from midstream.state.combinations import Combinations, Words


def fed(query: Query) -> list[Output]:
    """The columns of a query that an operator is fed; the pseudo-column `_ts` it is given in any case."""
    return [o for o in query.outputs if not (o.name == o.expression.text() == TIME_COLUMN)]


def fed_columns(query: Query) -> pa.Schema:
    """The columns of the rows that an operator on top of a query is fed: the query's, and the lifetime of each."""
    return pa.schema([*((o.name, o.expression.type) for o in fed(query)), *((name, query.time) for name in LIFETIME)])


@dataclass(frozen=True)
class Standing:
    """Which operator gives the answer, and which one is on the way to; `mark` names where its snapshot is kept."""

    spec: OperatorSpec = field(metadata=written_as("operator"))
    mark: str
    successor: Successor | None = None

    def to_batch(self) -> pa.RecordBatch:
        """As a table of one row."""
        return pa.RecordBatch.from_pydict({"json": [json.dumps(encode(self))]})

    @staticmethod
    def from_batch(batch: pa.RecordBatch) -> Standing:
        """What `to_batch` wrote."""
        return decode(Standing, json.loads(batch.column("json")[0].as_py()))


@dataclass(frozen=True)
class UserResultOperator(ResultOperator):
    """Feeds the query's rows to the operator; its snapshot is kept with the lane's state, so that a step stays pure.

    The rows are fed in order of time, and at equal times in order of arrival at each source, so that the plan
    makes no difference. `name` is the query's and the step it began with; `spec` is the operator it has or will have.
    """

    name: str
    spec: OperatorSpec

    @override
    @property
    def slack(self) -> int:
        # A migration must find all rows that the operator may remember.
        return self.spec.remembers()

    @cached_property
    def columns(self) -> pa.Schema:
        """The columns of the rows that it is fed."""
        return fed_columns(self.query)

    @override
    def schema(self) -> pa.Schema:
        return self._schema

    @cached_property
    def _schema(self) -> pa.Schema:
        return self.spec.schema(self.columns)

    @override
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        (results,) = deltas
        results, dead = self.sorted_out(lane, results)
        standing = self.standing(lane) or Standing(self.spec, "first")
        rows, watermark = self.rows_of(lane, results), self.watermark(lane.clock.after)
        found = self.feed(lane, standing.spec, standing.mark, [(rows, watermark)])
        if standing.successor is not None:
            standing = self._succeeded(lane, standing, standing.successor, rows, watermark)
        lane.keep(self._table("operator"), standing.to_batch())
        times = np.full(found.num_rows, BEGINNING if watermark is None else watermark, np.int64)
        return Answer(found, times, dead)

    def _succeeded(
        self, lane: Lane, standing: Standing, coming: Successor, rows: pa.Table, watermark: int | None
    ) -> Standing:
        """Feed the successor too, its results thrown away, until it may take over."""
        before = self.watermark(lane.clock.before)
        id = self._table(f"queue-{coming.mark}")
        waiting = lane.table(id)
        coming, pieces, left = coming.fed_with(waiting, rows, watermark, before)
        self.feed(lane, coming.spec, coming.mark, pieces)
        if left is not None:
            lane.keep(id, left)
        if coming.is_over(before):
            return Standing(coming.spec, coming.mark)
        return replace(standing, successor=coming)

    def feed(
        self, lane: Lane, spec: OperatorSpec, mark: str, pieces: Sequence[tuple[pa.Table, int | None]]
    ) -> pa.Table:
        """Feed an operator and keep what it remembers; gives its results."""
        id = self._table(f"operator-{mark}")
        made = spec.make(lane.table(id))
        found = [spec.feed(made, rows, watermark, self.schema()) for rows, watermark in pieces]
        lane.keep(id, spec.snapshot(made))
        return pa.concat_tables([self.schema().empty_table(), *found])

    def standing(self, lane: Lane) -> Standing | None:
        """Which operators there are; None before the query's first step."""
        batch = lane.table(self._table("operator"))
        return None if batch is None else Standing.from_batch(batch)

    def begin(self, lane: Lane, standing: Standing, waiting: pa.RecordBatch | None = None) -> None:
        """Note which operators there are from now on, and what waits to be fed to the successor."""
        lane.keep(self._table("operator"), standing.to_batch())
        if waiting is not None and standing.successor is not None:
            lane.keep(self._table(f"queue-{standing.successor.mark}"), waiting)

    @override
    def tables(self, lane: Lane) -> frozenset[StateId]:
        standing = self.standing(lane)
        if standing is None:
            return frozenset()
        names = {"operator", f"operator-{standing.mark}"}
        if standing.successor is not None:
            names.add(f"operator-{standing.successor.mark}")
            if standing.successor.budget is not None:
                names.add(f"queue-{standing.successor.mark}")
        return frozenset(map(self._table, names))

    @override
    def reports(self, lane: Lane) -> dict[str, dict[str, Any]]:
        standing = self.standing(lane)
        if standing is None or standing.successor is None:
            return {}
        report = standing.successor.report(self.watermark(lane.clock.before))
        return {standing.successor.mark: {"comparisons": 0, "going": True, "pieces": {"operator": report}}}

    def rows_of(self, lane: Lane, results: Combinations) -> pa.Table:
        """Results as the operator is fed them."""
        if not len(results):
            return self.columns.empty_table()  # Nor may there be rows to read from yet.
        times = results.valid_from[EVENT_TIME]
        order = np.lexsort((*(results.refs[label] for label in sorted(results.refs, reverse=True)), times))
        ordered, times = results.take(order), times[order]
        read = with_time(lane.reader(self.rows, ordered), times)
        lifetime = [time_array(times, self.query.time), self._ends(ordered)]
        return pa.Table.from_arrays(
            [*(evaluate(o.expression, read, len(times)) for o in fed(self.query)), *lifetime],
            schema=self.columns,
        )

    def _ends(self, results: Combinations) -> pa.Array:
        """Return the last instant of each result; NULL where it has none, or where it depends on later arrivals."""
        ends = results.valid_to[EVENT_TIME]
        open_ended = ends >= FOREVER if len(results.valid_to) == 1 else np.ones(len(ends), np.bool_)
        plain: Words = np.where(open_ended, 0, ends)
        nothing = pa.scalar(None, self.query.time)
        return pc.if_else(pa.array(open_ended, pa.bool_()), nothing, time_array(plain, self.query.time))

    def watermark(self, of_streams: Mapping[str, int]) -> int | None:
        """The query's watermark among those of all streams; None before all of its streams have spoken."""
        least = min(of_streams[stream] for stream in self.query.children)
        return None if least == BEGINNING else least

    def _table(self, what: str) -> StateId:
        return StateId(self.name, what, StateKind.HELD.value)
