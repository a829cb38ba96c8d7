"""The step's rows of a query that is spread over nodes: what it reads of each source, selected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from midstream.expr.evaluate import all_hold
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.model.manifest import Manifest
from midstream.operators.multi_join import MultiJoinOperator
from midstream.ring.columns import Words
from midstream.ring.joined_rows import times
from midstream.ring.logical_slices import serving
from midstream.ring.shared_queries import bits_of
from midstream.state.base_state import TIME
from midstream.state.lineage import ARRIVED
from midstream.state.specs import RowsSpec
from midstream.units.query_unit import QueryUnit
from midstream.units.ring_unit import RingUnit


@dataclass(frozen=True)
class StepArrivals:
    """Rows by source, with the columns that are kept, what selecting them counts, and the dead letters among them."""

    rows: Mapping[str, pa.RecordBatch]
    counters: Mapping[OperatorId, Counters]
    rejected: pa.Table | None = None

    @staticmethod
    def selected(unit: QueryUnit, rows: Mapping[str, pa.RecordBatch], step: int) -> StepArrivals:
        """Select what the join of a unit reads of the admitted rows of each stream, in a step.

        Of queries that share it, each row that some query needs is read, with their bitmap.
        """
        (join,) = unit.box(unit.plan).roots
        assert isinstance(join, MultiJoinOperator)
        found, counted = {}, {}
        for route in join.routes:
            source = route.source
            arrived = rows[source.spec.input]
            chosen, filters = arrived, source.filters
            if isinstance(unit, RingUnit):
                label = source.spec.label
                every = arrived.append_column(ARRIVED, pa.array(np.full(arrived.num_rows, step, np.int64)))
                marked = unit.shared.marked(label, every.select(kept_names(source.spec)))
                found[label] = marked.filter(pa.array(serving(bits_of(marked))))
                chosen, filters = found[label], unit.shared.filters(label)
            elif source.selection:
                chosen = arrived.filter(pa.array(all_hold(source.selection, arrived)))
            tested = arrived.num_rows * filters
            counted[source.id] = Counters(rows_in=arrived.num_rows, predicates=tested, rows_out=chosen.num_rows)
            found.setdefault(source.spec.label, chosen.select(kept_names(source.spec)))
        counted[join.id] = Counters(rows_in=sum(batch.num_rows for batch in found.values()))
        return StepArrivals(found, counted, unit.result_operator.rejected_rows(rows.__getitem__))

    @property
    def times(self) -> dict[str, Words]:
        """The event times by source."""
        return {label: times(batch) for label, batch in self.rows.items()}

    @property
    def newest(self) -> int | None:
        """The greatest event time; None where no row came."""
        return max((int(np.max(ts)) for ts in self.times.values() if len(ts)), default=None)


def kept_names(spec: RowsSpec) -> list[str]:
    """List the columns that are kept of a source, in order."""
    return sorted({TIME, *spec.columns})


def no_rows(spec: RowsSpec, manifest: Manifest) -> pa.RecordBatch:
    """Make an empty batch of a source, with the columns that are kept."""
    columns = manifest.streams[spec.stream].columns
    kinds = [pa.int64() if name in (TIME, ARRIVED) else columns.field(name).type for name in kept_names(spec)]
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in kinds], names=kept_names(spec))
