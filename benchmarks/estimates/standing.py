"""A job whose streams have arrived and whose join has not been run: the join of a skewed window would take for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

import midstream as ms
from benchmarks.estimates.streams import Rows
from midstream.model.manifest import ChunkRef, Manifest, StateListing, StreamProgress
from midstream.optimizer.observe import Observed
from midstream.state.base_state import TIME, BaseState
from midstream.state.chunk_store import store_chunk
from midstream.state.lineage import ARRIVED, LINEAGE
from midstream.state.memory_store import MemoryStore
from midstream.state.specs import RowsSpec
from midstream.units.program import observed

CHUNK = 5000
"""Rows of a chunk."""


@dataclass(frozen=True)
class Standing:
    """What an optimizer reads of a job: manifest, query and chunks."""

    manifest: Manifest
    observed: Observed
    store: MemoryStore


def standing(sql: str, streams: Mapping[str, Rows], chunk: int = CHUNK) -> Standing:
    """A job with one query, the streams' rows in chunks as a step would have left them."""
    engine = ms.Engine()
    for name in streams:
        engine.create_stream(name, "k BIGINT, m BIGINT, x DOUBLE, ts TIMESTAMP", timestamp="ts")
    engine.add_query("q", sql)
    engine.push()
    manifest, store = engine.manifest, MemoryStore()
    seen = observed(manifest, "q")
    states = {spec.id: _listing(spec, streams[spec.stream], store, chunk) for spec in seen.rows.values()}
    lanes = {lane: replace(state, states=states) for lane, state in manifest.lane_states.items()}
    progress = {name: StreamProgress(int(rows["ts"].max()), rows=len(rows["ts"])) for name, rows in streams.items()}
    return Standing(replace(manifest, lane_states=lanes, progress=progress), seen, store)


def _listing(spec: RowsSpec, rows: Rows, store: MemoryStore, chunk: int) -> StateListing:
    refs: list[ChunkRef] = []
    count = len(rows["ts"])
    for begin in range(0, count, chunk):
        columns = {TIME: pa.array(rows["ts"][begin : begin + chunk])}
        columns.update({name: pa.array(rows[name][begin : begin + chunk]) for name in spec.columns})
        size = len(columns[TIME])
        if spec.lineage is not None:
            columns[LINEAGE] = pa.array(np.full(size, spec.lineage.filters[0].mask))
            columns[ARRIVED] = pa.array(np.zeros(size, np.int64))
        batch = pa.RecordBatch.from_pydict(columns)
        lifetimes = BaseState(spec, [], 0, 0).combinations(batch, begin).lifetimes()
        name = f"{spec.stream}/000000-{begin}"
        refs.append(store_chunk(store, name, batch, first=begin, lifetimes=lifetimes))
    return StateListing(tuple(refs), count, count, lineage=spec.lineage.digest if spec.lineage else "")
