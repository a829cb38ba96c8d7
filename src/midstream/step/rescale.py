"""The state spread over another number of lanes: base rows and open groups go by slot, the rest is computed again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from midstream.model.errors import CheckpointError
from midstream.model.ids import StateId, StateKind
from midstream.model.manifest import ChunkRef, LaneState, StateListing
from midstream.model.window import Clock
from midstream.state.base_state import SLOT, TIME
from midstream.state.rows import NUMBER, one_batch, united
from midstream.state.store.base import ChunkStore, store_chunk


def adopt(old: Sequence[LaneState], lane: int, lanes: int, store: ChunkStore, name: str) -> LaneState:
    """Take over the state of one of `lanes` new lanes from the old ones, as chunks whose names begin with `name`."""
    # Who is on the way to a plan arrives there: its states are computed again like all others.
    boxes = {
        query: {"box": "plan", "plan": box["plan"]}
        for query, box in next((state.boxes for state in old if state.boxes), {}).items()
    }
    ids = sorted({state_id for state in old for state_id in state.states if state_id.kind is StateKind.ROWS})
    states = {}
    for state_id in ids:
        listings = [state.states[state_id] for state in old if state_id in state.states]
        states[state_id] = _adopt_rows(listings, lane, lanes, store, f"{name}-{state_id}")
    states.update(_adopt_held(old, lane, lanes, store, name))
    return LaneState(states, boxes)


def _adopt_held(
    old: Sequence[LaneState], lane: int, lanes: int, store: ChunkStore, name: str
) -> dict[StateId, StateListing]:
    # Open groups go by their slot; answers that wait to be delivered have none: lane 0 has them all.
    found = {}
    for table_id in sorted({state_id for state in old for state_id in state.states if state_id.kind is StateKind.HELD}):
        refs = [ref for state in old if table_id in state.states for ref in state.states[table_id].chunks]
        batches = [store.get(ref) for ref in refs]
        if SLOT in batches[0].schema.names:
            batches = [_own(batch, lane, lanes) for batch in batches]
        elif lane:
            continue
        rows = one_batch(pa.Table.from_batches(batches), str(table_id))
        if rows.num_rows:
            found[table_id] = StateListing((store_chunk(store, f"{name}-{table_id}", rows),), rows.num_rows)
    return found


def _adopt_rows(listings: Sequence[StateListing], lane: int, lanes: int, store: ChunkStore, name: str) -> StateListing:
    refs = [ref for listing in listings for ref in listing.chunks]
    batches = [_own(store.get(ref), lane, lanes) for ref in refs]
    if not any(batch.num_rows for batch in batches):
        return StateListing()
    whole = united(batches, sorted({n for b in batches for n in b.schema.names} - {NUMBER}))
    rows = whole.take(pa.array(np.argsort(whole.column(TIME).to_numpy(), kind="stable")))
    chunk = store_chunk(store, name, rows, lifetimes=_widest(refs))
    return StateListing((chunk,), rows.num_rows, rows.num_rows)


def _own(batch: pa.RecordBatch, lane: int, lanes: int) -> pa.RecordBatch:
    if SLOT not in batch.schema.names:
        raise CheckpointError(
            "base rows without slots cannot be spread over lanes",
            place="store",
            remedy="keep the number of lanes this job was started with",
        )
    return batch.filter(pa.array(batch.column(SLOT).to_numpy() % lanes == lane))


def _widest(refs: Sequence[ChunkRef]) -> dict[Clock, tuple[int, int]]:
    clocks = {clock for ref in refs for clock in ref.lifetimes}
    return {
        clock: (
            min(ref.lifetimes[clock][0] for ref in refs if clock in ref.lifetimes),
            max(ref.lifetimes[clock][1] for ref in refs if clock in ref.lifetimes),
        )
        for clock in clocks
    }
