"""The Spark executor: the lanes of a level run as tasks, which write chunks and results and report to the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark import Accumulator
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from typing_extensions import override

from midstream.expr.user_predicates import UserPredicate
from midstream.model.codec import decode
from midstream.model.counters import Counters
from midstream.model.ids import LaneId
from midstream.model.manifest import Manifest, OutputFile
from midstream.model.schema import StreamSchema
from midstream.operators.source import SourceOperator
from midstream.pipeline.lane_task import ShippedPredicates, Writes, operators_shipped, raise_failure, stripped
from midstream.runtime.watermark import Seen, StepClock
from midstream.spark.blocks import Split, summed
from midstream.spark.exchange import Exchange
from midstream.spark.kept_rows import KeptRows, chunks_by_stream
from midstream.spark.parcel import ParcelFiles
from midstream.spark.prepass import with_arrival_numbers
from midstream.spark.setting import Setting
from midstream.spark.spread_part import SpreadPart, spread_parts
from midstream.spark.stages import Blocks, Reports, blocks_of, no_blocks, reports
from midstream.spark.task import StepTask
from midstream.spark.unpack import StreamSlots
from midstream.step.lane_report import decode_lanes
from midstream.step.levels import Executor, LevelOutput, StepOutputs, run_levels
from midstream.step.plan_step import StepPlan
from midstream.step.spreading.nodes_done import NodesDone, SpreadOutput, spread_output
from midstream.step.spreading.spread_step import spread_unit
from midstream.step.spreading.taken_over import returned
from midstream.storage.chunk_cache import NOT_USED, CacheUse
from midstream.units.answers import AnswerTimes
from midstream.units.lane_step import LaneOutput
from midstream.units.program import Program


@dataclass(frozen=True)
class Gathered:
    """What the tasks of a step report: lane outputs, and the files that they staged.

    `again` says that some task was begun more than once. `worked` are the seconds of processor time that the tasks of
    lanes over pushed streams took.
    """

    outputs: StepOutputs
    files: tuple[OutputFile, ...] = ()
    cache: CacheUse = NOT_USED
    again: bool = False
    worked: float = 0.0


class SparkExecutor(Executor):
    """Runs the lanes of a step in Spark's tasks; those of a level above read what those below kept.

    `read` adds up the rows of the batch while tasks read them. Small steps are read by at most `parallelism` tasks.
    """

    def __init__(
        self,
        before: Manifest,
        plan: StepPlan,
        batch: DataFrame,
        setting: Setting,
        writes: Writes,
        parallelism: int,
        read: Accumulator[int],
    ) -> None:
        self._before, self._plan, self._batch, self._setting, self._writes = before, plan, batch, setting, writes
        self._parallelism, self._read = parallelism, read
        self._context = batch.sparkSession.sparkContext
        self._streams = setting.exchange.layout.streams
        self._returning = returned(before, plan, writes.store)
        self._parcel_files = ParcelFiles.of(writes.store, plan.manifest.step)
        self._kept: list[KeptRows] = []
        self._files: list[OutputFile] = []
        self._cache, self._again, self._worked = NOT_USED, False, 0.0

    def gather(self) -> Gathered:
        """Run the step's jobs, one for each level. Raises the `MidstreamError` of a task, or the error of Spark."""
        try:
            outputs = run_levels(self._plan, self)
            return Gathered(outputs, tuple(self._files), self._cache, self._again, self._worked)
        finally:
            if self._parcel_files is not None:
                self._parcel_files.remove()

    @override
    def run(self, level: int, clock: StepClock) -> LevelOutput:
        setting = self._setting
        if level == 0:
            task = self._task(setting.exchange, 0, clock)
            found = self._done(task, self._split(clock))
            told = ({name: Seen(*values) for name, values in one["seen"].items()} for one in found)
            seen = summed(told, self._streams)
            output = replace(self._gathered(task, found), seen=seen)
            self._worked = sum(one.get("worked", 0.0) for one in found)
            if setting.exchange.has_filters:
                output = replace(output, lanes=_with_rows_left_out(setting, found, seen, output.lanes))
            return output
        kept = chunks_by_stream(self._plan.manifest.streams, self._kept)
        task = replace(self._task(setting.above[level - 1], level, clock), kept=kept)
        return self._gathered(task, self._done(task, no_blocks(self._context, task.partitions)))

    @override
    def answer(self, stream: StreamSchema, outputs: Mapping[LaneId, LaneOutput]) -> AnswerTimes:
        return sum((one.times for one in self._kept if one.stream == stream.name), AnswerTimes())

    def _split(self, clock: StepClock) -> Blocks:
        # The rows of the batch on their way to the lanes.
        setting, batch, exchange = self._setting, self._batch, self._setting.exchange
        if setting.counted:
            counts = {stream: clock.counts[stream] for stream in setting.counted}
            batch = exchange.layout.read(batch)
            batch = with_arrival_numbers(batch, self._streams, counts, clock.before, clock.ceilings)
        batch = exchange.marked(batch, clock)
        split = Split(
            to_arrow_schema(batch.schema, timezone="UTC"),
            self._slots(exchange),
            exchange.groups,
            exchange.partitions,
            clock,
            self._parcel_files,
            self._read,
            () if setting.counted else exchange.layout.task_readers(),
            everywhere=setting.needs_watermarks,
        )
        tasks = 1 if exchange.partitions == 1 else self._parallelism
        return blocks_of(batch, split, None if setting.is_large else tasks)

    def _slots(self, exchange: Exchange) -> tuple[StreamSlots, ...]:
        streams, layout = self._plan.manifest.streams, exchange.layout
        return tuple(StreamSlots.of(streams[name], layout) for name in layout.streams)

    def _done(self, task: StepTask, blocks: Blocks) -> Reports:
        self._writes.store.finish()
        found = reports(blocks, task)
        for report in found:
            raise_failure(report)
        return found

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
            streams=self._slots(exchange),
            counted=self._setting.counted,
            counting=counting,
            clock=clock,
            writes=self._writes,
            operators=operators_shipped(manifest),
            predicates=ShippedPredicates.of(self._setting.asked, _sent, _NOT_OF_THE_DRIVER),
            counts=tuple(group.lanes for group in groups),
            spreads=spread_parts(self._before, self._plan, level, clock, self._writes.store, exchange.partitions),
            returning=self._returning,
            progress=None if level or not self._setting.needs_watermarks else manifest.progress,
            read_above=frozenset() if level else self._setting.read_above,
            parcel_files=self._parcel_files,
        ).packed()

    def _gathered(self, task: StepTask, reports: Reports) -> LevelOutput:
        # What the tasks report besides their lanes is added up.
        store = self._writes.store
        outputs = {lane: output for one in reports for lane, output in decode_lanes(one["lanes"], store).items()}
        over_nodes = {part.name: _over_nodes(self._plan, part, reports) for part in task.spreads}
        for output in over_nodes.values():
            outputs.update(output.lanes)
        self._files += [OutputFile(*file) for one in reports for file in one["files"]]
        self._cache = reduce(CacheUse.beside, (CacheUse(*one["cache"]) for one in reports), self._cache)
        self._again = self._again or any(one["again"] for one in reports)
        self._kept += [decode(KeptRows, kept) for one in reports for kept in one.get("kept", ())]
        return LevelOutput(outputs, {name: output.spread for name, output in over_nodes.items()})


_NOT_OF_THE_DRIVER = "do not use objects of the driver, such as a session, a lock or an open file"


def _sent(one: UserPredicate) -> object:
    # A function of a module that the workers have goes by its name, any other by its code.
    serializer: Any = CloudPickleSerializer
    return serializer().dumps(one)


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
