"""One step on one lane: the same code in the embedded engine and in a Spark task. Pure but for the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from midstream.migration.base import Box, PlanBox, comparisons, ensure, states_of
from midstream.migration.discovery import strategy
from midstream.migration.under_way.hand_over import hand_over
from midstream.migration.under_way.lasting import maker
from midstream.migration.under_way.running import restored, sound
from midstream.model.counters import Counters
from midstream.model.events import Event
from midstream.model.events import from_json as event_from_json
from midstream.model.manifest import LaneState
from midstream.model.window import EVENT_TIME, row_clock
from midstream.operators.reorder import pending_id, release
from midstream.operators.source import SourceOperator
from midstream.operators.user import UserResultOperator
from midstream.operators.user_operator import OperatorSpec
from midstream.plan.signature import Signature
from midstream.runtime.lane import BEGINNING, Lane, StepClock
from midstream.runtime.operator import Operator
from midstream.runtime.result_operator import Answer
from midstream.sharing.results import Pieces
from midstream.state.combinations import Combinations
from midstream.state.specs import RowsSpec, StateSpec
from midstream.state.store.base import ChunkStore
from midstream.step.held import held_id, hold_back, released
from midstream.step.program import Program
from midstream.step.unit import Unit


@dataclass(frozen=True)
class LaneOutput:
    """What a lane gives back: its next state, the results of each query, and what was counted.

    `counters` are by operator, `uses` names the operators of each unit (a query by itself, or a chain), `migrations`
    has for each unit and mark what its migrations did: `comparisons`, and how they stand while they are under way.
    """

    state: LaneState
    results: Mapping[str, Answer]
    counters: Mapping[str, Counters]
    uses: Mapping[str, tuple[str, ...]]
    migrations: Mapping[str, Mapping[str, dict[str, Any]]] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    rows_out: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The output as JSON values, without the results: a task delivers those itself."""
        return {
            "state": self.state.to_json(),
            "counters": {k: v.to_json() for k, v in self.counters.items()},
            "uses": {k: list(v) for k, v in self.uses.items()},
            "migrations": {k: dict(v) for k, v in self.migrations.items()},
            "events": [e.to_json() for e in self.events],
            "rows_out": dict(self.rows_out),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> LaneOutput:
        """The output that `to_json` wrote, with no results."""
        return LaneOutput(
            state=LaneState.from_json(value["state"]),
            results={},
            counters={k: Counters(**v) for k, v in value["counters"].items()},
            uses={k: tuple(v) for k, v in value["uses"].items()},
            migrations=value["migrations"],
            events=tuple(map(event_from_json, value["events"])),
            rows_out=value["rows_out"],
        )


def lane_step(
    program: Program,
    name: str,
    state: LaneState,
    inputs: Mapping[str, pa.RecordBatch],
    clock: StepClock,
    store: ChunkStore,
) -> LaneOutput:
    """Fold a step's rows into a lane.

    `inputs` has for each stream the admitted rows, with `_ts`, with `_count:<stream>` where a ROWS window counts, and
    with `_slot` where lanes may be rescaled. Raises `CheckpointError` where base rows are missing or damaged.
    """
    lane = Lane(name, state, inputs, clock, {}, store)
    boxes = {unit.name: _restore(unit, state, clock.step) for unit in program.units}
    began = {unit.name: [unit.box(m.plan) for m in program.migrations.get(unit.name, ())] for unit in program.units}
    everything = {unit.name: [boxes[unit.name], boxes[unit.name].target, *began[unit.name]] for unit in program.units}
    for unit in program.units:
        if unit.ordered:
            own = {stream: unit.binding.inputs[stream] for stream in unit.streams}
            counted = {stream: own[stream] for stream in unit.counted}
            release(lane, unit.name, unit.since, own, counted, unit.columns())
    lane.bounds = _bounds(lane, program, everything)
    boxes = {unit.name: sound(boxes[unit.name], lane) for unit in program.units}
    costs: dict[str, dict[str, int]] = {unit.name: {} for unit in program.units}
    for unit in program.units:
        for at, migration in enumerate(program.migrations.get(unit.name, ())):
            before, mark = comparisons(lane), mark_of(unit.name, clock.step, at)
            box, options = began[unit.name][at], migration.options
            chosen = strategy(migration.strategy)
            # Parts do not migrate: where they came in the same step, the new plan stands alone at once.
            boxes[unit.name] = box if unit.parted else chosen.begin(boxes[unit.name], box, lane, options, mark)
            if migration.operator is not None and isinstance(unit.result_operator, UserResultOperator):
                spec = OperatorSpec.from_json(migration.operator)
                hand_over(unit.result_operator, boxes[unit.name].results, spec, chosen, options, mark, lane)
            everything[unit.name].append(boxes[unit.name])
            costs[unit.name][mark] = comparisons(lane) - before
    for unit in program.units:
        kept = list(zip(boxes[unit.name].results, unit.result_operator.kept, strict=False))
        ensure(lane, [*states_of(boxes[unit.name].operators()), *kept], event=not (began[unit.name] or program.changed))
    results: dict[str, Answer] = {}
    for unit in program.units:
        results.update(_answers(unit, boxes[unit.name], lane))
    held = {id for unit in program.units if boxes[unit.name].withheld(lane) is not None for id in _held_ids(unit)}
    held |= {table for unit in program.units for table in unit.result_operator.tables(lane)}
    moves = {unit.name: _moves(unit, boxes[unit.name], costs[unit.name], lane) for unit in program.units}
    settled = {unit.name: boxes[unit.name].settled(lane) for unit in program.units}
    needed = held.union(*(_needed(unit, settled[unit.name]) for unit in program.units))
    after = lane.finish(needed, {query: box.snapshot() for query, box in settled.items()})
    uses = {unit.name: _uses(unit, [*everything[unit.name], settled[unit.name]]) for unit in program.units}
    rows_out = {query: len(answer.times) for query, answer in results.items()}
    return LaneOutput(after, results, lane.counters, uses, moves, tuple(lane.events), rows_out)


def mark_of(query: str, step: int, number: int) -> str:
    """What tells migrations apart: whose it is and when it began. Two queries' states in transition are never one.

    >>> mark_of("q", 12, 0)
    'q.12.0'
    """
    return f"{query}.{step}.{number}"


def _answers(unit: Unit, box: Box, lane: Lane) -> dict[str, Answer]:
    """The step's part of each query's answer, without what is held back, and with what is no longer."""
    deltas = box.advance(lane)
    pieces = lane.notes.get(box.roots[0].id, ()) if isinstance(box, PlanBox) else ()
    found, kept_back = _given(unit, deltas, lane, pieces), box.withheld(lane)
    tables = dict(zip(unit.queries, _held_ids(unit), strict=True))
    if kept_back is None and not any(table in lane.before.states for table in tables.values()):
        return found
    if kept_back is None:
        return {query: released(lane, tables[query], answer) for query, answer in found.items()}
    for query, answer in _given(unit, (kept_back,), lane).items():
        hold_back(lane, tables[query], answer)
    return found


def _given(unit: Unit, deltas: Sequence[Combinations], lane: Lane, pieces: Pieces = ()) -> dict[str, Answer]:
    if unit.answers is None:
        return {unit.name: unit.result_operator.emit(lane, deltas)}
    return unit.answers.give(lane, deltas, pieces)


def _held_ids(unit: Unit) -> tuple[str, ...]:
    if unit.answers is None:
        return (held_id(unit.name, unit.since),)
    return tuple(held_id(member.name, member.since) for member in unit.answers.members)


def _moves(unit: Unit, box: Box, begun: Mapping[str, int], lane: Lane) -> dict[str, dict[str, Any]]:
    """What the query's migrations did in this step, those included that began and ended in it."""
    found: dict[str, dict[str, Any]] = {mark: {"comparisons": cost} for mark, cost in begun.items()}
    for mark, report in box.reports(lane).items():
        cost = found.get(mark, {"comparisons": 0})["comparisons"] + report["comparisons"]
        found[mark] = {**report, "comparisons": cost}
    for mark, report in unit.result_operator.reports(lane).items():
        before: dict[str, Any] = found.get(mark, {"comparisons": 0})
        pieces = {**before.get("pieces", {}), **report["pieces"]}
        cost = before["comparisons"] + report["comparisons"]
        found[mark] = {**before, **report, "comparisons": cost, "pieces": pieces}
    return found


def _restore(unit: Unit, state: LaneState, step: int) -> Box:
    snapshot = state.boxes.get(unit.name) or (state.boxes.get(unit.formerly) if unit.formerly else None)
    # A snapshot may be of a query of the same name that this step dropped.
    if snapshot is None or unit.since == step:
        return unit.box(unit.plan)
    if unit.parted:
        return unit.box(snapshot["plan"])  # Parts do not migrate: what was on its way has arrived.
    return restored(snapshot, unit.box, maker)


def _bounds(lane: Lane, program: Program, boxes: Mapping[str, list[Box]]) -> dict[str, dict[str, int]]:
    """For each state the least end of lifetime that matters to any query that could read it.

    A query counts also where its present plan has no such state, for it may migrate to one that has.
    """
    own = {unit.name: _query_bounds(lane, unit) for unit in program.units}
    readers = _Readers(program, own)
    bounds: dict[str, dict[str, int]] = {}
    for unit in program.units:
        for spec in _specs(unit, boxes[unit.name]):
            if spec.id not in bounds:
                bounds[spec.id] = readers.least(spec.signature.whole(), spec.labels, own[unit.name])
    return bounds


class _Readers:
    """Which queries could read a state in some plan, found once for each set of sources."""

    def __init__(self, program: Program, own: Mapping[str, dict[str, int]]) -> None:
        self._units, self._own = program.units, own
        self._by_labels: dict[tuple[str, ...], dict[Signature, list[dict[str, int]]]] = {}

    def least(self, signature: Signature, labels: tuple[str, ...], own: dict[str, int]) -> dict[str, int]:
        """On each clock the least bound of those that could read the state; `own` is that of its only reader."""
        if labels not in self._by_labels:
            found: dict[Signature, list[dict[str, int]]] = {}
            for unit in self._units:
                if set(labels) <= set(unit.query.aliases):
                    found.setdefault(unit.binding.signature(labels), []).append(self._own[unit.name])
            self._by_labels[labels] = found
        readers = self._by_labels[labels].get(signature, [own])
        return {clock: min(reader[clock] for reader in readers) for clock in own}


def _specs(unit: Unit, boxes: Iterable[Box]) -> list[StateSpec | RowsSpec]:
    """The states, base rows included, that a query's boxes and result operator stand on."""
    specs: list[StateSpec | RowsSpec] = list(unit.result_operator.kept)
    for box in boxes:
        specs += [spec for _, spec in states_of(box.operators())]
        specs += [op.spec for op in _operators(box) if isinstance(op, SourceOperator) and op.spec.kept]
    return specs


def _query_bounds(lane: Lane, unit: Unit) -> dict[str, int]:
    before = min(lane.clock.before[stream] for stream in unit.streams)
    # A row that nobody wants has ended before all time, and is dead before the watermark has moved.
    bounds = {EVENT_TIME: max(before - unit.result_operator.slack, BEGINNING + 1)}
    for stream in unit.counted:
        bounds[row_clock(stream)] = lane.counts[unit.binding.inputs[stream]]
    return bounds


def _operators(box: Box) -> Iterable[Operator]:
    for root in box.operators():
        yield from root.walk()


def _needed(unit: Unit, box: Box) -> set[str]:
    """The ids of all states that a query stands on."""
    waiting = {pending_id(unit.name, unit.since, stream) for stream in unit.streams} if unit.ordered else set()
    tables = {table for op in _operators(box) for table in op.tables()}
    return waiting | tables | {spec.id for spec in _specs(unit, [box])}


def _uses(unit: Unit, boxes: list[Box]) -> tuple[str, ...]:
    ids = {id for box in boxes for op in _operators(box) for id in op.counted}
    ids |= {f"state {state}" for box in boxes for state in _needed(unit, box)}
    ids |= set(unit.answers.operators) if unit.answers is not None else set()
    return tuple(sorted(ids))
