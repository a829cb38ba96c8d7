"""The leaf of a plan: a stream's admitted rows under the query's selection."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from midstream.expr.evaluate import all_hold, hold_in_order
from midstream.expr.expression import Expression, conjunction
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.model.words import window_text
from midstream.runtime.lane import Lane
from midstream.runtime.operator import Operator
from midstream.state.base_state import kept_columns
from midstream.state.combinations import Combinations, concatenate
from midstream.state.gather import column_of
from midstream.state.lineage import ARRIVED, LINEAGE, Lineage
from midstream.state.specs import RowsSpec, StateSpec


@dataclass(frozen=True)
class SourceOperator(Operator):
    """Selects the step's rows of a stream, numbers them and keeps them as base rows.

    With an `order` of the conditions, by their numbers, each is evaluated on the rows that those before it leave, and
    counts these rows under an id of its own.
    """

    spec: RowsSpec
    selection: tuple[Expression, ...]
    order: tuple[int, ...] = ()

    rests: ClassVar[bool] = True

    @override
    @cached_property
    def id(self) -> OperatorId:
        return OperatorId("source", self.spec.id)

    @override
    def children(self) -> tuple[Operator, ...]:
        return ()

    @override
    @property
    def input(self) -> str:
        return self.spec.input

    @override
    @cached_property
    def labels(self) -> frozenset[str]:
        return frozenset({self.spec.label})

    @override
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        return ()

    @override
    @cached_property
    def counted(self) -> tuple[OperatorId, ...]:
        return (self.id, *(self.conditions if self.order else ()))

    @cached_property
    def conditions(self) -> tuple[OperatorId, ...]:
        """The ids under which conditions count the rows that they are evaluated for, if they have an order."""
        return tuple(OperatorId("condition", f"{self.spec.id} {one.text()}") for one in self.tested)

    @cached_property
    def tested(self) -> tuple[Expression, ...]:
        """The conditions that each row is tested by; none where rows are kept for several filters."""
        lineage = self.spec.lineage
        if lineage is None:
            return self.selection
        return lineage.conditions_of(lineage.filters[0]) if len(lineage.filters) == 1 else ()

    @property
    def filters(self) -> int:
        """How many filters each row is tested by; none where conditions count by themselves."""
        lineage = self.spec.lineage
        if self.order:
            return 0
        return int(bool(self.selection)) if lineage is None else sum(bool(f.conjuncts) for f in lineage.filters)

    @override
    def advance(self, lane: Lane) -> Combinations:
        arrived = lane.input(self.spec.input)
        if not arrived.num_rows:
            lane.count(self.id, Counters())
            return lane.base(self.spec).append_nothing(self._kept_of_nothing(arrived))
        delta = lane.base(self.spec).append(self._kept(arrived, lane.clock.step, lane))
        tested = arrived.num_rows * self.filters
        lane.count(self.id, Counters(rows_in=arrived.num_rows, predicates=tested, rows_out=len(delta)))
        return delta

    def _kept(self, arrived: pa.RecordBatch, step: int, lane: Lane | None = None) -> pa.RecordBatch:
        names, lineage = tuple(arrived.schema.names), self.spec.lineage
        if (columns := self._known_columns.get(names)) is None:
            columns = self._known_columns[names] = KeptColumns.of(names, self.spec)
        kept = arrived if columns.places is None else arrived.select(columns.places)
        mask = self._selected(arrived, lane) if lane is not None and self.order else None
        if lineage is None:
            if mask is None and self.selection and arrived.num_rows:
                mask = all_hold(self.selection, arrived)
        else:
            marks, mask = _marks(arrived, lineage, mask)
            kept = kept.add_column(columns.marks_at, _MARKS, marks)
            kept = kept.add_column(columns.step_at, _STEP, _repeated(step, arrived.num_rows))
        return kept if mask is None or mask.all() else kept.filter(pa.array(mask))

    def _selected(self, arrived: pa.RecordBatch, lane: Lane) -> npt.NDArray[np.bool_]:
        mask, evaluated = hold_in_order([self.tested[number] for number in self.order], arrived)
        for number, rows in zip(self.order, evaluated, strict=True):
            lane.count(self.conditions[number], Counters(predicates=rows))
        return mask

    @cached_property
    def _known_columns(self) -> dict[tuple[str, ...], KeptColumns]:
        return {}

    def _kept_of_nothing(self, arrived: pa.RecordBatch) -> pa.RecordBatch:
        """Return the same where no row arrived, made once for each schema."""
        known = self._nothing.get(arrived.schema)
        if known is None:
            known = self._nothing[arrived.schema] = self._kept(arrived, 0)
        return known

    @cached_property
    def _nothing(self) -> dict[pa.Schema, pa.RecordBatch]:
        return {}

    @override
    def content(self, lane: Lane) -> Combinations:
        pieces = self.runs(lane)
        return concatenate(pieces) if pieces else self.spec.heading.nothing

    def runs(self, lane: Lane) -> list[Combinations]:
        """The rows of before the step that are alive, in the runs that they are kept in."""
        return lane.base(self.spec).alive(lane.bounds(self.spec.id))

    @override
    def describe(self) -> str:
        spec = self.spec
        if spec.lineage is not None:
            return f"source {spec.label}{_shared_text(spec.lineage)}"
        size = f" [{window_text(spec.window.kind, spec.window.size)}]" if spec.window else ""
        where = f" where {conjunction(self.selection)}" if self.selection else ""
        return f"source {spec.label}{size}{where}"

    @override
    def title(self) -> str:
        window = self.spec.window
        newest = "newest" if window is not None and window.kind == "rows" else "last"
        size = f", the {newest} {window_text(window.kind, window.size)}" if window else ""
        where = f", where {conjunction(self.selection)}" if self.selection else ""
        return f"{self.spec.label}{size}{where}"


@dataclass(frozen=True)
class KeptColumns:
    """Where columns of arrived rows go in what is kept of them: at these `places`, or as they are, and two more.

    They are in the order of their names, as in chunks made of others, so that these are put together as they are.
    """

    places: list[int] | None
    marks_at: int
    step_at: int

    @staticmethod
    def of(names: Sequence[str], spec: RowsSpec) -> KeptColumns:
        """That of rows with columns of these names."""
        kept = [name for name in kept_columns(names, spec.columns) if name in names]
        marks_at = bisect_left(kept, LINEAGE)
        step_at = bisect_left([*kept[:marks_at], LINEAGE, *kept[marks_at:]], ARRIVED)
        return KeptColumns(None if kept == list(names) else [names.index(name) for name in kept], marks_at, step_at)


_MARKS, _STEP = pa.field(LINEAGE, pa.int64()), pa.field(ARRIVED, pa.int64())


def _marks(
    arrived: pa.RecordBatch, lineage: Lineage, passing: npt.NDArray[np.bool_] | None
) -> tuple[pa.Array, npt.NDArray[np.bool_] | None]:
    """The lineage of each row, and which rows pass some query's filter, None for all: each filter is evaluated once a
    row (Wang §7.4.1). Where it is known which rows are `passing`, there is one filter.
    """
    always = 0
    for one in lineage.filters:
        always |= 0 if one.conjuncts else one.mask
    tested = [one for one in lineage.filters if one.conjuncts]
    if not tested and always:
        return _repeated(always, arrived.num_rows), None
    words = np.full(arrived.num_rows, always, np.int64)
    for one in tested:
        held = all_hold(lineage.conditions_of(one), arrived) if passing is None else passing
        words |= np.where(held, one.mask, 0)
    return column_of(words), words != 0


def _repeated(word: int, rows: int) -> pa.Array:
    return column_of(np.full(rows, word, np.int64))


def _shared_text(lineage: Lineage) -> str:
    windows = [f"[{window_text(lineage.kind, f.size)}]" for f in lineage.filters]
    wheres = [f" where {conjunction(lineage.conditions_of(f))}" if f.conjuncts else "" for f in lineage.filters]
    return " " + ", or ".join(window + where for window, where in zip(windows, wheres, strict=True))
