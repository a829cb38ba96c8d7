"""The state spread over another number of lanes: base rows and open groups go by their lane key, the rest is computed
again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.expr.expression import Column, Expression
from midstream.model.errors import CheckpointError
from midstream.model.ids import StateId, StateKind
from midstream.model.manifest import ChunkRef, LaneState, StateListing
from midstream.model.window import Clock
from midstream.operators.open_groups import OpenGroupsOperator
from midstream.plan.signature import relabel
from midstream.runtime.lane_key import slots
from midstream.state.base_state import TIME
from midstream.state.chunk_store import ChunkStore, store_chunk
from midstream.state.rows import NUMBER, one_batch, united
from midstream.units.program import Program
from midstream.units.query_unit import QueryUnit


@dataclass(frozen=True)
class DealtState:
    """How the rows of a state are dealt to lanes: by the key of a stream, whose columns they have.

    The state is kept for `queries`.
    """

    stream: str
    queries: tuple[str, ...]
    key: Mapping[str, Expression]

    def is_known_of(self, batch: pa.RecordBatch) -> bool:
        """Return whether rows have the columns of the key."""
        names = batch.schema.names
        return all(column.name in names for column in self.key[self.stream].columns())

    def lanes_of(self, batch: pa.RecordBatch, lanes: int) -> npt.NDArray[np.int16]:
        """Find the lane of each row among so many `lanes`."""
        return slots(self.key, self.stream, batch) % lanes


def dealt_states(program: Program) -> dict[StateId, DealtState]:
    """Find how the base rows and open groups of a program are dealt to lanes; empty where it runs in one lane."""
    key = program.stages[0].lane_key
    if key is None:
        return {}
    found: dict[StateId, DealtState] = {}
    for unit in program.units:
        for spec in unit.binding.rows().values():
            names = found[spec.id].queries if spec.id in found else ()
            found[spec.id] = DealtState(spec.stream, (*names, *unit.queries), key)
        if isinstance(unit, QueryUnit) and isinstance(unit.result_operator, OpenGroupsOperator):
            (source,) = unit.query.sources
            own = _key_in_groups(unit.result_operator, key[source.stream], source.stream)
            found[unit.result_operator.open_groups] = DealtState(source.stream, unit.queries, own)
    return found


def _key_in_groups(result: OpenGroupsOperator, key: Expression, stream: str) -> dict[str, Expression]:
    # The values that are grouped by are kept as columns `g0, g1, ...`.
    (source,) = result.query.sources
    texts = [relabel(group, {source.alias: source.stream}).text() for group in result.node.groups]
    return {stream: Column(key.type, stream, f"g{texts.index(key.text())}")}


def adopt(
    old: Sequence[LaneState], dealt: Mapping[StateId, DealtState], lane: int, lanes: int, store: ChunkStore, name: str
) -> LaneState:
    """Take over the state of one of `lanes` new lanes from the old ones, as chunks whose names begin with `name`.

    `dealt` has the states of base rows and open groups that the lanes need from now on.
    """
    # Who is on the way to a plan arrives there: its states are computed again like all others.
    boxes = {
        query: {"box": "plan", "plan": box["plan"]}
        for query, box in next((state.boxes for state in old if state.boxes), {}).items()
    }
    ids = sorted({state_id for state in old for state_id in state.states if state_id.kind is StateKind.ROWS})
    states = {}
    for state_id in ids:
        if state_id in dealt:
            listings = [state.states[state_id] for state in old if state_id in state.states]
            states[state_id] = _adopt_rows(listings, dealt[state_id], lane, lanes, store, f"{name}-{state_id}")
    states.update(_adopt_held(old, dealt, lane, lanes, store, name))
    return LaneState(states, boxes)


def _adopt_held(
    old: Sequence[LaneState], dealt: Mapping[StateId, DealtState], lane: int, lanes: int, store: ChunkStore, name: str
) -> dict[StateId, StateListing]:
    # Open groups go by their key; answers that wait to be delivered have none: lane 0 has them all.
    found = {}
    for table_id in sorted({state_id for state in old for state_id in state.states if state_id.kind is StateKind.HELD}):
        refs = [ref for state in old if table_id in state.states for ref in state.states[table_id].chunks]
        batches = [store.get(ref) for ref in refs]
        if table_id in dealt:
            batches = [_own(batch, dealt[table_id], lane, lanes) for batch in batches]
        elif lane:
            continue
        rows = one_batch(pa.Table.from_batches(batches), str(table_id))
        if rows.num_rows:
            found[table_id] = StateListing((store_chunk(store, f"{name}-{table_id}", rows),), rows.num_rows)
    return found


def _adopt_rows(
    listings: Sequence[StateListing], dealt: DealtState, lane: int, lanes: int, store: ChunkStore, name: str
) -> StateListing:
    refs = [ref for listing in listings for ref in listing.chunks]
    batches = [_own(store.get(ref), dealt, lane, lanes) for ref in refs]
    if not any(batch.num_rows for batch in batches):
        return StateListing()
    whole = united(batches, sorted({n for b in batches for n in b.schema.names} - {NUMBER}))
    rows = whole.take(pa.array(np.argsort(whole.column(TIME).to_numpy(), kind="stable")))
    chunk = store_chunk(store, name, rows, lifetimes=_widest(refs))
    return StateListing((chunk,), rows.num_rows, rows.num_rows)


def _own(batch: pa.RecordBatch, dealt: DealtState, lane: int, lanes: int) -> pa.RecordBatch:
    if not dealt.is_known_of(batch):
        raise CheckpointError(
            "base rows without the columns of their key cannot be divided among lanes",
            place="store",
            remedy="keep the number of lanes that this job started with",
        )
    return batch if lanes == 1 else batch.filter(pa.array(dealt.lanes_of(batch, lanes) == lane))


def _widest(refs: Sequence[ChunkRef]) -> dict[Clock, tuple[int, int]]:
    clocks = {clock for ref in refs for clock in ref.lifetimes}
    return {
        clock: (
            min(ref.lifetimes[clock][0] for ref in refs if clock in ref.lifetimes),
            max(ref.lifetimes[clock][1] for ref in refs if clock in ref.lifetimes),
        )
        for clock in clocks
    }
