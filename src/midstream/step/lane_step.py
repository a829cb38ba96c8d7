"""One step on one lane: the same code in the embedded engine and in a Spark task. Pure but for the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from midstream.model.counters import Counters
from midstream.model.errors import fault_located
from midstream.model.events import Event
from midstream.model.ids import LaneId, OperatorId, StateId
from midstream.model.manifest import LaneState
from midstream.runtime.lane import Lane, StepClock
from midstream.runtime.result_operator import Answer
from midstream.state.store.base import ChunkStore
from midstream.step.bounds import state_bounds
from midstream.step.program import Program
from midstream.step.unit_step import UnitStep

Done = TypeVar("Done")


@dataclass(frozen=True)
class LaneOutput:
    """What a lane gives back: its next state, the results of each query, and what was counted.

    `counters` are by operator, `uses` names the operators of each unit (a query by itself, or a chain), `migrations`
    has for each unit and mark what its migrations did: `comparisons`, and how they stand while they are under way.
    """

    state: LaneState
    results: Mapping[str, Answer]
    counters: Mapping[OperatorId, Counters]
    uses: Mapping[str, tuple[OperatorId, ...]]
    migrations: Mapping[str, Mapping[str, dict[str, Any]]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    rows_out: Mapping[str, int] = field(default_factory=dict)


def lane_step(
    program: Program,
    name: LaneId,
    state: LaneState,
    inputs: Mapping[str, pa.RecordBatch],
    clock: StepClock,
    store: ChunkStore,
) -> LaneOutput:
    """Fold a step's rows into a lane.

    `inputs` has for each stream the admitted rows, with `_ts`, with `_count:<stream>` where a ROWS window counts, and
    with `_slot` where lanes may be rescaled. Raises `CheckpointError` where base rows are missing or damaged.
    """
    lane = Lane(name, state, inputs, clock, store)
    steps = [UnitStep(unit, program.migrations.get(unit.name, ()), state, lane) for unit in program.units]
    _for_each(steps, UnitStep.open)
    lane.bound(state_bounds(steps))
    _for_each(steps, UnitStep.recover)
    _for_each(steps, UnitStep.begin)
    _for_each(steps, lambda step: step.ensure(changed=program.changed))
    _for_each(steps, UnitStep.advance)
    results = {query: answer for found in _for_each(steps, UnitStep.answer) for query, answer in found.items()}
    outcomes = _for_each(steps, UnitStep.settle)
    needed = set[StateId]().union(*(outcome.needed for outcome in outcomes))
    after = lane.finish(needed, {outcome.unit.name: outcome.box.snapshot() for outcome in outcomes})
    return LaneOutput(
        after,
        results,
        lane.counters,
        {outcome.unit.name: outcome.operators() for outcome in outcomes},
        {outcome.unit.name: outcome.migrations for outcome in outcomes},
        lane.events,
        {query: len(answer.times) for query, answer in results.items()},
    )


def _for_each(steps: Iterable[UnitStep], phase: Callable[[UnitStep], Done]) -> list[Done]:
    """A phase done for each unit; a fault in it names the unit."""
    found = []
    for step in steps:
        with fault_located(step.unit.place):
            found.append(phase(step))
    return found
