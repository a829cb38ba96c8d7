"""The fold: `step(manifest, batch, commands) -> (manifest', results, events)`, in one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.admission.admit import Admitted, admit, nothing_of
from midstream.admission.refused_rows import storable
from midstream.logical.query import query_of
from midstream.model.command import Command
from midstream.model.counters import Counters
from midstream.model.errors import InputError
from midstream.model.events import Event, StepDone
from midstream.model.frozen import revised
from midstream.model.ids import CounterKey, LaneId
from midstream.model.lane_choice import StepTiming
from midstream.model.manifest import LaneState, Manifest
from midstream.model.schema import StreamSchema
from midstream.review.schedule import JoinBounds
from midstream.runtime.lane import BrokenOff
from midstream.runtime.piece_writer import PieceWriter
from midstream.runtime.result_operator import Answer
from midstream.runtime.watermark import BEGINNING, Seen, StepClock, watermarks
from midstream.state.chunk_store import ChunkStore
from midstream.state.gather import MANY, POOL, taken
from midstream.state.keys import stable_order
from midstream.step.dealt_rows import Each, RunsLanes, numbered, one_by_one, spread
from midstream.step.levels import Executor, LevelOutput, conclude_levels, run_levels
from midstream.step.plan_step import Refuse, StepPlan, lanes_of, plan_step
from midstream.step.rescaled_state import adopt, dealt_states
from midstream.step.spreading.spread_step import spread_step
from midstream.step.spreading.taken_over import returned, with_returned
from midstream.units.answers import AnswerTimes, rows_of
from midstream.units.arrangement import keep_arrangement
from midstream.units.lane_load import state_rows
from midstream.units.lane_step import LaneOutput, lane_step
from midstream.units.program import Program
from midstream.units.user_operators import result_columns

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
    refuse: Refuse | None = None,
) -> StepResult:
    """Fold a batch and commands into a manifest. Deterministic; `manifest` and its chunks stay as they are.

    `each` does the lanes one after the other, or at the same time, because they share nothing but the store; so it
    deals many rows to lanes, stream by stream, and merges the lanes' many results, column by column. `timing` is what
    the host has measured of the step before. Where results are not given back, `pieces` opens a writer that takes many
    results of a query in one lane piece by piece; then they are not among the `results`. `refuse` says which commands
    the host cannot admit.
    """
    _check_streams(manifest, batch)
    silent = brings_nothing(batch, commands, timing)
    if silent and manifest.still:
        same, nothing, done = still_step(manifest)
        return StepResult(same, nothing, (done,), {}, {})
    planned = partial(plan_step, manifest, commands, chunks=store, timing=timing, refuse=refuse)
    plan, vain = planned(), Counters()
    bounds = JoinBounds(plan.manifest, migrates=bool(plan.migrations))
    lanes = LaneExecutor(manifest, plan, batch, store, each, pieces, bounds.most)
    try:
        outputs = run_levels(plan, lanes)
    except BrokenOff as broken:
        # What the attempt has left in the store no manifest lists. The next one is not bounded.
        plan, vain = planned(exceeded=broken.rows), revised(broken.done, rows_in=0, rows_out=0)
        lanes = LaneExecutor(manifest, plan, batch, store, each, pieces)
        outputs = run_levels(plan, lanes)
    concluded, events = conclude_levels(manifest, plan, outputs, store)
    if vain != Counters():
        concluded = keep_arrangement(concluded, revised(concluded, totals=concluded.totals + vain))
    results = {name: lanes.together(name, outputs.lanes).table for name in concluded.queries}
    still = silent and changed_nothing(manifest, concluded, results)
    return StepResult(
        concluded if concluded.still == still else replace(concluded, still=still),
        results,
        events,
        {name: rows.late for name, rows in lanes.admitted.items() if rows.late.num_rows},
        {name: rows.dead for name, rows in lanes.admitted.items() if rows.dead.num_rows},
        _rejected(outputs.lanes.values()),
    )


class LaneExecutor(Executor):
    """Runs the lanes of a step in this process; `each` runs them one after the other or in threads.

    `admitted` has the step's rows by stream once they have arrived; `writer` takes answers piece by piece.
    """

    def __init__(
        self,
        before: Manifest,
        plan: StepPlan,
        batch: Mapping[str, pa.Table],
        store: ChunkStore,
        each: Each,
        pieces: OpenPieces | None,
        most: Callable[[CounterKey], int | None] | None = None,
    ) -> None:
        self._before, self._plan, self._batch, self._store = before, plan, batch, store
        self._each, self._writer, self._most = each, None if pieces is None else pieces(plan.manifest), most
        self._silent, self._returning = _silent(plan), returned(before, plan, store)
        self._rows: dict[str, pa.RecordBatch] = {}
        self.admitted: Mapping[str, Admitted] = {}

    @override
    def arrive(self, clock: StepClock) -> Mapping[str, Seen]:
        streams, before, most = self._plan.manifest.streams, clock.before, clock.ceilings
        found = {name: admit(streams[name], table, before[name], most[name]) for name, table in self._batch.items()}
        self.admitted = {**self._silent, **found}
        self._rows = numbered(self._plan, {name: one.rows for name, one in self.admitted.items()})
        return {name: one.seen for name, one in self.admitted.items()}

    @override
    def run(self, level: int, clock: StepClock) -> LevelOutput:
        plan = self._plan
        shares = [
            (program, lane, share)
            for group in plan.lane_groups(level)
            for program in [plan.program(group)]
            for stage in program.stages
            for lane, share in spread(plan, group, program, stage, self._rows, self._each).items()
        ]

        def run(one: LaneShare) -> LaneOutput | BrokenOff:
            program, lane, share = one
            writer = None if plan.lanes(lane.group) > 1 else self._writer
            state = with_returned(state_of(plan, lane.group, lane, self._store), self._returning.get(lane))
            try:
                return lane_step(program, lane, state, share, clock, self._store, writer, self._most)
            except BrokenOff as broken:
                return broken  # The other lanes end their step, so that what is known does not depend on threads.

        outputs = self._elsewhere(shares, clock)
        if outputs is None:
            found = list(self._each(run, shares))
            if broken := [one for one in found if isinstance(one, BrokenOff)]:
                rows = Counter[CounterKey]()
                for one in broken:
                    rows.update(one.rows)
                raise BrokenOff(rows, Counters.sum(chain.from_iterable(map(_counted, found))))
            done = [one for one in found if isinstance(one, LaneOutput)]
            outputs = dict(zip((lane for _, lane, _ in shares), done, strict=True))
        spreads = {}
        for name in plan.spread_at(level):
            over_nodes = spread_step(self._before, plan, name, self._rows, clock, self._store)
            outputs.update(over_nodes.lanes)
            spreads[name] = over_nodes.spread
        return LevelOutput(outputs, spreads)

    def _elsewhere(self, shares: Sequence[LaneShare], clock: StepClock) -> dict[LaneId, LaneOutput] | None:
        # What lanes take over from others, or from nodes, may be in this process only.
        plan = self._plan
        if not isinstance(self._each, RunsLanes) or self._returning or plan.lanes_before != plan.manifest.shares:
            return None
        outputs = self._each.run_lanes(plan, {lane: rows for _, lane, rows in shares}, clock)
        return None if outputs is None else dict(outputs)

    @override
    def answer(self, stream: StreamSchema, outputs: Mapping[LaneId, LaneOutput]) -> AnswerTimes:
        rows = rows_of(stream, [self.together(name, outputs) for name in stream.answers_of])
        self._rows[stream.name] = rows
        return AnswerTimes.of(rows)

    def together(self, query: str, outputs: Mapping[LaneId, LaneOutput]) -> Answer:
        """Merge a query's answers of all lanes in order of time; `each` runs over the columns."""
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
        columns = list(self._each(column, names))
        return Answer(pa.Table.from_arrays(columns, schema=tables[0].schema), times[order])


def _counted(one: LaneOutput | BrokenOff) -> Iterable[Counters]:
    return [one.done] if isinstance(one, BrokenOff) else [c for id, c in one.counters.items() if id.slice is None]


def _silent(plan: StepPlan) -> Mapping[str, Admitted]:
    # Found once for as long as the streams stay as they are.
    known = plan.arrangement.silent
    if not known:
        known.update({name: nothing_of(stream) for name, stream in plan.manifest.streams.items()})
    return known


def state_of(plan: StepPlan, group: str, lane: LaneId, store: ChunkStore) -> LaneState:
    """Return the state a lane begins the step with; taken over from the old lanes where their number changes."""
    states = plan.manifest.lane_states
    old, new = lanes_of(group, plan.lanes_before), plan.lanes(group)
    if old == new:
        return states.get(lane, LaneState())
    former = [states[name] for name in (LaneId(group, i) for i in range(old)) if name in states]
    dealt = dealt_states(plan.program(group))
    return adopt(former, dealt, lane.number, new, store, f"{lane}/{plan.manifest.step:08d}-adopted")


def _check_streams(manifest: Manifest, batch: Mapping[str, pa.Table]) -> None:
    for name, table in batch.items():
        if name not in manifest.streams or manifest.streams[name].answers_of:
            known = ", ".join(manifest.pushed_streams) or "none yet: call create_stream first"
            raise InputError(f"there is no stream {name!r}", place="push", remedy=f"use one of: {known}")
        if not isinstance(table, pa.Table):
            raise InputError(
                f"a {type(table).__name__} cannot be the rows of stream {name!r}",
                place="push",
                remedy="push pyarrow tables",
            )


def _rejected(outputs: Iterable[LaneOutput]) -> dict[str, pa.Table]:
    found: dict[str, list[pa.Table]] = {}
    for output in outputs:
        for query in output.rejected:
            found.setdefault(query, []).append(output.results[query].dead)
    return {query: storable(pa.concat_tables(tables)) for query, tables in found.items()}


# A step is a function of the manifest, the rows and the commands. Where one without rows and commands has led to the
# manifest it began from, except for its number, so does the next one: a job whose streams are silent does not pay for
# all its states.
def brings_nothing(batch: Mapping[str, pa.Table], commands: Sequence[Command], timing: StepTiming | None) -> bool:
    """Return whether a step has no rows and no commands, and no time was measured that the optimizer would note."""
    measured = timing is not None and (timing.took is not None or timing.interval is not None)
    return not commands and not measured and not any(table.num_rows for table in batch.values())


def changed_nothing(before: Manifest, after: Manifest, results: Mapping[str, pa.Table]) -> bool:
    """Return whether a step that brought nothing has changed nothing but the number of steps.

    An operator of a user's may count steps.
    """
    if any(table.num_rows for table in results.values()):
        return False
    if any(entry.operator is not None for entry in after.queries.values()):
        return False
    return replace(before, step=after.step, still=after.still) == after


def still_step(manifest: Manifest) -> tuple[Manifest, dict[str, pa.Table], StepDone]:
    """Do the step after one that changed nothing: return its manifest, no results, and its event."""
    marks = watermarks(manifest.streams, manifest.progress)
    done = StepDone(
        manifest.step + 1,
        dict.fromkeys(manifest.streams, 0),
        dict.fromkeys(manifest.queries, 0),
        0,
        state_rows(manifest),
        {name: None if mark == BEGINNING else mark for name, mark in marks.items()},
    )
    results = {
        name: result_columns(query_of(entry), entry.operator).empty_table() for name, entry in manifest.queries.items()
    }
    return replace(manifest, step=manifest.step + 1), results, done
