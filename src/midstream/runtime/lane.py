"""One lane during one step: the only mutable thing in the core.

Operators reach states, rows and the step's input through it; at the end it becomes the lane's next frozen state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from midstream.language.expression import Column
from midstream.model.counters import Counters
from midstream.model.errors import CheckpointError
from midstream.model.events import Event
from midstream.model.manifest import LaneState, StateListing
from midstream.state.base_state import BaseState
from midstream.state.combinations import Combinations
from midstream.state.join_state import JoinState
from midstream.state.lineage import LINEAGE, Lineage
from midstream.state.rows import BaseRows, RowRun
from midstream.state.sorted_run import SortedRun, purge_run
from midstream.state.specs import RowsSpec, StateSpec, is_table
from midstream.state.store.base import ChunkStore, store_chunk

BEGINNING = -(2**63)
"""The watermark of a stream that has not spoken."""


@dataclass(frozen=True)
class StepClock:
    """Where a step stands: its number, the watermark of each stream before and after it, and the arrivals before it.

    `before` decides what is alive and what is late, `after` which instants of an aggregate have passed.
    """

    step: int
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


class Lane:
    """The states of one lane, loaded as operators ask for them.

    `bounds` gives for each state id and clock the least end of lifetime that still matters; `inputs` the admitted rows
    of each stream with their internal columns. `notes` is what an operator found out in this step, by its id.
    """

    def __init__(
        self,
        name: str,
        state: LaneState,
        inputs: Mapping[str, pa.RecordBatch],
        clock: StepClock,
        bounds: Mapping[str, dict[str, int]],
        store: ChunkStore,
    ) -> None:
        self.name, self.before, self.clock = name, state, clock
        self.inputs, self.counts = dict(inputs), dict(clock.counts)
        self.store, self.bounds = store, bounds
        self.counters: dict[str, Counters] = {}
        self.events: list[Event] = []
        self.deltas: dict[str, Combinations] = {}
        self.notes: dict[str, Any] = {}
        self.carried: dict[str, StateListing] = {}
        self._bases: dict[str, BaseState] = {}
        self._joins: dict[str, JoinState] = {}
        self._tables: dict[str, pa.RecordBatch] = {}

    def count(self, operator: str, counters: Counters) -> None:
        """Add to what an operator did in this step."""
        self.counters[operator] = self.counters.get(operator, Counters()) + counters

    def base(self, spec: RowsSpec) -> BaseState:
        """The base state of a source."""
        if spec.id not in self._bases:
            listing = self.before.states.get(spec.id, StateListing())
            bounds = self.bounds.get(spec.id, {})
            self._bases[spec.id] = BaseState.load(spec, listing, bounds, self.store, self.clock.step)
        return self._bases[spec.id]

    def holds(self, spec: StateSpec) -> bool:
        """Whether the state is listed or loaded; otherwise it must be computed from what is."""
        return spec.id in self._joins or spec.id in self.before.states

    def join(self, spec: StateSpec) -> JoinState:
        """A join state that `holds`."""
        if spec.id not in self._joins:
            listing = self.before.states[spec.id]
            state = JoinState.load(spec, listing, self.bounds.get(spec.id, {}), self.store)
            if spec.lineage is not None and listing.lineage != spec.lineage.digest:
                state = self._relived(state, spec.lineage)
            self._joins[spec.id] = state
        return self._joins[spec.id]

    def _relived(self, state: JoinState, lineage: Lineage) -> JoinState:
        """The state with lifetimes reckoned anew, because the windows or filters it is shared by have changed."""
        assert state.spec.base is not None
        rows, label, runs = self.rows(state.spec.base), state.spec.base.label, []
        for run in state.old:
            held = run.combinations
            bits = np.asarray(rows.fetch(LINEAGE, held.refs[label]).to_numpy(zero_copy_only=False))
            lived = SortedRun(run.codes, replace(held, valid_to=lineage.ends(held.valid_from, bits)))
            runs.append(purge_run(lived, self.bounds.get(state.spec.id, {})))
        dropped = sum(map(len, state.old)) - sum(map(len, runs))
        return JoinState(state.spec, runs, state.purged + dropped, state.left_out)

    def sibling(self, spec: StateSpec) -> list[Combinations] | None:
        """The old combinations of a state of equal signature but another index, if there is a whole one."""
        prefix = spec.id.rpartition(".")[0] + "."
        for state in self._joins.values():
            if state.spec.id.startswith(prefix) and not state.left_out:
                return [run.combinations for run in state.old]
        return None

    def put(self, state: JoinState) -> None:
        """Take in a state that was computed anew."""
        self._joins[state.spec.id] = state

    def adopt(self, run: StateSpec, whole: StateSpec) -> None:
        """List a state under its whole signature, once its view holds everything that is alive."""
        held = self._held(whole)
        if held is not None and held.delta is not None:
            return  # Another query's plan keeps it.
        state = self.join(run)
        adopted = JoinState(whole, state.old)
        adopted.delta, adopted.left_out = state.delta, state.left_out
        more = sum(map(len, state.old))
        if held is not None:  # Nobody kept it in this step: it goes on with other rows.
            adopted.purged, more = held.purged, more - held.live
        self.put(adopted)
        self.count(f"state {whole.id}", Counters(inserted=max(more, 0), purged=max(-more, 0)))

    def _held(self, spec: StateSpec) -> JoinState | None:
        """The state, if it is there and undamaged."""
        try:
            return self.join(spec) if self.holds(spec) else None
        except CheckpointError:
            return None

    def share(self, whole: StateSpec, run: StateSpec) -> None:
        """List what a state holds of the rows before this step once more, under the signature of a view."""
        state = JoinState(run, self.join(whole).old)
        state.left_out = self.join(whole).left_out
        self.put(state)
        self.count(f"state {run.id}", Counters(inserted=sum(map(len, state.old))))

    def table(self, id: str) -> pa.RecordBatch | None:
        """What `keep` listed under this id, in this step or an earlier one; None where there is nothing."""
        if id in self._tables:
            return self._tables[id]
        listing = self.before.states.get(id)
        return self.store.get(listing.chunks[0]) if listing and listing.chunks else None

    def keep(self, id: str, batch: pa.RecordBatch) -> None:
        """List a table beside the states; it stays listed while a box or an operator names it."""
        self._tables[id] = batch

    def forget(self, spec: StateSpec) -> None:
        """Treat a state as missing, so that it is computed again."""
        self._joins.pop(spec.id, None)
        states = {k: v for k, v in self.before.states.items() if k != spec.id}
        self.before = LaneState(states, self.before.boxes)

    def reader(self, rows: Mapping[str, RowsSpec], combinations: Combinations) -> Callable[[Column], pa.Array]:
        """How an expression reads the columns of these combinations; each column is fetched once."""
        fetched: dict[tuple[str, str], pa.Array] = {}

        def read(column: Column) -> pa.Array:
            at = (column.alias, column.name)
            if at not in fetched:
                fetched[at] = self.rows(rows[column.alias]).fetch(column.name, combinations.refs[column.alias])
            return fetched[at]

        return read

    def rows(self, spec: RowsSpec) -> BaseRows:
        """The rows of a source; before the step's own have been appended, the old ones."""
        base = self.base(spec)
        if base.rows is None:
            nothing = base.nothing()
            if spec.lineage is not None:  # A column may be new in this step.
                nothing = RowRun(nothing.first, self.inputs[spec.input].slice(0, 0))
            return BaseRows(base.old, nothing)
        return base.rows

    def finish(self, needed: set[str], boxes: Mapping[str, Mapping[str, object]]) -> LaneState:
        """Store and list what is needed; everything else is unlisted."""
        step = f"{self.name}/{self.clock.step:08d}"
        states: dict[str, StateListing] = {k: v for k, v in self.carried.items() if k in needed}
        for name in needed & (self._tables.keys() | {k for k in self.before.states if is_table(k)}):
            states[name] = self._finish_table(name, f"{step}-{name}")
        for name, base in self._bases.items():
            if name in needed:
                states[name] = self._finish_base(base, f"{step}-{name}")
        for name, join in self._joins.items():
            if name in needed:
                clock = join.spec.lineage.clock if join.spec.lineage else ""
                states[name] = join.finish(self.store, f"{step}-{name}", self.bounds.get(name, {}).get(clock))
                delta = len(join.delta) if join.delta else 0
                self.count(f"state {name}", Counters(inserted=delta, purged=join.purged, moved=join.moved))
        return LaneState(states, dict(boxes))

    def _finish_table(self, name: str, chunk: str) -> StateListing:
        if name not in self._tables:
            return self.before.states[name]
        batch = self._tables[name]
        return StateListing((store_chunk(self.store, chunk, batch),), batch.num_rows)

    def _finish_base(self, base: BaseState, name: str) -> StateListing:
        bounds = self.bounds.get(base.spec.id, {})
        assert base.rows is not None
        new, old = base.rows.new.batch.num_rows, base.count_alive(bounds)
        self.count(f"state {base.spec.id}", Counters(inserted=new, purged=base.live_before - old))
        return base.finish(self.store, name, old + new, bounds)
