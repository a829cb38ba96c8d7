"""One step on one lane: the same code in the embedded engine and in a Spark task. Pure except for the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import pyarrow as pa

from midstream.model.counters import Counters
from midstream.model.errors import cause_of, located
from midstream.model.events import Event
from midstream.model.ids import CounterKey, LaneId, OperatorId, StateId
from midstream.model.manifest import LaneState
from midstream.model.window import Clock
from midstream.plan.signature import Signature
from midstream.runtime.lane import Lane
from midstream.runtime.piece_writer import PieceWriter
from midstream.runtime.result_operator import Answer
from midstream.runtime.watermark import StepClock
from midstream.state.chunk_store import ChunkStore
from midstream.units.program import Program
from midstream.units.unit import Requirements, Unit
from midstream.units.unit_step import UnitStep

Bounds = dict[Clock, int]
"""By clock the least end of lifetime that still matters."""

Done = TypeVar("Done")


@dataclass(frozen=True)
class LaneOutput:
    """What a lane gives back: its next state, the results of each query, and what was counted.

    `counters` are by operator, `uses` names the operators of each unit (a query by itself, or a chain), `migrations`
    has for each unit and mark what its migrations did: `comparisons`, and how they stand while they are under way.
    `rejected` counts the dead letters of each query that has some.
    """

    state: LaneState
    results: Mapping[str, Answer]
    counters: Mapping[OperatorId, Counters]
    uses: Mapping[str, tuple[OperatorId, ...]]
    migrations: Mapping[str, Mapping[str, dict[str, Any]]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    rows_out: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)


def lane_step(
    program: Program,
    name: LaneId,
    state: LaneState,
    inputs: Mapping[str, pa.RecordBatch],
    clock: StepClock,
    store: ChunkStore,
    writer: PieceWriter | None = None,
    most: Callable[[CounterKey], int | None] | None = None,
) -> LaneOutput:
    """Fold a step's rows into a lane.

    `inputs` has for each stream the admitted rows, with `_ts`, and with `_count:<stream>` where a ROWS window counts.
    With `writer` answers of many rows go to it piece by piece, as far as that can be. Raises `CheckpointError` where
    base rows are missing or damaged, and `BrokenOff` where a join would make more rows than `most` says.
    """
    lane = Lane(name, state, inputs, clock, store)
    lane.most = most or lane.most
    asleep = at_rest(program, lane, state.boxes)
    awake = [unit for unit in program.units if unit.name not in asleep]
    steps = [UnitStep(unit, program.migrations.get(unit.name, ()), state, lane) for unit in awake]
    _for_each(steps, UnitStep.open)
    if not program.changed and not program.migrations:
        lane.dirty.rest([part for step in steps if (part := step.resting())], len(steps))
    lane.bound(state_bounds(steps))
    _for_each(steps, UnitStep.recover)
    _for_each(steps, UnitStep.begin)
    _for_each(steps, lambda step: step.ensure(changed=program.changed))
    if writer is not None:
        shared = _of_several(steps)
        _for_each(steps, lambda step: step.pour_into(writer, shared))
    _for_each(steps, UnitStep.advance)
    answers = _for_each(steps, UnitStep.answer)
    for unit, found in zip(awake, answers, strict=True):
        unit.note_nothing(found)
    answers += [unit.nothing for unit in program.units if unit.name in asleep]
    results = {query: answer for found in answers for query, answer in found.items()}
    outcomes = _for_each(steps, UnitStep.settle)
    needed = set[StateId]().union(*(outcome.needed for outcome in outcomes))
    boxes = {outcome.unit.name: outcome.box.snapshot() for outcome in outcomes}
    return LaneOutput(
        lane.finish(needed, boxes),
        results,
        lane.counters,
        {outcome.unit.name: outcome.operators() for outcome in outcomes}
        | {name: required.counted for name, required in asleep.items()},
        {outcome.unit.name: outcome.migrations for outcome in outcomes},
        lane.events,
        {query: answer.count for query, answer in results.items()},
        {query: answer.dead.num_rows for query, answer in results.items() if answer.dead is not None},
    )


def _of_several(steps: Sequence[UnitStep]) -> set[OperatorId]:
    # Their work is done once.
    if len(steps) < 2:
        return set()
    runs = Counter(chain.from_iterable(step.counted for step in steps))
    return {operator for operator, times in runs.items() if times > 1}


def _for_each(steps: Iterable[UnitStep], phase: Callable[[UnitStep], Done]) -> list[Done]:
    # A fault in a phase names the unit.
    found = []
    for step in steps:
        try:
            found.append(phase(step))
        except Exception as fault:
            raise located(fault, step.unit.place) from cause_of(fault)
    return found


def state_bounds(steps: Sequence[UnitStep]) -> dict[StateId, Bounds]:
    """Compute the bounds of every state that the units may read in this step.

    A unit counts also where its present plan has no such state, because it may migrate to one that has.
    """
    own = {step.unit.name: step.bounds() for step in steps}
    if len(steps) == 1:
        (alone,) = steps
        return dict.fromkeys([spec.id for spec in alone.specs()], own[alone.unit.name])
    readers = _Readers(steps, own)
    bounds: dict[StateId, Bounds] = {}
    for step in steps:
        for spec in step.specs():
            if spec.id not in bounds:
                bounds[spec.id] = readers.least(spec.signature.whole(), spec.labels, own[step.unit.name])
    return bounds


class _Readers:
    """Which units could read a state in some plan, found once for each set of sources."""

    def __init__(self, steps: Sequence[UnitStep], own: Mapping[str, Bounds]) -> None:
        self._units, self._own = [step.unit for step in steps], own
        self._by_labels: dict[tuple[str, ...], dict[Signature, list[Bounds]]] = {}

    def least(self, signature: Signature, labels: tuple[str, ...], own: Bounds) -> Bounds:
        """Find on each clock the least bound of those that could read the state. `own` is that of its only reader."""
        if labels not in self._by_labels:
            found: dict[Signature, list[Bounds]] = {}
            for unit in self._units:
                if set(labels) <= set(unit.query.aliases):
                    found.setdefault(unit.binding.signature(labels), []).append(self._own[unit.name])
            self._by_labels[labels] = found
        readers = self._by_labels[labels].get(signature, [own])
        return {clock: min(reader[clock] for reader in readers) for clock in own}


# A query whose streams bring nothing, and which holds nothing, costs a step no more than a look. What it would do is
# known: its states stay as they are listed, its answer is the empty one of before. Whether others share its states does
# not matter, because all that it could read are as empty as they are.
def at_rest(program: Program, lane: Lane, boxes: Mapping[str, Mapping[str, Any]]) -> dict[str, Requirements]:
    """Leave out the units of a lane that do nothing in a step; return what they require, by name."""
    found, dirty = dict[str, Requirements](), lane.dirty
    for unit in () if program.changed else program.units:
        if not unit.nothing or unit.name in program.migrations or unit.since == lane.clock.step:
            continue
        if dirty.silent.issuperset(unit.streams):
            required = _by_itself(unit, boxes.get(unit.name))
            if required is not None and dirty.is_empty(required.states):
                found[unit.name] = required
                dirty.leave_out(unit.name, required.states)
    return found


def _by_itself(unit: Unit, snapshot: Mapping[str, Any] | None) -> Requirements | None:
    # None where the unit is on its way to another plan.
    box = unit.box(unit.plan)
    if snapshot is None or snapshot["box"] != "plan" or snapshot["plan"] != box.notation:
        return None
    return unit.requirements(box)
