"""A query goes over to nodes, or comes back from them: its base rows are listed where they are needed from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from midstream.expr.evaluate import all_hold
from midstream.logical.query import query_of
from midstream.model.ids import LaneId, StateId
from midstream.model.manifest import ChunkRef, LaneState, Manifest, StateListing
from midstream.model.window import EVENT_TIME, Clock
from midstream.ring.joined_rows import times
from midstream.ring.logical_slices import queries
from midstream.ring.shared_queries import bits_of
from midstream.runtime.lane_key import slots
from midstream.sharing.shape import shape_of
from midstream.state.base_state import TIME
from midstream.state.chunk_store import Chunk, ChunkStore, store_chunk
from midstream.state.keys import Mask, stable_order
from midstream.state.lineage import ARRIVED, LINEAGE, later
from midstream.state.rows import united
from midstream.state.specs import RowsSpec
from midstream.step.plan_step import StepPlan
from midstream.units.chain_unit import ChainUnit
from midstream.units.program import Program, unit_of
from midstream.units.query_unit import QueryUnit
from midstream.units.ring_unit import RingUnit

Chunks = dict[str, tuple[ChunkRef, Chunk]]
"""The chunks of a source by name, each once."""


@dataclass(frozen=True)
class Former:
    """What a query leaves in lanes, or at other nodes: by source its chunks, and results that were held back."""

    chunks: Mapping[str, Chunks]
    held: tuple[tuple[ChunkRef, pa.RecordBatch], ...] = ()


def former(before: Manifest, name: str, unit: QueryUnit, store: ChunkStore, chunk_name: str) -> Former:
    """Find what the manifest before a step has of a query that is spread from this step on.

    Chunks are listed as they are, except where a chain keeps rows in them that the query cannot be read: then those it
    does are written, under names that begin with `chunk_name`.
    """
    entry = before.queries.get(name)
    if entry is None or entry.since != unit.since:
        return Former({label: {} for label in unit.query.aliases})
    old = unit_of(before, name)
    lanes = [state for lane, state in before.lane_states.items() if lane.group == old.group]
    labels, specs, specs_now = old.labels_of(name), old.binding.rows(), unit.binding.rows()
    found = {}
    for alias, label in unit.labels.items():
        listed = _chunks(lanes, specs[labels[alias]].id)
        reader = _Reader(before, name, labels[alias], old, specs_now[label], store, f"{chunk_name}-{label}")
        found[label] = dict(filter(None, (reader.read(ref) for ref in listed)))
    held = old.held_tables.get(name)
    tables = [(ref, store.get(ref)) for ref in _chunks(lanes, held)] if held is not None else []
    return Former(found, tuple((ref, table) for ref, table in tables if table.num_rows))


def former_of_ring(before: Manifest, now: Manifest, unit: RingUnit, store: ChunkStore) -> Former:
    """Find what the manifest before a step has of a ring that other queries share from this step on.

    Chunks are listed as they are, with their bitmaps made again; a row that no query needs any more is found dead.
    """
    stayed = [name for name in unit.queries if name in before.queries and before.queries[name].group == unit.group
              and before.queries[name].since == unit.since_of(name)]  # fmt: skip
    if not stayed:
        return Former({label: {} for label in unit.query.aliases})
    lanes = [state for lane, state in before.lane_states.items() if lane.group == unit.group]
    specs, found = unit_of(before, stayed[0]).binding.rows(), dict[str, Chunks]()
    for label, spec in unit.binding.rows().items():
        found[label] = {}
        for ref in _chunks(lanes, specs[label].id):
            rows = as_searched(unit, label, kept_columns(store.chunk(ref), spec, now.streams[spec.stream].columns))
            ends = unit.shared.ends(label, rows.batch)
            known = {EVENT_TIME: (int(ends.min()), int(ends.max()))} if len(ends) else {}
            found[label][ref.name] = ChunkRef(ref.name, ref.rows, ref.bytes, ref.checksum, lifetimes=known), rows
    return Former(found)


def as_searched(unit: QueryUnit, label: str, rows: Chunk) -> Chunk:
    """Return rows of a source as nodes search them: with the bitmap of each where queries share the nodes."""
    return unit.shared.marked_once(label, rows) if isinstance(unit, RingUnit) else rows


def _chunks(lanes: Sequence[LaneState], state: StateId) -> list[ChunkRef]:
    listings = (lane.states.get(state, StateListing()) for lane in lanes)
    return list({ref.name: ref for listing in listings for ref in listing.chunks}.values())


class _Reader:
    """Reads the chunks of a source in lanes as a query's own."""

    def __init__(
        self, before: Manifest, name: str, label: str, old: object, spec: RowsSpec, store: ChunkStore, chunk_name: str
    ) -> None:
        self._entry, self._label, self._store, self._name = before.queries[name], label, store, chunk_name
        self._lineage = old.binding.lineages.get(label) if isinstance(old, ChainUnit) else None
        self._ring, self._query = old if isinstance(old, RingUnit) else None, name
        self._spec, self._types = spec, before.streams[spec.stream].columns
        self._filter = () if self._lineage is None else shape_of(query_of(self._entry)).filters[label]

    def read(self, ref: ChunkRef) -> tuple[str, tuple[ChunkRef, Chunk]] | None:
        """Read a chunk as it is listed from now on; None where none of its rows is the query's."""
        whole = self._store.chunk(ref)
        chunk = kept_columns(whole, self._spec, self._types)
        if self._lineage is None and self._ring is None:
            return ref.name, (ref, chunk)
        mine = self._seen(whole)
        if not mine.any():
            return None
        if not mine.all():
            own = Chunk(chunk.batch.filter(pa.array(mine)))
            found = store_chunk(self._store, f"{self._name}-{ref.first}", own, lifetimes=self._lifetimes(own.batch))
            return found.name, (found, own)
        # Others may have needed the rows for longer.
        own_ref = ChunkRef(ref.name, ref.rows, ref.bytes, ref.checksum, lifetimes=self._lifetimes(chunk.batch))
        return ref.name, (own_ref, chunk)

    def _seen(self, chunk: Chunk) -> Mask:
        # As far back as the query sees.
        if self._ring is not None:
            searched = kept_columns(chunk, self._ring.binding.rows()[self._label], self._types)
            place = self._ring.queries.index(self._query)
            bits = bits_of(as_searched(self._ring, self._label, searched).batch)
            return queries(bits, len(self._ring.queries))[:, place]
        assert self._lineage is not None
        rows = chunk.batch
        demand, words = self._entry.demands[self._label], np.asarray(rows.column(LINEAGE).to_numpy())
        if self._lineage.marks(demand.filter):
            mine: Mask = (words >> self._lineage.bit(demand.filter)) & 1 != 0
        else:  # Selections are pulled up: rows are kept whether they pass them or not.
            mine = all_hold(self._filter, rows)
        if self._entry.sees != "all":
            arrived = np.asarray(rows.column(ARRIVED).to_numpy())
            mine &= arrived >= self._entry.from_step
            if isinstance(self._entry.sees, int):
                mine &= (arrived >= self._entry.entered) | (times(rows) >= self._entry.sees)
        return mine

    def _lifetimes(self, rows: pa.RecordBatch) -> dict[Clock, tuple[int, int]]:
        assert self._spec.window is not None
        ends = later(times(rows), self._spec.window.size)
        return {EVENT_TIME: (int(ends.min()), int(ends.max()))}


def kept_columns(chunk: Chunk, spec: RowsSpec, types: pa.Schema) -> Chunk:
    """Select the event time and the columns of a source that its query reads. NULL where a chunk is older than a
    column."""
    names, batch = sorted({TIME, *spec.columns}), chunk.batch
    if batch.schema.names == names:
        return chunk

    def selected() -> Chunk:
        known = set(batch.schema.names)
        columns = [
            batch.column(name) if name in known else pa.nulls(batch.num_rows, _kind(types, name)) for name in names
        ]
        return Chunk(pa.RecordBatch.from_arrays(columns, names=names))

    return chunk.once(("columns", *names), selected)


def _kind(types: pa.Schema, name: str) -> pa.DataType:
    return pa.int64() if name == ARRIVED else types.field(name).type


def returned(before: Manifest, plan: StepPlan, store: ChunkStore) -> dict[LaneId, LaneState]:
    """Return what lanes take over from the nodes of queries that are spread no longer, by lane."""
    found: dict[LaneId, LaneState] = {}
    for name, entry in before.queries.items():
        now = plan.manifest.queries.get(name)
        if entry.nodes is None or now is None or now.nodes is not None or now.since != entry.since:
            continue
        program = plan.program(now.group)
        unit = next(one for one in program.units if one.name == name)
        assert isinstance(unit, QueryUnit)
        for lane, state in _in_lanes(before, name, unit, program, plan, store).items():
            known = found.get(lane, LaneState())
            found[lane] = LaneState({**known.states, **state.states}, {**known.boxes, **state.boxes})
    return found


def _in_lanes(
    before: Manifest, name: str, unit: QueryUnit, program: Program, plan: StepPlan, store: ChunkStore
) -> dict[LaneId, LaneState]:
    step, count, key = plan.manifest.step, plan.lanes(unit.group), program.stages[0].lane_key
    rows = former(before, name, unit, store, f"{LaneId(unit.group, 0)}/{step:08d}")
    states: dict[int, dict[StateId, StateListing]] = {lane: {} for lane in range(count)}
    for label, chunks in rows.chunks.items():
        spec = unit.binding.rows()[label]
        batches = [chunk.batch for _, chunk in chunks.values() if len(chunk)]
        if not batches:
            continue
        whole = united(batches, batches[0].schema.names)
        whole = whole.take(pa.array(stable_order(times(whole))))
        lane_of = np.zeros(whole.num_rows, np.int64)
        if key is not None:
            lane_of = slots(key, spec.stream, whole).astype(np.int64) % count
        for lane in range(count):
            own = whole if count == 1 else whole.filter(pa.array(lane_of == lane))
            chunk = f"{LaneId(unit.group, lane)}/{step:08d}-{spec.id}-taken"
            if own.num_rows:
                states[lane][spec.id] = _listing(store, chunk, spec, own)
    box = {"box": "plan", "plan": before.queries[name].plan}
    return {LaneId(unit.group, lane): LaneState(found, {name: box}) for lane, found in states.items()}


def _listing(store: ChunkStore, name: str, spec: RowsSpec, rows: pa.RecordBatch) -> StateListing:
    assert spec.window is not None
    ends = later(times(rows), spec.window.size)
    lifetimes = {EVENT_TIME: (int(ends.min()), int(ends.max()))}
    return StateListing((store_chunk(store, name, rows, lifetimes=lifetimes),), rows.num_rows, rows.num_rows)


def with_returned(state: LaneState, returned: LaneState | None) -> LaneState:
    """Add what a lane takes over from nodes to its state."""
    if returned is None:
        return state
    return replace(state, states={**state.states, **returned.states}, boxes={**state.boxes, **returned.boxes})
