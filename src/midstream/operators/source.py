"""The leaf of a plan: a stream's admitted rows under the query's selection."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.language.evaluate import holds
from midstream.language.expression import Expression
from midstream.model.counters import Counters
from midstream.operators.base import Operator
from midstream.state.combinations import Combinations, concatenate, empty
from midstream.state.lane import Lane
from midstream.state.specs import RowsSpec, StateSpec


@dataclass(frozen=True)
class SourceOperator(Operator):
    """Selects the step's rows of a stream, numbers them and keeps them as base rows."""

    spec: RowsSpec
    selection: tuple[Expression, ...]

    @override
    @cached_property
    def id(self) -> str:
        return f"source {self.spec.id}"

    @override
    def children(self) -> tuple[Operator, ...]:
        return ()

    @override
    @cached_property
    def labels(self) -> frozenset[str]:
        return frozenset({self.spec.label})

    @override
    def states(self) -> tuple[tuple[Operator, StateSpec], ...]:
        return ()

    @override
    def advance(self, lane: Lane) -> Combinations:
        arrived = lane.inputs[self.spec.input]
        chosen = self._selected(arrived)
        names = [n for n in chosen.schema.names if n.startswith("_") or n in self.spec.columns]
        delta = lane.base(self.spec).append(chosen.select(names))
        tested = arrived.num_rows * bool(self.selection)
        lane.count(self.id, Counters(rows_in=arrived.num_rows, predicates=tested, rows_out=len(delta)))
        return delta

    @override
    def content(self, lane: Lane) -> Combinations:
        pieces = lane.base(self.spec).alive(lane.bounds.get(self.spec.id, {}))
        return concatenate(pieces) if pieces else empty((self.spec.label,), self.spec.clocks)

    @override
    def describe(self) -> str:
        window = self.spec.window
        size = f" [{window.kind} {window.size}]" if window else ""
        where = f" where {' and '.join(e.text() for e in self.selection)}" if self.selection else ""
        return f"source {self.spec.label}{size}{where}"

    def _selected(self, arrived: pa.RecordBatch) -> pa.RecordBatch:
        if not self.selection or not arrived.num_rows:
            return arrived
        mask = np.ones(arrived.num_rows, np.bool_)
        for condition in self.selection:
            mask &= holds(condition, lambda c: arrived.column(c.name), arrived.num_rows)
        return arrived if mask.all() else arrived.filter(pa.array(mask))
