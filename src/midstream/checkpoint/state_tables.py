"""What operators hold, as tables: the states that a manifest lists, with their base rows put back together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.checkpoint.running_states import lanes_of_group, running_boxes, running_units, state_names
from midstream.model.errors import QueryError
from midstream.model.ids import LaneId, StateId
from midstream.model.manifest import LaneState, Manifest, StateListing
from midstream.state.base_state import TIME
from midstream.state.chunk_store import ChunkStore

if TYPE_CHECKING:
    import duckdb

LANE, REFERENCE = "_lane", "ref:"
INSTANT = pa.timestamp("us", "UTC")
OWN = ("_lineage", "code")
"""Columns that say something to the engine alone."""


@dataclass(frozen=True)
class HeldState:
    """What an operator holds in one lane: rows, of which some may be dead until their chunk is purged, and bytes.

    `oldest` and `newest` are event times of its rows in microseconds, where it has any.
    """

    queries: tuple[str, ...]
    name: str
    id: str
    lane: str
    rows: int
    bytes: int
    chunks: int
    oldest: int | None
    newest: int | None


@dataclass(frozen=True)
class StateTable:
    """The rows of a state, in the form that is asked for."""

    name: str
    table: pa.Table

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.table

    def duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a DuckDB relation; duckdb must be installed."""
        import duckdb

        return (connection or duckdb.connect()).from_arrow(self.table)

    def spark(self, session: Any) -> Any:
        """Return the rows as a DataFrame of this Spark session."""
        return session.createDataFrame(self.table)


@dataclass(frozen=True)
class _Known:
    """What a state is called, the queries that stand on it, and by label the base rows that it refers to."""

    name: str
    queries: tuple[str, ...]
    rows: Mapping[str, StateId]


def held_states(manifest: Manifest, store: ChunkStore) -> tuple[HeldState, ...]:
    """List all states of all lanes that have rows, in order of query, name and lane."""
    found = []
    for id, known in _known(manifest).items():
        for lane, state in _lanes(manifest, known.queries):
            listing = state.states.get(id)
            if listing is not None and listing.chunks:
                size = sum(chunk.bytes for chunk in listing.chunks)
                span = _span(_resolved(state, listing, known, store))
                rows = sum(chunk.rows for chunk in listing.chunks)
                counts = (rows, size, len(listing.chunks))
                found.append(HeldState(known.queries, known.name, id, str(lane), *counts, *span))
    return tuple(sorted(found, key=lambda one: (one.queries, one.name, one.id, one.lane)))


def state_table(manifest: Manifest, store: ChunkStore, name: str, lane: str | None = None) -> StateTable:
    """Read the rows of the state of a name or an id, of one lane or of all, with the lane they are in.

    Of a join state each row has the columns of its base rows, called `label.column`. Raises `QueryError` for a name
    that no state has.
    """
    everything = _known(manifest)
    chosen = {id: known for id, known in everything.items() if name in (known.name, id)}
    if not chosen:
        names = ", ".join(sorted({repr(known.name) for known in everything.values()}))
        remedy = f"use one of: {names}" if names else "add a query first: without queries there is no state"
        raise QueryError(f"no operator has the state {name!r}", place="state", remedy=remedy)
    tables = []
    for id, known in chosen.items():
        for where, state in _lanes(manifest, known.queries):
            if id in state.states and lane in (None, str(where)):
                rows = _resolved(state, state.states[id], known, store)
                if rows is not None:
                    tables.append(rows.append_column(LANE, pa.array([str(where)] * rows.num_rows, pa.string())))
    return StateTable(name, pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({}))


def _known(manifest: Manifest) -> dict[StateId, _Known]:
    # Queues and tables too.
    found: dict[StateId, _Known] = {}
    for unit in running_units(manifest):
        called: dict[Any, str] = state_names(unit, running_boxes(manifest, unit))
        called |= {id: f"rows of {id.owner} that wait for the watermark" for id in unit.queues}
        rows = {label: spec.id for label, spec in unit.binding.rows().items()}
        for id, name in called.items():
            before = found[id].queries if id in found else ()
            found[id] = _Known(name, tuple(sorted({*before, *unit.queries})), rows)
    for lane in manifest.lane_states.values():
        for id in lane.states.keys() - found.keys():
            found[id] = _Known(f"{id.kind.name.lower()} {id}", (), {})
    return found


def _lanes(manifest: Manifest, queries: Sequence[str]) -> Iterable[tuple[LaneId, LaneState]]:
    if not queries:
        return manifest.lane_states.items()
    groups = {manifest.queries[query].group for query in queries}
    return [pair for group in sorted(groups) for pair in lanes_of_group(manifest, group).items()]


def _resolved(lane: LaneState, listing: StateListing, known: _Known, store: ChunkStore) -> pa.Table | None:
    rows = _rows(listing, store)
    if rows is None:
        return None
    labels = [c.removeprefix(REFERENCE) for c in rows.column_names if c.startswith(REFERENCE)]
    if not labels:
        return rows_for_people(rows)
    columns: dict[str, Any] = {}
    for label in labels:
        numbers = rows.column(f"{REFERENCE}{label}")
        base = lane.states.get(known.rows[label]) if label in known.rows else None
        if base is None or not base.chunks:
            columns[f"{label} row"] = numbers
            continue
        found = pc.index_in(numbers, value_set=_numbers(base))
        plain = rows_for_people(_rows(base, store)).take(found)
        columns |= {f"{label}.{name}": plain.column(name) for name in plain.column_names}
    for name, shown in (("now:ts", TIME), ("until:ts", "_until")):
        if name in rows.column_names:
            columns[shown] = _instants(rows.column(name))
    return pa.table(columns)


def _numbers(base: StateListing) -> pa.ChunkedArray:
    # States refer to base rows by these numbers.
    return pa.chunked_array([np.arange(ref.first, ref.first + ref.rows) for ref in base.chunks], pa.int64())


def _rows(listing: StateListing, store: ChunkStore) -> pa.Table | None:
    batches = [pa.Table.from_batches([store.get(ref)]) for ref in listing.chunks]
    return pa.concat_tables(batches, promote_options="permissive") if batches else None


def rows_for_people(rows: pa.Table) -> pa.Table:
    """Drop the columns that serve the engine alone, and show times as times."""
    shown = rows.drop_columns([name for name in OWN if name in rows.column_names])
    if TIME not in shown.column_names:
        return shown
    return shown.set_column(shown.column_names.index(TIME), TIME, _instants(shown.column(TIME)))


def _instants(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_integer(column.type):
        return column
    # Beyond all times: rows that live forever.
    ends = pc.greater_equal(pc.abs(column), 2**62)
    return pc.if_else(ends, pa.scalar(None, pa.int64()), column).cast(INSTANT)


def _span(rows: pa.Table | None) -> tuple[int | None, int | None]:
    if rows is None or TIME not in rows.column_names or not pa.types.is_timestamp(rows.column(TIME).type):
        return None, None
    ends: Mapping[str, Any] = pc.min_max(rows.column(TIME).cast(pa.int64())).as_py()
    return ends["min"], ends["max"]
