"""Where combinations become an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from midstream.expr.evaluate import evaluate
from midstream.expr.expression import TIME_COLUMN, Column
from midstream.logical.query import Query
from midstream.model.ids import StateId
from midstream.model.window import EVENT_TIME, FOREVER
from midstream.runtime.dead_letters import DeadLetters, Mask, together
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.combinations import Combinations, Words
from midstream.state.specs import RowsSpec, StateSpec


@dataclass(frozen=True)
class Answer:
    """Rows of an answer and the time of each, ascending, and the query's dead letters, if there are any.

    `poured` counts those that have gone to a writer of pieces already and are not here.
    """

    table: pa.Table
    times: Words
    dead: pa.Table | None = None
    poured: int = 0

    @property
    def count(self) -> int:
        """The number of rows of the answer, including those already streamed out."""
        return len(self.times) + self.poured


@dataclass(frozen=True)
class ResultOperator(ABC):
    """Turns the deltas of a box's roots into the rows of a query's answer.

    `kept` are the states that hold those roots' output, `names` the aliases of the query's text by label.
    """

    query: Query
    rows: Mapping[str, RowsSpec]
    kept: tuple[StateSpec, ...]
    names: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def slack(self) -> int:
        """The microseconds beyond the watermark for which the result operator needs its states."""
        return 0

    @abstractmethod
    def emit(self, lane: Lane, deltas: Sequence[Combinations]) -> Answer:
        """Compute the step's part of the answer, in order of time."""

    def parts(self, lane: Lane, deltas: Sequence[Combinations], most: int) -> Iterator[Answer]:
        """Yield the answer in parts of about `most` rows, in order of time; as a whole unless splitting is easy."""
        yield self.emit(lane, deltas)

    def own_roots(self) -> tuple[Operator, ...]:
        """Return the operators whose results it takes; none where these are the results of its query's plan."""
        return ()

    def tables(self, lane: Lane) -> frozenset[StateId]:
        """Return the ids of the lane tables that the result operator itself keeps."""
        return frozenset()

    def reports(self, lane: Lane) -> dict[str, dict[str, Any]]:
        """Report by mark what each migration under way does in the result operator itself, as JSON values."""
        return {}

    def schema(self) -> pa.Schema:
        """Return the columns of the answer."""
        return self.query.schema()

    @cached_property
    def _schema(self) -> pa.Schema:
        return self.schema()

    @cached_property
    def dead_letters(self) -> DeadLetters | None:
        """The rejected rows and results of the query; None where everything can surely be evaluated."""
        return DeadLetters(self.query, self.names) if self.query.rejects else None

    @property
    def stored(self) -> dict[str, tuple[str, ...]]:
        """The columns of the sources that can be read of results, by label."""
        return {label: rows.columns for label, rows in self.rows.items()}

    def sorted_out(self, lane: Lane, results: Combinations) -> tuple[Combinations, pa.Table | None]:
        """Select the combinations for which everything can be evaluated; the others become dead letters."""
        times = results.valid_from[EVENT_TIME]
        kept, dead = self.judged(with_time(lane.reader(self.rows, results), times), times)
        return (results if kept is None else results.take(np.flatnonzero(kept))), dead

    def judged(self, read: Callable[[Column], pa.Array], times: Words) -> tuple[Mask | None, pa.Table | None]:
        """Decide which of the results that `read` gives remain (None: all), and build dead letters of the others."""
        letters = self.dead_letters
        if letters is None or not letters.result_checks or not len(times):
            return None, None
        return letters.sorted_out(read, self.stored, times)

    def rejected_rows(self, inputs: Callable[[str], pa.RecordBatch]) -> pa.Table | None:
        """Collect the step's rows that are dead letters by themselves; `inputs` gives each input's rows."""
        letters = self.dead_letters
        if letters is None:
            return None
        arrived = ((label, inputs(self.rows[label].input)) for label in letters.row_checks)
        return together(*(letters.of_rows(label, batch) for label, batch in arrived if batch.num_rows))

    def span(self, lane: Lane) -> tuple[int, int]:
        """Return the half-open range of instants that the query's watermark passes in this step."""
        streams = self.query.children
        return min(lane.clock.before[s] for s in streams), min(lane.clock.after[s] for s in streams)

    def answer(self, columns: Sequence[pa.Array], times: Words) -> Answer:
        """Build an answer of these columns."""
        return Answer(pa.Table.from_arrays(list(columns), schema=self._schema), times)

    def values(self, read: Callable[[Column], pa.Array], count: int) -> list[pa.Array]:
        """Evaluate the select list over rows that `read` gives."""
        return [evaluate(o.expression, read, count) for o in self.query.outputs]

    def ends(self, lane: Lane, combinations: Combinations) -> Words:
        """Compute the last microsecond of each combination's lifetime; this step may evict rows by count."""
        ends = combinations.valid_to[EVENT_TIME]
        for clock, last in combinations.valid_to.items():
            if clock.stream is not None:
                ends = np.minimum(ends, self._evicted(lane, clock.stream, last) - 1)
        return ends

    def _evicted(self, lane: Lane, stream: str, last: Words) -> Words:
        # FOREVER while the row after number `last` has not arrived.
        spec = next(r for r in self.rows.values() if r.stream == stream)
        arrived = lane.input(spec.input)
        times = arrived.column("_ts").to_numpy()
        if not len(times):
            return np.full(len(last), FOREVER, np.int64)
        at = last - lane.arrived_before(spec.input)
        evicted = times[np.clip(at, 0, len(times) - 1)]
        return np.where((at >= 0) & (at < len(times)), evicted, FOREVER)


def time_array(words: Words, kind: pa.DataType) -> pa.Array:
    """Convert microseconds to timestamps of a type in microseconds."""
    return pa.array(words).view(pa.int64()).cast(kind)


def with_time(read: Callable[[Column], pa.Array], words: Words) -> Callable[[Column], pa.Array]:
    """Extend a reader by the pseudo-column of the result's time."""
    return lambda c: time_array(words, c.type) if c.alias == "" and c.name == TIME_COLUMN else read(c)
