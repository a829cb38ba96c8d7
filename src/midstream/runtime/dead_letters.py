"""Rows and results of a query for which something cannot be evaluated, as they go to its dead-letter output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.expr.evaluate import all_hold, fails
from midstream.expr.expression import TIME_COLUMN, Call, Column, Expression, infix
from midstream.expr.functions import EVALUABLE, UNLESS_FALSE
from midstream.expr.types import BOOLEAN
from midstream.logical.query import Query
from midstream.logical.row_checks import combination_checks, output_checks, row_checks
from midstream.plan.signature import relabel

REASON = "_reason"

Mask = npt.NDArray[np.bool_]
Read = Callable[[Column], pa.Array]


@dataclass(frozen=True)
class DeadLetters:
    """What of a query's rows and results is rejected, and how it is told.

    A table of dead letters has a column `alias.column` for each that the query reads, the outputs of an aggregate
    query under their names, `_ts`, the time of the row or the result, and the `_reason`. What it does not concern is
    NULL: a row that is rejected by itself has the columns of its own source. `names` are the aliases by label.
    """

    query: Query
    names: Mapping[str, str]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of a table of dead letters."""
        read = {(c.alias, c.name): c.type for e in self.query.expressions() for c in e.columns() if c.alias}
        fields = [
            pa.field(self._title(label, name), read[label, name])
            for label in (*self.query.aliases, *(self.query.on_top.labels if self.query.on_top else ()))
            for name in self.query.columns_of(label)
        ]
        if self.query.groups is not None:
            fields += [pa.field(o.name, o.expression.type) for o in self.query.outputs if o.name != TIME_COLUMN]
        return pa.schema([*fields, pa.field(TIME_COLUMN, self.query.time), pa.field(REASON, pa.string())])

    @cached_property
    def row_checks(self) -> Mapping[str, tuple[Expression, ...]]:
        """The parts of conditions that may fail for a row of a source, by label."""
        return row_checks(self.query)

    @cached_property
    def result_checks(self) -> tuple[Expression, ...]:
        """The checks that may fail for a combination of rows that meets all conditions that can be evaluated."""
        return (*combination_checks(self.query), *output_checks(self.query))

    def of_rows(self, label: str, batch: pa.RecordBatch) -> pa.Table | None:
        """Collect the rows of a source that are rejected by themselves, or return None where there are none.

        Such a row makes no selection on it false, and a part of a condition cannot be evaluated for it.
        """
        conditions = [e for alias, e in self.query.selections if alias in (label, "") and not _is_check(e)]
        passing = all_hold((Call(BOOLEAN, UNLESS_FALSE, (e,)) for e in conditions), batch)
        failed = [
            (check, fails(check, lambda c: batch.column(c.name), batch.num_rows) & passing)
            for check in self.row_checks[label]
        ]
        at, reasons = self._told(failed, batch.num_rows)
        if not len(at):
            return None
        rows = batch.take(pa.array(at))
        own = {self._title(label, name): rows.column(name) for name in self.query.columns_of(label)}
        return self.table(own, rows.column(TIME_COLUMN).to_numpy(), reasons)

    def sorted_out(
        self, read: Read, stored: Mapping[str, Iterable[str]], times: npt.NDArray[np.int64]
    ) -> tuple[Mask | None, pa.Table | None]:
        """Separate the combinations that remain from those that are rejected; None and None where all remain.

        `stored` are the columns that can be read, by label.
        """
        failed = [(check, fails(check, read, len(times))) for check in self.result_checks]
        at, reasons = self._told(failed, len(times))
        if not len(at):
            return None, None
        kept = np.ones(len(times), np.bool_)
        kept[at] = False
        places = pa.array(at)
        columns = {
            self._title(label, name): read(Column(self.schema.field(self._title(label, name)).type, label, name))
            for label, names in stored.items()
            for name in names
            if name in self.query.columns_of(label)
        }
        return kept, self.table({title: c.take(places) for title, c in columns.items()}, times[at], reasons)

    def of_outputs(
        self, outputs: Mapping[str, pa.Array], times: npt.NDArray[np.int64], failed: Sequence[tuple[str, Mask]]
    ) -> tuple[Mask | None, pa.Table | None]:
        """Separate an aggregate query's results that remain from rejected ones; None and None if all remain.

        `failed` marks where each output cannot be evaluated.
        """
        at, reasons = _first(failed, len(times))
        if not len(at):
            return None, None
        kept = np.ones(len(times), np.bool_)
        kept[at] = False
        columns = {name: _whole(c.take(pa.array(at))) for name, c in outputs.items() if name != TIME_COLUMN}
        return kept, self.table(columns, times[at], reasons)

    def table(self, columns: Mapping[str, pa.Array], times: npt.NDArray[np.int64], reasons: Sequence[str]) -> pa.Table:
        """Build dead letters of these columns; the others are NULL."""
        moments = pa.array(times).view(pa.int64()).cast(self.query.time)
        given = {**columns, TIME_COLUMN: moments, REASON: pa.array(reasons, pa.string())}
        arrays = [given[f.name] if f.name in given else pa.nulls(len(times), f.type) for f in self.schema]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _title(self, label: str, name: str) -> str:
        return f"{self.names.get(label, label)}.{name}"

    def _told(self, failed: Sequence[tuple[Expression, Mask]], count: int) -> tuple[npt.NDArray[np.intp], list[str]]:
        return _first([(infix(relabel(e, self.names)), mask) for e, mask in failed], count)


def _first(failed: Sequence[tuple[str, Mask]], count: int) -> tuple[npt.NDArray[np.intp], list[str]]:
    which = np.full(count, -1)
    for number in reversed(range(len(failed))):
        which[failed[number][1]] = number
    at = np.flatnonzero(which >= 0)
    return at, [f"{failed[number][0]} cannot be evaluated" for number in which[at].tolist()]


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _is_check(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == EVALUABLE


def together(*tables: pa.Table | None) -> pa.Table | None:
    """Concatenate all dead letters of a query in the order of the tables; None where there are none."""
    there = [table for table in tables if table is not None and table.num_rows]
    return pa.concat_tables(there) if there else None
