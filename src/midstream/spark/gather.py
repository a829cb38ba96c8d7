"""The Spark executor: the lanes of a level run as tasks, which write chunks and results and report to the driver."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from typing_extensions import override

from midstream.job.outputs import OutputFile
from midstream.model import errors
from midstream.model.allowed import allowed_operators
from midstream.model.codec import decode
from midstream.model.counters import Counters
from midstream.model.errors import MidstreamError
from midstream.model.ids import LaneId
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema
from midstream.operators.source import SourceOperator
from midstream.operators.user_operator import OperatorSpec
from midstream.runtime.watermark import Seen, StepClock
from midstream.spark.exchange import Exchange
from midstream.spark.file_rows import BatchFiles, newest_in_files
from midstream.spark.kept_rows import KeptRows, chunks_by_stream
from midstream.spark.parcel import ParcelFiles
from midstream.spark.prepass import filtered_tallies, seen_before_filters, tally, with_arrival_numbers
from midstream.spark.setting import Setting
from midstream.spark.shipped import ShippedPredicates
from midstream.spark.spread_part import SpreadPart, spread_parts
from midstream.spark.stages import Reports, reports_here, reports_over_rows, reports_without_rows
from midstream.spark.task import StepTask, Writes, stripped
from midstream.spark.unpack import StreamSlots
from midstream.state.store.chunk_cache import NOT_USED, CacheUse
from midstream.step.answers import AnswerTimes
from midstream.step.lane_step import LaneOutput
from midstream.step.levels import Executor, LevelOutput, StepOutputs, run_levels
from midstream.step.plan_step import StepPlan
from midstream.step.program import Program
from midstream.step.spreading.nodes_done import NodesDone, SpreadOutput, spread_output
from midstream.step.spreading.spread_step import spread_unit
from midstream.step.spreading.taken_over import returned


class FaultInWorker(Exception):
    """What went wrong in a task, as the cause of the error raised for it: the traceback in the Python worker."""


ROWS_HERE = 100_000
"""So few rows the driver reads and joins by itself, where no code of the user's has a part in it."""


@dataclass(frozen=True)
class Gathered:
    """What the tasks of a step report: lane outputs, and the files that they staged.

    `again` says that some task was begun more than once.
    """

    outputs: StepOutputs
    files: tuple[OutputFile, ...] = ()
    cache: CacheUse = NOT_USED
    again: bool = False


def run_on_spark(plan: StepPlan, executor: SparkExecutor) -> Gathered:
    """Run a step's jobs, one for each level. Raises the `MidstreamError` of a task, or the error that Spark raises."""
    try:
        return Gathered(run_levels(plan, executor), tuple(executor.files), executor.cache, executor.again)
    finally:
        executor.release()


class SparkExecutor(Executor):
    """Runs the lanes of a step in Spark's tasks, or in the driver where so few rows arrive that sending takes longer.

    `OverRows` and `OverFiles` say how the rows of level 0 reach the tasks; a level above reads what those below kept.
    `files`, `cache` and `again` add up what the tasks report besides their lanes.
    """

    def __init__(
        self, before: Manifest, plan: StepPlan, session: SparkSession, setting: Setting, writes: Writes
    ) -> None:
        self._before, self._plan, self._session, self._setting, self._writes = before, plan, session, setting, writes
        self._streams = setting.exchange.layout.streams
        self._returning = returned(before, plan, writes.store)
        self._kept: list[KeptRows] = []
        self.files: list[OutputFile] = []
        self.cache, self.again = NOT_USED, False

    @override
    def run(self, level: int, clock: StepClock) -> LevelOutput:
        if level == 0:
            return self._first(clock)
        kept = chunks_by_stream(self._plan.manifest.streams, self._kept)
        few = self._are_few(sum(chunk.rows for chunks in kept.values() for chunk in chunks))
        exchange = self._setting.above[level - 1]
        task = replace(self._task(exchange.in_one if few else exchange, level, clock), kept=kept)
        return self._gathered(task, self._without_rows(task, few))

    @override
    def answer(self, stream: StreamSchema, outputs: Mapping[LaneId, LaneOutput]) -> AnswerTimes:
        return sum((one.times for one in self._kept if one.stream == stream.name), AnswerTimes())

    def release(self) -> None:
        """Release what the step held in Spark; called however the step ended."""

    @abstractmethod
    def _first(self, clock: StepClock) -> LevelOutput:
        """Run the lanes of level 0 over the rows of the batch."""

    def _are_few(self, rows: int) -> bool:
        # The driver does the work itself for few rows, but it never runs code of the user's.
        queries = self._plan.manifest.queries.values()
        asked = bool(self._setting.asked) or any(entry.operator is not None for entry in queries)
        return rows <= ROWS_HERE and not asked

    def _without_rows(self, task: StepTask, few: bool) -> Reports:
        # No plan of Spark's carries their parcels from hop to hop: files do.
        parcels = ParcelFiles.of(task.writes.store, task.clock.step) if task.spreads else None
        task = replace(task, parcel_files=parcels)
        self._writes.store.finish()
        return _none_failed(reports_here(task) if few else reports_without_rows(self._session, task))

    def _task(self, exchange: Exchange, level: int, clock: StepClock) -> StepTask:
        # For the tasks of one level.
        manifest, groups, layout = self._plan.manifest, exchange.groups, exchange.layout
        counting = {
            s: next((n for n, group in enumerate(groups) if s in group.streams), len(groups)) for s in layout.streams
        }
        return StepTask(
            plan=stripped(self._plan),
            groups=tuple(group.name for group in groups),
            lanes=tuple(tuple(exchange.lanes(p)) for p in range(exchange.partitions)),
            streams=tuple(StreamSlots.of(manifest.streams[name], layout) for name in layout.streams),
            tags=exchange.tags,
            counted=self._setting.counted,
            counting=counting,
            clock=clock,
            writes=self._writes,
            operators=_operators(manifest),
            predicates=ShippedPredicates.of(self._setting.asked),
            counts=tuple(group.lanes for group in groups),
            spreads=spread_parts(self._before, self._plan, level, clock, self._writes.store, exchange.partitions),
            returning=self._returning,
            read_above=frozenset() if level else self._setting.read_above,
        )

    def _gathered(self, task: StepTask, reports: Reports, seen: Mapping[str, Seen] | None = None) -> LevelOutput:
        # What the tasks report besides their lanes is added up.
        outputs = {
            LaneId.parse(lane): decode(LaneOutput, value) for one in reports for lane, value in one["lanes"].items()
        }
        over_nodes = {part.name: _over_nodes(self._plan, part, reports) for part in task.spreads}
        for output in over_nodes.values():
            outputs.update(output.lanes)
        self.files += [OutputFile(*file) for one in reports for file in one["files"]]
        self.cache = reduce(CacheUse.beside, (CacheUse(*one["cache"]) for one in reports), self.cache)
        self.again = self.again or any(one["again"] for one in reports)
        self._kept += [decode(KeptRows, kept) for one in reports for kept in one.get("kept", ())]
        return LevelOutput(outputs, {name: output.spread for name, output in over_nodes.items()}, seen)


class OverRows(SparkExecutor):
    """Runs a step over the rows that Spark brings, shuffled to their lanes."""

    def __init__(self, before: Manifest, plan: StepPlan, batch: DataFrame, setting: Setting, writes: Writes) -> None:
        super().__init__(before, plan, batch.sparkSession, setting, writes)
        # Rows that are counted before they are joined are read twice.
        self._cached = batch.persist() if setting.needs_watermarks or setting.counted else None
        self._batch = batch
        self._arrived: Mapping[str, Seen] | None = None

    @override
    def arrive(self, clock: StepClock) -> Mapping[str, Seen] | None:
        if self._setting.needs_watermarks:
            self._arrived = tally(self._batch, self._streams, clock.before, clock.ceilings)
        return self._arrived

    @override
    def _first(self, clock: StepClock) -> LevelOutput:
        setting, streams, batch, seen = self._setting, self._streams, self._batch, self._arrived
        exchange, observation = setting.exchange, None
        if setting.counted:
            counts = {stream: clock.counts[stream] for stream in setting.counted}
            batch = with_arrival_numbers(batch, streams, counts, clock.before, clock.ceilings)
        if exchange.has_filters and seen is None:
            observation = Observation()
            batch = batch.observe(observation, *filtered_tallies(streams, clock.ceilings))
        task = self._task(exchange, 0, clock)
        self._writes.store.finish()
        reports = _none_failed(reports_over_rows(exchange.apply(batch, clock, setting.counted), task))
        self.release()
        by_tasks = seen_by_tasks(streams, reports)
        if observation is not None:
            seen = seen_before_filters(observation.get, by_tasks, clock.before)
        found = self._gathered(task, reports, by_tasks if seen is None else seen)
        if exchange.has_filters and found.seen is not None:
            found = replace(found, lanes=_with_rows_left_out(setting, reports, found.seen, found.lanes))
        return found

    @override
    def release(self) -> None:
        if self._cached is not None:
            self._cached.unpersist()
            self._cached = None


class OverFiles(SparkExecutor):
    """Runs a step over files that the tasks read by themselves."""

    def __init__(
        self,
        before: Manifest,
        plan: StepPlan,
        session: SparkSession,
        setting: Setting,
        writes: Writes,
        batch: BatchFiles,
    ) -> None:
        super().__init__(before, plan, session, setting, writes)
        self._batch = batch

    @override
    def arrive(self, clock: StepClock) -> Mapping[str, Seen] | None:
        if not self._setting.needs_watermarks:
            return None
        timestamps = {name: self._plan.manifest.streams[name].timestamp for name in self._streams}
        return newest_in_files(self._batch, timestamps, clock)

    @override
    def _first(self, clock: StepClock) -> LevelOutput:
        few = self._are_few(self._batch.rows)
        exchange = self._setting.exchange.in_one if few else self._setting.exchange
        task = replace(self._task(exchange, 0, clock), files=self._batch, dealt=exchange.dealt)
        reports = self._without_rows(task, few)
        return self._gathered(task, reports, seen_by_tasks(self._streams, reports))


def _none_failed(reports: Reports) -> Reports:
    for report in reports:
        _raise(report)
    return reports


def _operators(manifest: Manifest) -> frozenset[str]:
    specs = [decode(OperatorSpec, e.operator) for e in manifest.queries.values() if e.operator is not None]
    for spec in specs:
        # An operator that is not allowed must not be made.
        spec.check_allowed()
    return allowed_operators() | {spec.path for spec in specs}


def _raise(report: Mapping[str, Any]) -> None:
    if "error" in report:
        name, message, place, remedy = report["error"]
        kind: type[MidstreamError] = getattr(errors, name, MidstreamError)
        raise kind(message, place=place, remedy=remedy) from FaultInWorker(report["traceback"])


def seen_by_tasks(streams: Iterable[str], reports: Sequence[Mapping[str, Any]]) -> dict[str, Seen]:
    """Sum up what the tasks saw of each stream."""
    by_tasks = {name: Seen() for name in streams}
    for report in reports:
        for name, values in report["seen"].items():
            by_tasks[name] = by_tasks[name] + Seen(*values)
    return by_tasks


def _over_nodes(plan: StepPlan, part: SpreadPart, reports: Sequence[Mapping[str, Any]]) -> SpreadOutput:
    # Each task of each stage reports a part of it.
    told = (report["nodes"][part.name] for report in reports if part.name in report.get("nodes", {}))
    done = NodesDone.sum(decode(NodesDone, one) for one in told)
    return spread_output(plan.manifest, spread_unit(plan, part.name), part.spread, done)


def _with_rows_left_out(
    setting: Setting,
    reports: Sequence[Mapping[str, Any]],
    seen: Mapping[str, Seen],
    outputs: Mapping[LaneId, LaneOutput],
) -> dict[LaneId, LaneOutput]:
    """Count the rows that Spark left out before the shuffle as the sources of their group would have counted them."""
    counted, entered = dict(outputs), _entered(reports)
    for at, group in enumerate(setting.exchange.groups):
        lane = LaneId(group.name, 0)
        counters = dict(counted[lane].counters)
        for source in _sources(setting.programs[group.name]):
            stream = source.spec.stream
            left_out = seen[stream].rows - entered.get((at, stream), 0)
            more = Counters(rows_in=left_out, predicates=left_out * source.filters)
            counters[source.id] = counters.get(source.id, Counters()) + more
        counted[lane] = replace(counted[lane], counters=counters)
    return counted


def _entered(reports: Sequence[Mapping[str, Any]]) -> dict[tuple[int, str], int]:
    # By the number of a group, and the stream.
    found: dict[tuple[int, str], int] = {}
    for report in reports:
        for group, stream, rows in report["entered"]:
            found[group, stream] = found.get((group, stream), 0) + rows
    return found


def _sources(program: Program) -> list[SourceOperator]:
    boxes = [unit.box(unit.plan) for unit in program.units if not unit.ordered]
    operators = [op for box in boxes for root in box.roots for op in root.walk()]
    return list({op.id: op for op in operators if isinstance(op, SourceOperator)}.values())
