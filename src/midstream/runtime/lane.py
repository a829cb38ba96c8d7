"""A lane during one step: the only mutable thing in the core.

Operators reach states, rows and the step's input through it; at the end it becomes the lane's next frozen state. The
contract follows differential-dataflow's split of driver and tactic: the driver (`midstream.step`) owns the phases,
operators and strategies own what happens within one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from midstream.expr.expression import Column
from midstream.model.counters import NOTHING, Counters
from midstream.model.errors import CheckpointError
from midstream.model.events import Event
from midstream.model.ids import CounterKey, LaneId, OperatorId, StateId
from midstream.model.manifest import ChunkRef, LaneState, StateListing
from midstream.model.window import Clock
from midstream.runtime.checks import are_on, check_run, require
from midstream.runtime.dirty_set import DirtySet, RestingStates
from midstream.runtime.piece_writer import Pour
from midstream.runtime.watermark import StepClock
from midstream.state.base_state import BaseState
from midstream.state.chunk_store import ChunkStore, store_chunk
from midstream.state.combinations import Combinations
from midstream.state.compaction import PACE, Pace, Rewriting
from midstream.state.join_state import JoinState
from midstream.state.lineage import LINEAGE, Lineage
from midstream.state.rows import BaseRows, RowRun, one_batch
from midstream.state.sorted_run import FoundCodes, SortedRun, before_relived, purge_run
from midstream.state.specs import RowsSpec, StateSpec


class BrokenOff(BaseException):
    """Ends an attempt at a step in which joins would make more rows than their bound.

    It is no error: the step is planned again, and reviewed first. `rows` are what the joins would make at least, by
    their counters, and `done` is what the attempt did in vain.
    """

    def __init__(self, rows: Mapping[CounterKey, int], done: Counters) -> None:
        """End the attempt of a lane, or of all lanes."""
        super().__init__(rows)
        self.rows, self.done = rows, done


ASKED_FROM = 1 << 20
"""A step asks before it makes so many bytes at a time."""

_UNLISTED = StateListing()


class Lane:
    """One lane, a partition of a step: its states, loaded as operators need them, and what they leave behind.

    A step goes through it in four phases, and each method says in which it may be called:

    1. *open*: `feed` and `queue` give inputs that the lane makes itself, then `bound` is called once.
    2. *prepare*: migrations begin; states are loaded, computed and `put`.
    3. *advance*: operators compute deltas, probe states and insert; `keep` lists tables.
    4. *finish*: what is needed is stored and listed; nothing may be called afterwards.

    With `midstream.runtime.checks` turned on a call out of its phase, and a run that breaks the contract of its state,
    raise a `ContractError`.
    """

    pace: ClassVar[Pace] = PACE
    """How much of large states a step may touch; a subclass may have another one."""

    def __init__(
        self, name: LaneId, state: LaneState, inputs: Mapping[str, pa.RecordBatch], clock: StepClock, store: ChunkStore
    ) -> None:
        """Begin a step on a lane; `inputs` are the admitted rows by stream with their internal columns."""
        self.name, self.clock = name, clock
        self._prefix = f"{name}/{clock.step:08d}-"
        self._before, self._store = state, store
        self._inputs, self._arrived = dict(inputs), dict(clock.counts)
        self._bounds: Mapping[StateId, Mapping[Clock, int]] | None = None
        self._counters: dict[OperatorId, Counters] = {}
        self._events: list[Event] = []
        self.deltas: dict[OperatorId, Combinations] = {}
        """The step's delta of each operator that has advanced; in phase *advance*."""
        self.codes: dict[OperatorId, FoundCodes] = {}
        """The codes by which joins found their deltas, for the joins above them; in phase *advance*."""
        self.pours: dict[OperatorId, Pour] = {}
        """Where an operator may give out what it finds, instead of as its delta, which nobody else reads."""
        self._notes: dict[str, Any] = {}
        self._queues: dict[StateId, StateListing] = {}
        self._bases: dict[StateId, BaseState] = {}
        self._joins: dict[StateId, JoinState] = {}
        self._tables: dict[StateId, pa.RecordBatch] = {}
        self._rows = sum([rows.num_rows for rows in inputs.values()])
        self._dying = self.pace.dying_in(self._rows)
        self._finished, self._checked = False, are_on()
        self.dirty = DirtySet(state, inputs)
        """What the step touches."""
        self.most: Callable[[CounterKey], int | None] = lambda _: None
        """How many rows a join may make in this step; None where that is not bounded."""

    # --- open

    def input(self, name: str) -> pa.RecordBatch:
        """Return the step's rows of a stream, or of an input that was fed; in any phase."""
        return self._inputs[name]

    def arrived_before(self, name: str) -> int:
        """Count the rows of an input that had arrived before this step; in any phase."""
        return self._arrived[name]

    def feed(self, name: str, rows: pa.RecordBatch, before: int) -> None:
        """Give operators one more input, of which `before` rows arrived in earlier steps; in phase *open*."""
        self._check(self._bounds is None, "inputs are fed before the lane is bound")
        self._inputs[name], self._arrived[name] = rows, before
        self.dirty.feed(name, rows)

    def queued(self, id: StateId, arrived: pa.RecordBatch) -> pa.RecordBatch:
        """Read the rows that wait in a queue, followed by those that arrived; in phase *open*."""
        chunks = self._before.states.get(id, _UNLISTED).chunks
        batches = [self._store.get(ref).select(arrived.schema.names) for ref in chunks]
        return one_batch(pa.Table.from_batches([*batches, arrived], schema=arrived.schema), f"lane {self.name}")

    def taken_from(self, id: StateId) -> int:
        """Count the rows that had left a queue before this step; in phase *open*."""
        return self._before.states.get(id, _UNLISTED).next_row

    def queue(self, id: StateId, rows: pa.RecordBatch, taken: int) -> None:
        """List the rows left in a queue after `taken` rows have left it in all; in phase *open*, once each."""
        self._check(self._bounds is None, "queues are written before the lane is bound")
        chunks = (store_chunk(self._store, self._prefix + id, rows),) if rows.num_rows else ()
        self._queues[id] = StateListing(chunks, rows.num_rows, taken)

    def bound(self, bounds: Mapping[StateId, Mapping[Clock, int]]) -> None:
        """Set for each state and clock the least end of lifetime that still matters; ends phase *open*.

        A state that is not named keeps every row.
        """
        self._check(self._bounds is None, "a lane is bound once")
        self._check(not self._bases and not self._joins, "states are loaded after the lane is bound")
        self._bounds = bounds

    def bounds(self, id: StateId) -> Mapping[Clock, int]:
        """Return the bounds of a state, by clock; from phase *prepare* on."""
        bounds = self._bounds
        return bounds[id] if bounds is not None and id in bounds else {}

    # --- counting

    def count(self, operator: OperatorId, counters: Counters) -> None:
        """Add to what an operator did in this step; in any phase."""
        if self._checked:
            require(not self._finished, "nothing is counted once the lane is finished")
        known = self._counters.get(operator)
        self._counters[operator] = counters if known is None or known is NOTHING else known + counters

    def counted(self, operator: OperatorId) -> Counters:
        """Return the counters of an operator in this step so far."""
        return self._counters.get(operator, Counters())

    def check_bound(self, operator: OperatorId, rows: int) -> None:
        """Break the step off where a join is about to have made more rows than it may; in phase *advance*."""
        key = CounterKey(self.name.group, operator)
        most = self.most(key)
        if most is not None and rows > most:
            done = Counters.sum(c for id, c in self._counters.items() if id.slice is None)
            raise BrokenOff({key: rows}, done + Counters(comparisons=rows))

    @property
    def counters(self) -> Mapping[OperatorId, Counters]:
        """The counters of every operator in this step so far."""
        return self._counters

    @property
    def comparisons(self) -> int:
        """The comparisons of the step so far; what is counted by slice once more does not count twice."""
        return sum(c.comparisons for id, c in self._counters.items() if id.slice is None)

    def emit(self, event: Event) -> None:
        """Add an event of this step."""
        self._events.append(event)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of this step so far."""
        return tuple(self._events)

    # --- advance

    def has_delta(self, operator: OperatorId) -> bool:
        """Return whether the step's delta of an operator has been computed."""
        return operator in self.deltas

    @contextmanager
    def replaying(self, pieces: Mapping[OperatorId, Combinations]) -> Iterator[None]:
        """Replace the step's deltas within this block; they are restored afterwards.

        The caller must turn the deltas that states took in into old combinations (`JoinState.age`).
        """
        aside, self.deltas = self.deltas, dict(pieces)
        try:
            yield
        finally:
            self.deltas = aside

    def note(self, operator: str, value: Any) -> None:
        """Keep what an operator found out, for others to read within this step."""
        self._notes[operator] = value

    def noted(self, operator: str, default: Any = None) -> Any:
        """Return what an operator noted in this step."""
        return self._notes.get(operator, default)

    # --- states

    def base(self, spec: RowsSpec) -> BaseState:
        """Load the base state of a source."""
        found = self._bases.get(spec.id)
        if found is None:
            self._check(self._bounds is not None, "states are loaded after the lane is bound")
            listing, bounds = self._before.states.get(spec.id, _UNLISTED), self.bounds(spec.id)
            found = self._bases[spec.id] = BaseState.load(
                spec, listing, bounds, self._store, self.clock.step, self._dying
            )
        return found

    def unread(self, ids: Iterable[StateId]) -> set[StateId]:
        """Select the states that are not listed, or that this process has never read."""
        before, store, held = self._before.states, self._store, self._store.in_memory
        unknown = {id for id in ids if id not in before or (known := before[id].known) is None or known[0] is not store}
        return unknown | {id for id in ids if id in before for ref in before[id].chunks if ref.name not in held}

    def holds(self, spec: StateSpec) -> bool:
        """Return whether the state is listed or loaded; otherwise it must be computed from others."""
        return spec.id in self._joins or spec.id in self._before.states

    def join(self, spec: StateSpec) -> JoinState:
        """Load a join state that `holds`."""
        found = self._joins.get(spec.id)
        if found is None:
            self._check(self._bounds is not None, "states are loaded after the lane is bound")
            listing, bounds = self._before.states[spec.id], self.bounds(spec.id)
            if spec.lineage is None or listing.lineage == spec.lineage.digest:
                found = JoinState.load(spec, listing, bounds, self._store, self._dying)
            else:
                found = JoinState.load(spec, listing, before_relived(bounds), self._store, self._dying)
                found = self._relived(found, spec.lineage)
            self._joins[spec.id] = found
        return found

    def _relived(self, state: JoinState, lineage: Lineage) -> JoinState:
        # The windows or filters that the state is shared by have changed, and with them lifetimes.
        assert state.spec.base is not None
        rows, label, runs = self.rows(state.spec.base), state.spec.base.label, []
        for run in state.old:
            # What is left in a chunk of combinations that died may be of rows that are gone.
            there = run.take(rows.holds(run.combinations.refs[label]))
            held = there.combinations
            bits = np.asarray(rows.fetch(LINEAGE, held.refs[label]).to_numpy(zero_copy_only=False))
            lived = SortedRun(
                there.codes, Combinations(held.refs, held.valid_from, lineage.ends(held.valid_from, bits))
            )
            runs.append(purge_run(lived, self.bounds(state.spec.id)))
        dropped = sum(map(len, state.old)) - sum(map(len, runs))
        return JoinState(state.spec, runs, state.purged + dropped, state.left_out)

    def sibling(self, spec: StateSpec) -> list[Combinations] | None:
        """Return the old combinations of a whole state of equal signature but another index, or None."""
        for state in self._joins.values():
            if state.spec.id.same_content(spec.id) and not state.left_out:
                return [run.combinations for run in state.old]
        return None

    def put(self, state: JoinState) -> None:
        """Take in a state that was computed again; it replaces the one of its name."""
        self._check(not self._finished, "no state is put once the lane is finished")
        if self._checked:
            for run in state.old:
                check_run(state.spec, run)
        self._joins[state.spec.id] = state

    def adopt(self, run: StateSpec, whole: StateSpec) -> None:
        """List a state under its whole signature, once its view holds everything that is alive."""
        held = self._held(whole)
        if held is not None and held.delta is not None:
            return  # Another query's plan keeps it.
        state = self.join(run)
        adopted = state.under(whole)
        adopted.delta = state.delta
        more = sum(map(len, state.old))
        if held is not None:  # No plan kept it in this step: it goes on with other rows.
            adopted.purged, more = held.purged, more - held.live
        self.put(adopted)
        self.count(whole.id.counted, Counters(inserted=max(more, 0), purged=max(-more, 0)))

    def _held(self, spec: StateSpec) -> JoinState | None:
        # None for a damaged state too.
        try:
            return self.join(spec) if self.holds(spec) else None
        except CheckpointError:
            return None

    def share(self, whole: StateSpec, run: StateSpec) -> None:
        """List what a state holds of the rows before this step once more, under the signature of a view."""
        state = JoinState(run, self.join(whole).old)
        state.left_out = self.join(whole).left_out
        self.put(state)
        self.count(run.id.counted, Counters(inserted=sum(map(len, state.old))))

    def table(self, id: StateId) -> pa.RecordBatch | None:
        """Return the table that `keep` listed under this id, in this step or an earlier one, or None."""
        if id in self._tables:
            return self._tables[id]
        listing = self._before.states.get(id)
        return self._store.get(listing.chunks[0]) if listing and listing.chunks else None

    def claim(self, more: int, what: str) -> None:
        """Ask for so many bytes before they are made; raises `InputError` where a limit does not allow them."""
        if more >= ASKED_FROM:
            self._store.claim(more, what)

    def chunk(self, ref: ChunkRef) -> pa.RecordBatch:
        """Read a chunk that the manifest lists for all lanes, such as a static table's; in any phase."""
        return self._store.get(ref)

    def lists(self, id: StateId) -> bool:
        """Return whether a state or table of this id was listed when the step began."""
        return id in self._before.states

    def keep(self, id: StateId, batch: pa.RecordBatch) -> None:
        """List a table in addition to the states; it stays listed while a box or an operator names it."""
        self._check(not self._finished, "no table is kept once the lane is finished")
        self._tables[id] = batch

    def forget(self, spec: StateSpec) -> None:
        """Treat a state as missing, so that it is computed again."""
        self._joins.pop(spec.id, None)
        states = {k: v for k, v in self._before.states.items() if k != spec.id}
        self._before = LaneState(states, self._before.boxes)

    def reader(self, rows: Mapping[str, RowsSpec], combinations: Combinations) -> Callable[[Column], pa.Array]:
        """Return a function that reads the columns of these combinations for an expression, each fetched once."""
        fetched: dict[tuple[str, str], pa.Array] = {}

        def read(column: Column) -> pa.Array:
            at = (column.alias, column.name)
            if at not in fetched:
                self.claim(8 * combinations.count, "reading the columns of what is found")
                fetched[at] = self.rows(rows[column.alias]).read(column.name, column.alias, combinations)
            return fetched[at]

        return read

    def rows(self, spec: RowsSpec) -> BaseRows:
        """Return the rows of a source; before the step's own have been appended, the old ones."""
        base = self.base(spec)
        if base.rows is None:
            if spec.lineage is None and not self.dirty.rests:
                return BaseRows(base.old, base.nothing())
            # A column may be new in this step; and none may be stored yet.
            return BaseRows(base.old, RowRun(base.next_row, self._inputs[spec.input].slice(0, 0)))
        return base.rows

    def finish(self, needed: Set[StateId], boxes: Mapping[str, Mapping[str, object]]) -> LaneState:
        """Store and list what is needed, or was left out; everything else is unlisted. Ends the step."""
        self._check(not self._finished, "a lane is finished once")
        states = {k: v for k, v in self._queues.items() if k in needed} if self._queues else {}
        for name in needed & (self._tables.keys() | {k for k in self._before.states if k.is_table}):
            states[name] = self._finish_table(name, self._prefix + name)
        resting, nothing = self.dirty.resting, dict[OperatorId, Counters]()
        changed = self._changed() if resting else set()
        for part in resting:
            states.update(self._as_before(part, changed))
            nothing.update(part.nothing)
        self._counters = {**nothing, **self._counters}
        made = sum([join.delta.combinations.count for join in self._joins.values() if join.delta is not None])
        rewriting = self.pace.rewriting_in(self._rows + made)
        for name, base in self._bases.items():
            if name in needed and name not in states:
                states[name] = self._finish_base(base, self._prefix + name, rewriting)
        for name, join in self._joins.items():
            if name in needed and name not in states:
                states[name] = self._finish_join(join, name, rewriting)
        self._finished = True
        return self.dirty.together(states, boxes)

    def _changed(self) -> set[StateId]:
        bases = {id for id, base in self._bases.items() if base.rows is not None and base.rows.new.batch.num_rows}
        joins = {id for id, one in self._joins.items() if one.delta is not None and one.delta.combinations.count}
        return bases | joins

    def _as_before(self, part: RestingStates, changed: Set[StateId]) -> dict[StateId, StateListing]:
        # States of which a row may have died are read, so that `finish` purges them.
        found = part.as_before(self._before.states, self._bounds or {}, changed)
        for spec in [spec for id, spec in part.specs.items() if id not in found and id not in changed]:
            _ = self.base(spec) if isinstance(spec, RowsSpec) else self.join(spec)
        return found

    def _check(self, holds: bool, contract: str) -> None:
        if self._checked:
            require(holds, contract)

    def _finish_table(self, name: StateId, chunk: str) -> StateListing:
        if name not in self._tables:
            return self._before.states[name]
        batch = self._tables[name]
        return StateListing((store_chunk(self._store, chunk, batch),), batch.num_rows)

    def _finish_join(self, join: JoinState, name: StateId, rewriting: Rewriting) -> StateListing:
        if self._checked and join.delta is not None:
            check_run(join.spec, join.delta)
        lineage = join.spec.lineage
        bound = self.bounds(name).get(lineage.clock) if lineage else None
        listing = join.finish(self._store, self._prefix + name, bound, rewriting)
        delta = len(join.delta) if join.delta else 0
        self.count(name.counted, Counters(inserted=delta, purged=join.purged, moved=join.moved))
        return listing

    def _finish_base(self, base: BaseState, name: str, rewriting: Rewriting) -> StateListing:
        bounds = self.bounds(base.spec.id)
        if base.rows is None:
            base.append_nothing(self.rows(base.spec).new.batch)
        assert base.rows is not None
        new, old = base.rows.new.batch.num_rows, base.count_alive(bounds)
        self.count(base.spec.id.counted, Counters(inserted=new, purged=base.live_before - old))
        return base.finish(self._store, name, old + new, bounds, rewriting)
