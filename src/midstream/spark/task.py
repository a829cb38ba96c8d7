"""What runs in a Python worker: one partition of one step, from rows to chunks, results and a line of JSON.

Nothing else goes back into the JVM: chunks go to the store, results and late rows to the sinks' staging folders.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from time import process_time
from typing import Any

import pyarrow as pa
from pyspark.serializers import CPickleSerializer

from midstream.admission.admit import Mask, judge
from midstream.checkpoint.folders import DEAD_LETTERS, LATE, REJECTED
from midstream.model.allowed import allow_operators
from midstream.model.codec import encode
from midstream.model.errors import MidstreamError, fault_located
from midstream.model.frozen import revised
from midstream.model.ids import LaneId
from midstream.model.manifest import ChunkRef, LaneState, StreamProgress
from midstream.pipeline.lane_task import ShippedPredicates, Writes, failure, run_lane
from midstream.pipeline.outputs import RESULTS, JobOutput
from midstream.pipeline.staged_files import FILES_AT_ONCE, LanePieces, StagedFiles
from midstream.runtime.lane_key import is_single
from midstream.runtime.watermark import LAST_TIME, Seen, StepClock, advance, watermarks
from midstream.spark.blocks import ARRIVAL, seen_of, shares, summed
from midstream.spark.kept_rows import (
    KeptRows,
    even_share,
    kept_answers,
    kept_rows,
    no_answers,
    own_share,
    rows_from,
)
from midstream.spark.parcel import (
    END,
    STOP,
    Parcel,
    ParcelFiles,
    addressed,
    leave_loaded_code_alone,
    place_of_task,
    reported,
    stopped,
)
from midstream.spark.spread_part import SpreadPart
from midstream.spark.unpack import Share, StreamSlots, nothing
from midstream.state.base_state import TIME
from midstream.state.chunk_store import ChunkStore
from midstream.step.lane_report import encode_lanes
from midstream.step.plan_step import StepPlan
from midstream.step.spreading.nodes_done import NodesDone
from midstream.storage.chunk_cache import CacheUse, ChunkCache
from midstream.storage.transfers import threads
from midstream.storage.unsynced import Unsynced
from midstream.storage.write_back import WriteBackStore
from midstream.units.answers import unread
from midstream.units.lane_step import LaneOutput

TOGETHER = 4 << 20
"""Chunks of up to so many bytes a task writes into one file: it must wait until each file is on the disk."""


_SERIALIZER: Any = CPickleSerializer()


@dataclass(frozen=True)
class StepTask:
    """A step as the tasks of its lanes know it.

    `lanes` are the lanes of each partition as (group number, lane), `counts` how many each group has. `counting` names
    for each stream the group whose lanes count its rows and keep its late ones. `operators` are the users' operators
    that the driver allows, `predicates` the users' predicates that its queries ask. `spreads` are the queries that are
    spread over nodes, whose rows go on from here, and `returning` has what lanes take over from nodes. `kept` are the
    chunks of the rows that queries of a higher level read, by stream; None where the rows of the batch themselves come,
    of which those of the streams `read_above` are kept. Parcels' bodies go by `parcel_files`, if there are any. From
    the `progress` of streams before the step, and what the step has brought, lanes compute the watermarks after it.
    `states` has what lanes hold, as Spark serializes a task: first what all partitions need, then for each partition
    what its lanes alone need.
    """

    plan: StepPlan
    groups: tuple[str, ...]
    lanes: tuple[tuple[tuple[int, int], ...], ...]
    streams: tuple[StreamSlots, ...]
    counted: tuple[str, ...]
    counting: Mapping[str, int]
    clock: StepClock
    writes: Writes
    operators: frozenset[str]
    predicates: ShippedPredicates
    counts: tuple[int, ...] = ()
    spreads: tuple[SpreadPart, ...] = ()
    returning: Mapping[LaneId, LaneState] = field(default_factory=dict)
    kept: Mapping[str, tuple[ChunkRef, ...]] | None = None
    read_above: frozenset[str] = frozenset()
    parcel_files: ParcelFiles | None = None
    progress: Mapping[str, StreamProgress] | None = None
    states: tuple[bytes, ...] = ()

    @property
    def partitions(self) -> int:
        """How many partitions each stage of the step has."""
        return len(self.lanes)

    def packed(self) -> StepTask:
        """Pack the states of lanes by the partitions that need them.

        All partitions need those of groups over nodes, and of every group where the number of lanes changes.
        """
        held, nodes = self.plan.manifest.lane_states, {self.groups[part.group] for part in self.spreads}
        if self.plan.lanes_before != self.plan.manifest.shares:
            nodes = {lane.group for lane in held}
        everywhere = {lane: state for lane, state in held.items() if lane.group in nodes}
        own = ([LaneId(self.groups[group], lane) for group, lane in lanes] for lanes in self.lanes)
        alone = ({lane: held[lane] for lane in lanes if lane in held and lane not in everywhere} for lanes in own)
        return self._with_states({}, tuple(map(_SERIALIZER.dumps, (everywhere, *alone))))

    def opened(self, partition: int) -> StepTask:
        """Return the task with the states that its partition needs."""
        everywhere, alone = (_SERIALIZER.loads(self.states[at]) for at in (0, partition + 1))
        return self._with_states(everywhere | alone, ())

    def _with_states(self, held: Mapping[LaneId, LaneState], packed: tuple[bytes, ...]) -> StepTask:
        plan = replace(self.plan, manifest=replace(self.plan.manifest, lane_states=held))
        return replace(self, plan=plan, states=packed)

    def addressed(self, brought: Iterable[tuple[int, Parcel]]) -> list[tuple[int, Parcel]]:
        """Return the partition's report to the driver, and what it sends to the nodes of its queries."""
        began, (partition, again) = process_time(), place_of_task()
        task = self.opened(partition)
        # All parcels are taken in any case: Spark starts another worker in the place of one that has left some.
        own = [parcel for _, parcel in brought]
        if any(parcel.kind == STOP for parcel in own):
            sent = [*(one for one in own if one.stage == END), Parcel(partition, ARRIVAL + 1, STOP)]
        else:
            report, parcels = task.report(partition, own, again)
            sent = [reported(partition, {**report, "worked": process_time() - began}), *parcels]
        leave_loaded_code_alone()
        return addressed(sent, partition, ARRIVAL + 1, self.partitions, self.parcel_files)

    def report(self, partition: int, brought: Sequence[Parcel], again: bool) -> tuple[dict[str, Any], list[Parcel]]:
        """Do a partition's work, and return its report and the parcels it sends on.

        `again` says that it had been begun before.
        """
        unsynced = Unsynced()
        report, parcels = self._report(partition, brought, unsynced, again)
        try:
            unsynced.sync(threads(FILES_AT_ONCE).map)
        except MidstreamError as error:
            report, parcels = failure(error), stopped(self.partitions, 1)
        return report, parcels

    def _report(
        self, partition: int, brought: Sequence[Parcel], unsynced: Unsynced, again: bool
    ) -> tuple[dict[str, Any], list[Parcel]]:
        # The report and the parcels count once what is `unsynced` is synced.
        allow_operators(*self.operators)
        try:
            with fault_located(lambda: f"partition {partition}"):
                self.predicates.take_up()
                report, parcels = self._run(partition, brought, unsynced)
                return {**report, "again": again}, parcels
        except MidstreamError as error:  # It stays one when it is done again; Spark would try and fill the log.
            return failure(error), stopped(self.partitions, 1)

    def _run(
        self, partition: int, brought: Sequence[Parcel], unsynced: Unsynced
    ) -> tuple[dict[str, Any], list[Parcel]]:
        spreads = {part.group: part for part in self.spreads}
        sent: list[Parcel] = []
        files = self.writes.store
        store = WriteBackStore(files.synced_with(unsynced), small=TOGETHER)
        files.read_ahead(self._listed(partition))
        # Nothing but failures comes to a level above, which reads what was kept.
        arrived = shares(brought, self.streams, self.parcel_files)
        staged = StagedFiles(self.writes.staging, secrets.token_hex(4), unsynced)
        seen = summed(seen_of(brought), [stream.name for stream in self.streams])
        report = TaskReport(self, partition, staged, ChunkCache.here().use, {} if partition else seen)
        clock = self.clock if self.progress is None else self._clock(self.progress, seen)
        entering = {place: report.admit(place[0], share) for place, share in arrived.items()}
        for group, lane in self.lanes[partition]:
            own = {
                share.stream.name: (share, entering[g, n, s])
                for (g, n, s), share in arrived.items()
                if (g, n) == (group, lane)
            }
            if group in spreads:
                sent += self._arrived(spreads[group], partition, self._entering(group, lane, own), report)
            else:
                report.deliver(group, lane, self._lane(group, lane, own, clock, store, staged))
            self.writes.crash.reach("amid_tasks", self.clock.step)
        report.settle(store)
        files.finish()
        return report.to_json(), sent

    def _clock(self, progress: Mapping[str, StreamProgress], seen: Mapping[str, Seen]) -> StepClock:
        # All lanes know what all tasks have seen, and the driver computes the same from it.
        streams = self.plan.manifest.streams
        moved = advance(streams, progress, seen, self.plan.arrangement.read)
        return revised(self.clock, after=watermarks(streams, moved))

    def _listed(self, partition: int) -> Iterator[ChunkRef]:
        for group, lane in self.lanes[partition]:
            state = self.plan.manifest.lane_states.get(LaneId(self.groups[group], lane), LaneState())
            yield from (ref for listing in state.states.values() for ref in listing.chunks)

    def _arrived(
        self, part: SpreadPart, partition: int, batches: Mapping[str, pa.RecordBatch], report: TaskReport
    ) -> list[Parcel]:
        arrivals, sent = part.arrived(self.plan, self.clock, batches, partition, self.partitions)
        done = NodesDone(counters=arrivals.counters, newest=arrivals.newest)
        if arrivals.rejected is not None:
            report.staged.put(JobOutput(REJECTED, part.name), f"rows{partition}", arrivals.rejected)
            done = replace(done, rejected={part.name: arrivals.rejected.num_rows})
        report.nodes[part.name] = report.nodes.get(part.name, NodesDone()) + done
        return sent

    def _lane(
        self,
        group: int,
        lane: int,
        own: Mapping[str, tuple[Share, Mask | None]],
        clock: StepClock,
        store: ChunkStore,
        staged: StagedFiles,
    ) -> LaneOutput:
        name = self.groups[group]
        lane_id = LaneId(name, lane)
        batches = self._entering(group, lane, own)
        queries, crash, sizes = unread(self.plan.manifest), self.writes.crash, self.writes.pieces
        pieces = LanePieces(lane_id, queries, staged, crash, self.clock.step, sizes)
        return run_lane(self.plan, lane_id, batches, clock, store, pieces, self.returning.get(lane_id))

    def _entering(
        self, group: int, lane: int, own: Mapping[str, tuple[Share, Mask | None]]
    ) -> dict[str, pa.RecordBatch]:
        # Or the rows that go on to nodes from here.
        name, spread = self.groups[group], any(part.group == group for part in self.spreads)
        if self.kept is None:
            return self._inputs(name, own)
        found = self._read(name, self.kept)
        if spread:
            return {stream: even_share(rows, lane, self.counts[group]) for stream, rows in found.items()}
        if is_single(name):
            return found
        (stage,) = self.plan.program(name).stages
        assert stage.lane_key is not None
        return {s: own_share(rows, stage.lane_key, s, lane, self.counts[group]) for s, rows in found.items()}

    def _read(self, group: str, kept: Mapping[str, tuple[ChunkRef, ...]]) -> dict[str, pa.RecordBatch]:
        program, store, streams = self.plan.program(group), self.writes.store, self.plan.manifest.streams
        none = {stream.name: nothing(stream, self.counted) for stream in self.streams}
        none |= {stream.name: no_answers(stream) for stream in streams.values() if stream.answers_of}
        read = sorted({stream for unit in program.units for stream in unit.streams})
        return {stream: rows_from(store, kept.get(stream, ()), none[stream]) for stream in read}

    def _inputs(self, group: str, own: Mapping[str, tuple[Share, Mask | None]]) -> dict[str, pa.RecordBatch]:
        read = {stream for unit in self.plan.program(group).units for stream in unit.streams}
        batches = {}
        for stream in self.streams:
            if stream.name in own:
                share, entering = own[stream.name]
                batches[stream.name] = share.inputs(entering, self.counted)
            elif stream.name in read:
                batches[stream.name] = nothing(stream, self.counted)
        return batches


@dataclass
class TaskReport:
    """What a partition reports to the driver, as it is put together; `entered` are rows by group number and stream."""

    task: StepTask
    partition: int
    staged: StagedFiles
    used_before: CacheUse
    seen: Mapping[str, Seen]
    lanes: dict[LaneId, LaneOutput] = field(default_factory=dict)
    entered: dict[tuple[int, str], int] = field(default_factory=dict)
    nodes: dict[str, NodesDone] = field(default_factory=dict)
    kept: list[KeptRows] = field(default_factory=list)

    def admit(self, group: int, share: Share) -> Mask | None:
        """Judge which rows of a share enter; None for all.

        The others go to their outputs, once, however many groups got them.
        """
        stream, task = share.stream, self.task
        watermark, most = task.clock.before[stream.name], task.clock.ceilings.get(stream.name, LAST_TIME)
        judged = judge(share.rows.column(TIME), watermark, most)
        self.entered[group, stream.name] = self.entered.get((group, stream.name), 0) + judged.seen.rows
        if task.counting[stream.name] == group:
            if judged.late is not None:
                self._put_apart(JobOutput(LATE, stream.name), share.late(judged.late, watermark))
            if judged.dead is not None:
                self._put_apart(JobOutput(DEAD_LETTERS, stream.name), share.dead(judged.dead, most))
            if stream.name in task.read_above:
                rows = share.inputs(judged.entering, task.counted)
                store, step, number = task.writes.store, task.clock.step, len(self.kept)
                self.kept.append(kept_rows(store, step, stream.name, self.partition, rows, number))
        return judged.entering

    def _put_apart(self, output: JobOutput, table: pa.Table) -> None:
        self.staged.put(output, f"rows{len(self.staged)}", table)

    def deliver(self, group: int, lane: int, output: LaneOutput) -> None:
        """Write a lane's results and note its state."""
        name = LaneId(self.task.groups[group], lane)
        for query, answer in output.results.items():
            if not self.task.plan.manifest.queries[query].part:
                self.staged.put(JobOutput(RESULTS, query), str(name), answer.table)
            self.kept += kept_answers(self.task.writes.store, self.task.plan.manifest, name, query, answer)
            if answer.dead is not None:
                self.staged.put(JobOutput(REJECTED, query), str(name), answer.dead)
        self.lanes[name] = replace(output, results={})

    def settle(self, store: WriteBackStore) -> None:
        """Write what the lanes list of the step's chunks."""
        name = f"{self.task.clock.step:08d}-partition{self.partition}"
        states = store.listed(
            {lane: output.state for lane, output in self.lanes.items()},
            f"{name}.states-{self.staged.token}",
            threads(FILES_AT_ONCE).map,
            rows_label=f"{name}.rows-{self.staged.token}",
        )
        plan, before = self.task.plan, self.task.plan.manifest.lane_states
        # A lane that holds what it held before keeps its part.
        states = {lane: before[lane] if before.get(lane) == state else state for lane, state in states.items()}
        label = f"{self.task.clock.step:08d}-p{self.partition}.lanes-{self.staged.token}"
        states = store.in_parts(states, label, plan.lanes)
        self.lanes = {name: replace(output, state=states[name]) for name, output in self.lanes.items()}

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        seen = {name: astuple(one) for name, one in self.seen.items()}
        cache = list(ChunkCache.here().use.since(self.used_before))
        files, nodes = self.staged.finish(), {name: encode(done) for name, done in self.nodes.items()}
        lanes = encode_lanes(self.lanes)
        entered = [[*of, rows] for of, rows in self.entered.items()]
        found = {"lanes": lanes, "files": files, "seen": seen, "entered": entered, "nodes": nodes}
        return {**found, "cache": cache, "kept": [encode(one) for one in self.kept]}
