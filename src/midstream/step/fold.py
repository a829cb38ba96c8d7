"""The fold: `step(manifest, batch, commands) -> (manifest', results, events)`, in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from midstream.model.command import Command
from midstream.model.errors import InputError
from midstream.model.events import Event
from midstream.model.ids import LaneId
from midstream.model.lanes import StepTiming
from midstream.model.manifest import LaneState, Manifest
from midstream.runtime.piece_writer import PieceWriter
from midstream.runtime.result_operator import Answer
from midstream.runtime.watermark import StepClock, ceilings, watermarks
from midstream.state.gather import MANY, POOL, taken
from midstream.state.keys import stable_order
from midstream.state.store.base import ChunkStore
from midstream.step.admission.admit import admit, nothing_of
from midstream.step.admission.lanes import numbered, spread
from midstream.step.admission.outputs import storable
from midstream.step.answers import AnswerTimes, answered, rows_of
from midstream.step.conclude import conclude, progress_after
from midstream.step.each import Each, one_by_one
from midstream.step.lane_step import LaneOutput, lane_step
from midstream.step.placement import validate
from midstream.step.plan_step import StepPlan, lanes_of, plan_step
from midstream.step.program import Program
from midstream.step.rescale import adopt
from midstream.step.spreading.nodes_done import SpreadOutput, spread_on
from midstream.step.spreading.spread_step import spread_step
from midstream.step.spreading.taken_over import returned, with_returned
from midstream.step.still import brings_nothing, changed_nothing, still_step

LaneShare = tuple[Program, LaneId, Mapping[str, pa.RecordBatch]]
"""What a lane runs in a step, and its share of the rows by stream."""


OpenPieces = Callable[[Manifest], PieceWriter]
"""Opens what takes the answers of a step that is to run by a manifest."""


@dataclass(frozen=True)
class StepResult:
    """What a step gives: the next manifest, the results of each query, and everything that happened.

    `late` and `dead_letters` are by stream, `rejected` has the dead letters of queries; names without any are left out.
    """

    manifest: Manifest
    results: Mapping[str, pa.Table]
    events: tuple[Event, ...]
    late: Mapping[str, pa.Table]
    dead_letters: Mapping[str, pa.Table]
    rejected: Mapping[str, pa.Table] = field(default_factory=dict)


def step(
    manifest: Manifest,
    batch: Mapping[str, pa.Table],
    commands: Sequence[Command],
    store: ChunkStore,
    each: Each = one_by_one,
    timing: StepTiming | None = None,
    pieces: OpenPieces | None = None,
) -> StepResult:
    """Fold a batch and commands into a manifest. Deterministic; `manifest` and its chunks stay as they are.

    `each` does the lanes one after the other, or at the same time, for they share nothing but the store; so it deals
    many rows to lanes, stream by stream, and merges the lanes' many results, column by column. `timing` is what the
    host has measured of the step before. Where results need not be given back, `pieces` opens what takes those that are
    many, piece by piece, of queries that run in one lane; they are not among the `results` then.
    """
    _check_streams(manifest, batch)
    silent = brings_nothing(batch, commands, timing)
    if silent and manifest.still:
        same, nothing, done = still_step(manifest)
        return StepResult(same, nothing, (done,), {}, {})
    plan = plan_step(manifest, commands, chunks=store, timing=timing)
    streams = plan.manifest.streams
    before = watermarks(streams, plan.manifest.progress)
    silence = nothing_of(streams)
    most = ceilings(streams, plan.manifest.progress)
    found = {name: admit(streams[name], table, before[name], most[name]) for name, table in batch.items()}
    admitted = {**silence, **found}
    seen = {name: rows.seen for name, rows in admitted.items()}
    progress = progress_after(plan, seen)
    counts = dict.fromkeys(streams, 0) | {name: progress.rows for name, progress in manifest.progress.items()}
    rows = numbered(plan, {name: a.rows for name, a in admitted.items()})
    returning = returned(manifest, plan, store)
    opened = None if pieces is None else pieces(plan.manifest)
    outputs: dict[LaneId, LaneOutput] = {}
    over_nodes: dict[str, SpreadOutput] = {}
    for level, answering in enumerate(plan.arrangement.answering):
        for stream in answering:
            rows[stream.name] = rows_of(stream, [_together(name, outputs, each) for name in stream.answers_of])
            times = AnswerTimes.of(rows[stream.name])
            progress[stream.name], seen[stream.name] = answered(plan.manifest, progress, stream, times, outputs)
        clock = StepClock(plan.manifest.step, before, watermarks(streams, progress), counts)
        shares = [
            (program, lane, share)
            for group in plan.lane_groups(level)
            for program in [plan.program(group)]
            for stage in program.stages
            for lane, share in spread(plan, group, program, stage, rows, silence, each).items()
        ]

        def run(one: LaneShare, clock: StepClock = clock) -> LaneOutput:
            program, lane, share = one
            pours = None if opened is None or plan.lanes(lane.group) > 1 else opened
            state = with_returned(state_of(plan, lane.group, lane, store), returning.get(lane))
            return lane_step(program, lane, state, share, clock, store, pours)

        outputs.update(zip((lane for _, lane, _ in shares), each(run, shares), strict=True))
        for name in plan.spread_at(level):
            over_nodes[name] = spread_step(manifest, plan, name, rows, clock, store)
            outputs.update(over_nodes[name].lanes)
    concluded, events = conclude(manifest, plan, outputs, seen, progress)
    concluded = spread_on(concluded, {name: output.spread for name, output in over_nodes.items()})
    validate(manifest, concluded, store)
    results = {name: _together(name, outputs, each).table for name in concluded.queries}
    still = silent and changed_nothing(manifest, concluded, results)
    return StepResult(
        concluded if concluded.still == still else replace(concluded, still=still),
        results,
        events,
        {name: a.late for name, a in admitted.items() if a.late.num_rows},
        {name: a.dead for name, a in admitted.items() if a.dead.num_rows},
        _rejected(outputs.values()),
    )


def state_of(plan: StepPlan, group: str, lane: LaneId, store: ChunkStore) -> LaneState:
    """The state a lane begins the step with; taken over from the old lanes where their number changes."""
    states = plan.manifest.lane_states
    old, new = lanes_of(group, plan.lanes_before), plan.lanes(group)
    if old == new:
        return states.get(lane, LaneState())
    former = [states[name] for name in (LaneId(group, i) for i in range(old)) if name in states]
    return adopt(former, lane.number, new, store, f"{lane}/{plan.manifest.step:08d}-adopted")


def _check_streams(manifest: Manifest, batch: Mapping[str, pa.Table]) -> None:
    for name, table in batch.items():
        if name not in manifest.streams or manifest.streams[name].answers_of:
            known = ", ".join(manifest.pushed_streams) or "none yet: call create_stream first"
            raise InputError(f"there is no stream {name!r}", place="push", remedy=f"use one of: {known}")
        if not isinstance(table, pa.Table):
            raise InputError(
                f"stream {name!r} was given a {type(table).__name__}", place="push", remedy="push pyarrow tables"
            )


def _rejected(outputs: Iterable[LaneOutput]) -> dict[str, pa.Table]:
    """The dead letters of the queries that have some."""
    found: dict[str, list[pa.Table]] = {}
    for output in outputs:
        for query in output.rejected:
            found.setdefault(query, []).append(output.results[query].dead)
    return {query: storable(pa.concat_tables(tables)) for query, tables in found.items()}


def _together(query: str, outputs: Mapping[LaneId, LaneOutput], each: Each) -> Answer:
    """The answers of all lanes, in order of time; a column is one of what is done for `each`."""
    answers = [o.results[query] for o in outputs.values() if query in o.results]
    if len(answers) == 1:
        return answers[0]
    times = np.concatenate([answer.times for answer in answers])
    order, tables = stable_order(times, in_runs=True), [answer.table for answer in answers]
    if len(order) < MANY:
        return Answer(pa.concat_tables(tables).take(pa.array(order)), times[order])

    def column(name: str) -> pa.Array:
        pieces = [piece for table in tables for piece in table.column(name).chunks]
        whole = pa.chunked_array(pieces, tables[0].schema.field(name).type)
        return taken(whole.combine_chunks(POOL), order)

    names: list[str] = tables[0].schema.names
    return Answer(pa.Table.from_arrays(list(each(column, names)), schema=tables[0].schema), times[order])
