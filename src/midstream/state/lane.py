"""One lane during one step: the only mutable thing in the core.

Operators reach states, rows and the step's input through it; at the end it becomes the lane's next frozen state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from midstream.language.expression import Column
from midstream.model.counters import Counters
from midstream.model.events import Event
from midstream.model.manifest import LaneState, StateListing
from midstream.state.base_state import BaseState
from midstream.state.combinations import Combinations
from midstream.state.join_state import JoinState
from midstream.state.rows import BaseRows
from midstream.state.specs import RowsSpec, StateSpec
from midstream.state.store import ChunkStore

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
    of each stream with their internal columns.
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
        self.carried: dict[str, StateListing] = {}
        self._bases: dict[str, BaseState] = {}
        self._joins: dict[str, JoinState] = {}

    def count(self, operator: str, counters: Counters) -> None:
        """Add to what an operator did in this step."""
        self.counters[operator] = self.counters.get(operator, Counters()) + counters

    def base(self, spec: RowsSpec) -> BaseState:
        """The base state of a source."""
        if spec.id not in self._bases:
            listing = self.before.states.get(spec.id, StateListing())
            self._bases[spec.id] = BaseState.load(spec, listing, self.bounds.get(spec.id, {}), self.store)
        return self._bases[spec.id]

    def holds(self, spec: StateSpec) -> bool:
        """Whether the state is listed or loaded; otherwise it must be computed from what is."""
        return spec.id in self._joins or spec.id in self.before.states

    def join(self, spec: StateSpec) -> JoinState:
        """A join state that `holds`."""
        if spec.id not in self._joins:
            listing = self.before.states[spec.id]
            self._joins[spec.id] = JoinState.load(spec, listing, self.bounds.get(spec.id, {}), self.store)
        return self._joins[spec.id]

    def sibling(self, spec: StateSpec) -> list[Combinations] | None:
        """The old combinations of a state of equal signature but another index, if there is a whole one."""
        prefix = spec.id.rpartition(".")[0] + "."
        for state in self._joins.values():
            if state.spec.id.startswith(prefix) and not state.left_out:
                return [part.combinations for part in state.old]
        return None

    def put(self, state: JoinState) -> None:
        """Take in a state that was computed anew."""
        self._joins[state.spec.id] = state

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
            return BaseRows(base.old, base.nothing())
        return base.rows

    def finish(self, needed: set[str], boxes: Mapping[str, Mapping[str, object]]) -> LaneState:
        """Store and list what is needed; everything else is unlisted."""
        step = f"{self.name}/{self.clock.step:08d}"
        states: dict[str, StateListing] = {k: v for k, v in self.carried.items() if k in needed}
        for name, base in self._bases.items():
            if name in needed:
                states[name] = self._finish_base(base, f"{step}-{name}")
        for name, join in self._joins.items():
            if name in needed:
                states[name] = join.finish(self.store, f"{step}-{name}")
                delta = len(join.delta) if join.delta else 0
                self.count(f"state {name}", Counters(inserted=delta, purged=join.purged))
        return LaneState(states, dict(boxes))

    def _finish_base(self, base: BaseState, name: str) -> StateListing:
        bounds = self.bounds.get(base.spec.id, {})
        assert base.rows is not None
        new, old = base.rows.new.batch.num_rows, base.count_alive(bounds)
        self.count(f"state {base.spec.id}", Counters(inserted=new, purged=base.live_before - old))
        return base.finish(self.store, name, old + new, bounds)
