"""The Spark job of a step: rows to lanes, lanes to chunks and staged results, and their reports to the driver.

Queries that read the answers of others are one more job for each level that they stand above them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession

from midstream.job.outputs import OutputFile
from midstream.model import errors
from midstream.model.allowed_operators import allowed_operators
from midstream.model.codec import decode
from midstream.model.counters import Counters
from midstream.model.errors import MidstreamError
from midstream.model.ids import LaneId
from midstream.model.manifest import Manifest, StreamProgress
from midstream.model.node_spread import NodeSpread
from midstream.operators.source import SourceOperator
from midstream.operators.user_operator import OperatorSpec
from midstream.runtime.watermark import Seen, StepClock, ceilings, watermarks
from midstream.spark.exchange import Exchange
from midstream.spark.file_rows import BatchFiles, newest_in_files
from midstream.spark.kept_rows import KeptRows, chunks_by_stream
from midstream.spark.parcel_files import ParcelFiles
from midstream.spark.prepass import filtered_tallies, seen_before_filters, tally, with_arrival_numbers
from midstream.spark.setting import Setting
from midstream.spark.shipped import ShippedPredicates
from midstream.spark.spread_part import SpreadPart, spread_parts
from midstream.spark.stages import Reports, reports_here, reports_over_rows, reports_without_rows
from midstream.spark.task import StepTask, Writes, stripped
from midstream.spark.unpack import StreamSlots
from midstream.state.store.chunk_cache import NOT_USED, CacheUse
from midstream.step.answers import AnswerTimes, answered, streams_by_level
from midstream.step.conclude import progress_after
from midstream.step.lane_step import LaneOutput
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
    """What the tasks of a step report; `again` says that some were begun more than once."""

    outputs: Mapping[LaneId, LaneOutput]
    seen: Mapping[str, Seen]
    files: tuple[OutputFile, ...]
    cache: CacheUse = NOT_USED
    spreads: Mapping[str, NodeSpread] = field(default_factory=dict)
    again: bool = False
    kept: tuple[KeptRows, ...] = ()
    progress: Mapping[str, StreamProgress] | None = None

    def beside(self, other: Gathered) -> Gathered:
        """With what the tasks of another job of the step report of lanes and nodes."""
        return replace(
            self,
            outputs={**self.outputs, **other.outputs},
            files=(*self.files, *other.files),
            cache=self.cache.beside(other.cache),
            spreads={**self.spreads, **other.spreads},
            again=self.again or other.again,
            kept=(*self.kept, *other.kept),
        )


def run_step(before: Manifest, plan: StepPlan, batch: DataFrame, setting: Setting, writes: Writes) -> Gathered:
    """Run the step's jobs over the rows that Spark brings. Raises the `MidstreamError` of a task, or whatever Spark
    raises.
    """
    exchange, streams = setting.exchange, setting.exchange.layout.streams
    clock = _clock(before, plan)
    marks = clock.before
    seen: dict[str, Seen] | None = None
    observation = None
    cached = batch.persist() if setting.needs_watermarks or setting.counted else None
    try:
        if setting.needs_watermarks:
            seen = tally(batch, streams, marks, clock.ceilings)
            clock = replace(clock, after=watermarks(plan.manifest.streams, progress_after(plan, seen)))
        if setting.counted:
            batch = with_arrival_numbers(
                batch, streams, {s: clock.counts[s] for s in setting.counted}, marks, clock.ceilings
            )
        if exchange.has_filters and seen is None:
            observation = Observation()
            batch = batch.observe(observation, *filtered_tallies(streams, clock.ceilings))
        task = _first_task(before, plan, setting, exchange, clock, writes)
        writes.store.finish()
        reports = _none_failed(reports_over_rows(exchange.apply(batch, clock, setting.counted), task))
        by_tasks = _seen_by_tasks(streams, reports)
        if observation is not None:
            seen = seen_before_filters(observation.get, by_tasks, marks)
    finally:
        if cached is not None:
            cached.unpersist()
    found = _gathered(plan, task.spreads, reports, by_tasks if seen is None else seen)
    if exchange.has_filters:
        found = replace(found, outputs=_with_rows_left_out(setting, reports, found.seen, found.outputs))
    return _with_levels_above(before, plan, batch.sparkSession, setting, task, found) if setting.above else found


def run_over_files(
    before: Manifest, plan: StepPlan, session: SparkSession, setting: Setting, writes: Writes, files: BatchFiles
) -> Gathered:
    """The same over files that the tasks read by themselves."""
    exchange, streams = setting.exchange, setting.exchange.layout.streams
    clock = _clock(before, plan)
    few = _are_few(files.rows, plan, setting)
    exchange = exchange.in_one if few else exchange
    if setting.needs_watermarks:
        newest = newest_in_files(files, {name: plan.manifest.streams[name].timestamp for name in streams}, clock)
        clock = replace(clock, after=watermarks(plan.manifest.streams, progress_after(plan, newest)))
    task = _first_task(before, plan, setting, exchange, clock, writes)
    task = replace(task, files=files, dealt=exchange.dealt, parcel_files=_parcel_files(task))
    writes.store.finish()
    reports = _none_failed(reports_here(task) if few else reports_without_rows(session, task))
    found = _gathered(plan, task.spreads, reports, _seen_by_tasks(streams, reports))
    return _with_levels_above(before, plan, session, setting, task, found) if setting.above else found


def _clock(before: Manifest, plan: StepPlan) -> StepClock:
    """Where the step begins, until it is known what its rows do to the watermarks."""
    marks = watermarks(plan.manifest.streams, before.progress)
    counts = {name: before.progress[name].rows if name in before.progress else 0 for name in plan.manifest.streams}
    return StepClock(plan.manifest.step, marks, marks, counts, ceilings(plan.manifest.streams, before.progress))


def _with_levels_above(
    before: Manifest, plan: StepPlan, session: SparkSession, setting: Setting, first: StepTask, found: Gathered
) -> Gathered:
    """Run the queries that read answers, level by level, each over what those below have kept; `first` is the task of
    level 0.
    """
    streams, progress, seen = plan.manifest.streams, progress_after(plan, found.seen), dict(found.seen)
    answers = streams_by_level(plan.manifest)
    for level, exchange in enumerate(setting.above, 1):
        for stream in answers[level]:
            times = sum((one.times for one in found.kept if one.stream == stream.name), AnswerTimes())
            progress[stream.name], seen[stream.name] = answered(plan.manifest, progress, stream, times, found.outputs)
        kept = chunks_by_stream(streams, found.kept)
        few = _are_few(sum(chunk.rows for chunks in kept.values() for chunk in chunks), plan, setting)
        exchange = exchange.in_one if few else exchange
        clock = replace(first.clock, after=watermarks(streams, progress))
        task = _task(before, plan, setting, exchange, level, clock, first.writes)
        task = replace(task, kept=kept, returning=first.returning, parcel_files=_parcel_files(task))
        first.writes.store.finish()
        reports = _none_failed(reports_here(task) if few else reports_without_rows(session, task))
        found = found.beside(_gathered(plan, task.spreads, reports, found.seen))
    return replace(found, seen=seen, progress=progress)


def _are_few(rows: int, plan: StepPlan, setting: Setting) -> bool:
    """Whether the driver does the work itself, for sending it away would take longer; never where code of the user's
    has a part in it, which had better not run there.
    """
    asked = bool(setting.asked) or any(entry.operator is not None for entry in plan.manifest.queries.values())
    return rows <= ROWS_HERE and not asked


def _none_failed(reports: Reports) -> Reports:
    """The reports; raises the `MidstreamError` of a task."""
    for report in reports:
        _raise(report)
    return reports


def _parcel_files(task: StepTask) -> ParcelFiles | None:
    """The files by which parcels go from hop to hop, where no plan of Spark's has a part in it."""
    return ParcelFiles.of(task.writes.store, task.clock.step) if task.spreads else None


def _first_task(
    before: Manifest, plan: StepPlan, setting: Setting, exchange: Exchange, clock: StepClock, writes: Writes
) -> StepTask:
    """The step as the tasks of level 0 know it, which have the rows of the batch, and what comes back from nodes."""
    task = _task(before, plan, setting, exchange, 0, clock, writes)
    return replace(task, returning=returned(before, plan, writes.store), read_above=setting.read_above)


def _task(
    before: Manifest,
    plan: StepPlan,
    setting: Setting,
    exchange: Exchange,
    level: int,
    clock: StepClock,
    writes: Writes,
) -> StepTask:
    """The step as the tasks of a level know it."""
    manifest, groups, layout = plan.manifest, exchange.groups, exchange.layout
    streams = tuple(StreamSlots.of(manifest.streams[name], layout) for name in layout.streams)
    counting = {
        s: next((n for n, group in enumerate(groups) if s in group.streams), len(groups)) for s in layout.streams
    }
    return StepTask(
        plan=stripped(plan),
        groups=tuple(group.name for group in groups),
        lanes=tuple(tuple(exchange.lanes(p)) for p in range(exchange.partitions)),
        streams=streams,
        tags=exchange.tags,
        counted=setting.counted,
        counting=counting,
        clock=clock,
        writes=writes,
        operators=_operators(manifest),
        predicates=ShippedPredicates.of(setting.asked),
        counts=tuple(group.lanes for group in groups),
        spreads=spread_parts(before, plan, level, clock, writes.store, exchange.partitions),
    )


def _operators(manifest: Manifest) -> frozenset[str]:
    """The users' operators that may be made; raises where one that is not allowed would have to be."""
    specs = [decode(OperatorSpec, e.operator) for e in manifest.queries.values() if e.operator is not None]
    for spec in specs:
        spec.check_allowed()
    return allowed_operators() | {spec.path for spec in specs}


def _raise(report: Mapping[str, Any]) -> None:
    if "error" in report:
        name, message, place, remedy = report["error"]
        kind: type[MidstreamError] = getattr(errors, name, MidstreamError)
        raise kind(message, place=place, remedy=remedy) from FaultInWorker(report["traceback"])


def _seen_by_tasks(streams: Iterable[str], reports: Sequence[Mapping[str, Any]]) -> dict[str, Seen]:
    """What the tasks saw of each stream."""
    by_tasks = {name: Seen() for name in streams}
    for report in reports:
        for name, values in report["seen"].items():
            by_tasks[name] = by_tasks[name] + Seen(*values)
    return by_tasks


def _gathered(
    plan: StepPlan,
    spreads: Sequence[SpreadPart],
    reports: Sequence[Mapping[str, Any]],
    seen: Mapping[str, Seen],
) -> Gathered:
    lanes = [one for report in reports for one in report["lanes"].items()]
    outputs = {LaneId.parse(lane): decode(LaneOutput, value) for lane, value in lanes}
    over_nodes = {part.name: _over_nodes(plan, part, reports) for part in spreads}
    for output in over_nodes.values():
        outputs.update(output.lanes)
    files = tuple(OutputFile(*file) for report in reports for file in report["files"])
    used = reduce(CacheUse.beside, (CacheUse(*report["cache"]) for report in reports), NOT_USED)
    spread, again = {name: output.spread for name, output in over_nodes.items()}, any(one["again"] for one in reports)
    kept = tuple(decode(KeptRows, one) for report in reports for one in report.get("kept", ()))
    return Gathered(outputs, seen, files, used, spread, again, kept)


def _over_nodes(plan: StepPlan, part: SpreadPart, reports: Sequence[Mapping[str, Any]]) -> SpreadOutput:
    """What the nodes of a query give back, from what all tasks of all stages report of them."""
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
    """How many rows the lanes of a group, by its number, got of a stream."""
    found: dict[tuple[int, str], int] = {}
    for report in reports:
        for group, stream, rows in report["entered"]:
            found[group, stream] = found.get((group, stream), 0) + rows
    return found


def _sources(program: Program) -> list[SourceOperator]:
    boxes = [unit.box(unit.plan) for unit in program.units if not unit.ordered]
    operators = [op for box in boxes for root in box.roots for op in root.walk()]
    return list({op.id: op for op in operators if isinstance(op, SourceOperator)}.values())
