"""One step on the driver: from a micro-batch to a published manifest and filled sinks.

A step is pure, so a Spark job that dies in the middle is simply run again, here or after a restart. It is committed
when its manifest is published; the sinks follow, and are filled again if that was cut short.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from pyspark import Accumulator
from pyspark.sql import DataFrame

from midstream.checkpoint.writer import Writer
from midstream.commands.add_query import AddQuery
from midstream.commands.change_query import ChangeQuery
from midstream.embedded.file_formats import BadFile
from midstream.logical.query import Query, query_of
from midstream.model.command import Command
from midstream.model.errors import (
    CheckpointError,
    InputError,
    InternalError,
    MidstreamError,
    ReadError,
    fault_located,
)
from midstream.model.events import EVENTS_KEPT, ChunksFetched, Event
from midstream.model.lane_choice import StepTiming
from midstream.model.manifest import SPARK, Manifest, Published
from midstream.model.spark_cause import own_error
from midstream.model.words import FEW
from midstream.pipeline.carried_log import SparkLog
from midstream.pipeline.commits import Commits
from midstream.pipeline.crash_points import CrashPoint
from midstream.pipeline.journal import log_step
from midstream.pipeline.lane_task import Writes
from midstream.pipeline.lost_rows import Source, warn_of_lost_rows
from midstream.pipeline.outputs import Outputs
from midstream.pipeline.patience import Patience
from midstream.pipeline.reconcile import Declared, differences
from midstream.pipeline.step_times import StepTimes, Stopwatch, timed
from midstream.pipeline.waiting_commands import WaitingCommands
from midstream.runtime import piece_writer
from midstream.runtime.watermark import Seen
from midstream.spark.blocks import RowsRead
from midstream.spark.executor import Gathered, SparkExecutor
from midstream.spark.job_streams import needs
from midstream.spark.layout import StepLayout
from midstream.spark.session import STEP_SETTINGS
from midstream.spark.setting import Setting, setting_of
from midstream.sql.parse import bind_query
from midstream.step.levels import StepOutputs, conclude_levels
from midstream.step.plan_step import StepPlan, plan_step
from midstream.storage.files import FileStore
from midstream.units.lane_step import LaneOutput

ATTEMPTS = 3
TASK_COSTS = 0.025
"""The seconds of processor time that one more task of lanes takes, in Spark and in its worker, without any rows."""

LARGE = 200_000
"""Rows a step from which on it pays that Spark checks selections before rows travel, and that each partition of the
sources has a task of its own.
"""


REPORT = (
    "report it with the traceback; then start the job again, and if the step fails repeatedly, drop the query "
    "and add it again"
)


OF_SOURCES = (BadFile, InputError, ReadError, CheckpointError)
"""The errors by which tasks fail that cannot read a source; a `ReadError` may pass."""


class OtherUnion(Exception):
    """The running union does not bring what the step needs: a query was added that reads other columns or streams."""


class Driver:
    """Folds the micro-batches of one job; `fold` is what Spark's `foreachBatch` calls.

    `patience` says whether the job is being stopped too, so that a Spark job that was cancelled is not run again.
    `timing` says when micro-batches are due, and how many tasks run side by side.
    """

    def __init__(
        self,
        writer: Writer,
        manifest: Manifest,
        declared: Declared,
        outputs: Outputs,
        patience: Patience,
        log: SparkLog,
        crash: CrashPoint,
        timing: StepTiming,
    ) -> None:
        self.manifest, self.declared, self.outputs = manifest, declared, outputs
        self.folders, self.writer = outputs.folders, writer
        self.store = FileStore(self.folders.chunks, epoch=writer.claim.number, write_behind=True, limit=declared.limit)
        self.layout: StepLayout | None = None
        self.events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self.patience, self._log, self._crash, self._timing = patience, log, crash, timing
        self.times = StepTimes(self.folders, writer.claim.number)
        self._commits = Commits(writer, outputs, crash)
        self.reconciled = False
        self._setting: Setting | None = None
        self._prepared: str | None = None
        self._coming: Manifest | None = None
        self._planned: StepPlan | None = None
        self._rows_before = 0
        self._worked: float | None = None
        self._attempts = 0
        self._read: Accumulator[int] | None = None
        self._read_before = 0
        self._warned: set[Source] = set()

    def fold(self, batch: DataFrame, number: int) -> None:
        """Do a step, or only end it where its manifest stands already.

        A step that fails fails whole: until its manifest is published nothing of it counts. What fails by no fault of
        the user's, or of Spark's, is an `InternalError`, which says what to report. What fails for a reason outside is
        repeated as long as `patience` allows.
        """
        self.times.begin(number)
        try:
            self.patience.do(number, lambda: self._fold(batch, number))
        finally:
            self.times.end()

    def _fold(self, batch: DataFrame, number: int) -> None:
        if number == self.manifest.step:
            self.writer.check()
            self._commits.deliver(self.manifest, again=True)
            self._commits.clear(self.manifest)
            return
        if number != self.manifest.step + 1:
            raise CheckpointError(
                f"Spark is at batch {number}, but the newest manifest is of step {self.manifest.step}",
                place=self.folders.root,
                remedy="restore the lost folder, or begin with another checkpoint",
            )
        watch = Stopwatch()
        self._prepare(batch)
        with _reported(number):
            plan = self._plan()
            if not self._carries(plan):
                self._coming = plan.manifest
                raise OtherUnion
            batch.sparkSession.sparkContext.setJobDescription(described(number, plan.manifest.queries))
            watch.lap("plan")
            self._crash.reach("before_job", number)
            gathered = self._run(batch, plan)
            watch.lap("tasks")
            self._crash.reach("after_chunks", number)
            happened = self._commit(plan, gathered)
            watch.lap("commit")
        try:
            with watch.phase("sinks"):
                self._commits.deliver(self.manifest, again=gathered.again or self._attempts > 1)
        finally:
            time = timed(self.manifest, happened, watch, self._timing.interval)
            self.times.note(time)
            log_step(time, happened, self.manifest.job)
            warn_of_lost_rows(happened, self._warned, f"{self.folders.root}/late and dead_letters")
        self._attempts = 0
        self._timing = replace(self._timing, took=watch.seconds)

    def queries_to_come(self) -> list[Query]:
        """Bind every query that runs, is declared or waits in the command log, for the columns they read.

        A query whose subqueries are not queries yet is known from the step that would have begun it.
        """
        if self._coming is not None:
            return [query_of(entry) for entry in self._coming.queries.values()]
        running = [query_of(entry) for entry in self.manifest.queries.values()]
        waiting = (command for _, command in self.folders.commands.after(self.manifest.last_command))
        asked = [*self.declared.queries.values(), *(one for one in waiting if isinstance(one, AddQuery | ChangeQuery))]
        known = {query.text for query in running}
        return [*running, *self._bound({one.sql: one for one in asked if one.sql not in known}.values())]

    def streams_to_come(self) -> tuple[str, ...]:
        """Return the pushed streams that the next step knows."""
        return tuple((self._coming or self.manifest).pushed_streams)

    def _bound(self, commands: Iterable[AddQuery | ChangeQuery]) -> Iterator[Query]:
        for command in commands:
            try:
                yield bind_query(self.manifest, command.statement)
            except MidstreamError:
                continue  # The step will refuse it.

    def _prepare(self, batch: DataFrame) -> None:
        session = batch.sparkSession
        mark = str(session._jsparkSession.hashCode())
        if mark != self._prepared:
            for key, value in STEP_SETTINGS.items():
                session.conf.set(key, value)
            self._prepared = mark

    def _plan(self) -> StepPlan:
        # A step is planned once, unless the log has got commands since.
        waiting, known = WaitingCommands(self.outputs, self.manifest), self._planned
        if known is None or known.manifest.last_command != waiting.manifest.last_command:
            own: tuple[Command, ...] = () if self.reconciled else differences(self.manifest, self.declared)
            with fault_located(lambda: "the commands"):
                given = [*own, *waiting.commands]
                known = plan_step(waiting.manifest, given, self.store, self._timing, waiting.refuse)
            self._planned = known = replace(known, manifest=self.outputs.named(known.manifest))
        return known

    def _carries(self, plan: StepPlan) -> bool:
        # Without a new command the union carries what it carried before: every stream and column that the queries read.
        assert self.layout is not None
        if not plan.events:
            return True
        if not plan.manifest.pushed_streams.keys() <= set(self.layout.streams):
            return False
        queries = map(query_of, plan.manifest.queries.values())
        return self.layout.covers(needs(queries, plan.manifest.streams))

    def _idle(self) -> Gathered:
        outputs = {}
        for lane, state in self.manifest.lane_states.items():
            counted = tuple(key.operator for key in self.manifest.operators if key.group == lane.group)
            outputs[lane] = LaneOutput(state, {}, {}, {"": counted})  # In use, so that their counters are kept.
        return Gathered(StepOutputs(outputs, {name: Seen() for name in self.manifest.pushed_streams}))

    def _run(self, batch: DataFrame, plan: StepPlan) -> Gathered:
        assert self.layout is not None
        parallelism = batch.sparkSession.sparkContext.defaultParallelism
        large = self._rows_before >= LARGE
        with fault_located(lambda: "the exchange"):
            self._setting = setting_of(plan, self.layout, parallelism, large, self._setting)
        sources = partitions_of(batch)
        if not plan.events and sources == 0:
            return self._idle()
        setting = self._setting.in_tasks(self._worthwhile(plan, sources, parallelism))
        staging = self.outputs.stage(self.manifest, plan.manifest)
        writes = Writes(self.store, staging, self._crash, piece_writer.SIZES)
        if self._read is None:
            self._read = batch.sparkSession.sparkContext.accumulator(0, RowsRead(self._has_read))
        for attempt in range(1, ATTEMPTS + 1):
            self._attempts += 1
            self._read_before = self._read.value
            try:
                return SparkExecutor(self.manifest, plan, batch, setting, writes, parallelism, self._read).gather()
            except MidstreamError:
                raise
            except Exception as error:  # Spark's errors have no common class; a step is pure: any may be tried again.
                if (own := own_error(str(error), OF_SOURCES)) is not None:
                    raise own from error
                if attempt == ATTEMPTS or self.patience.stopping():
                    raise
        raise AssertionError

    def _worthwhile(self, plan: StepPlan, sources: int, parallelism: int) -> int:
        """Choose how many tasks run the lanes: no more than have as much to do as a task costs."""
        # A burst of rows comes in many partitions. Where tasks fetch states or have a limit, each holds few lanes.
        bounded = self.declared.limit is not None or not self.store.storage.renames_folders
        if self._worked is None or bounded or plan.spread_at(0):
            return parallelism
        return max(1, sources, math.ceil(self._worked / TASK_COSTS))

    def _has_read(self, rows: int) -> None:
        self.times.has_read(rows - self._read_before)

    def _commit(self, plan: StepPlan, gathered: Gathered) -> tuple[Event, ...]:
        with fault_located(lambda: "the conclusion"):
            after, happened = conclude_levels(self.manifest, plan, gathered.outputs, self.store)
        events = happened if self.patience.delayed is None else (self.patience.delayed, *happened)
        if any(gathered.cache):
            events = (ChunksFetched(after.step, *gathered.cache), *events)
        carried, copied = self._log.noted(after.step), self.outputs.dead_letter_sinks()
        published = Published(SPARK, self.declared.kept, gathered.files, spark=carried, dead_letter_sinks=copied)
        after = replace(after, published=published)
        self._commits.note(after, events)
        self._commits.publish(after)
        self.manifest, self.reconciled, self._coming, self.outputs.own = after, True, None, ()
        self._planned = None
        self._worked = gathered.worked or self._worked
        self._rows_before = sum(seen.rows for seen in gathered.outputs.seen.values())
        self.events.extend(events)
        with suppress(MidstreamError):  # The step is done.
            self._log.forget_old(after.step)
        return events


@contextmanager
def _reported(step: int) -> Iterator[None]:
    try:
        yield
    except InternalError as error:
        raise InternalError(error.message, place=f"step {step}, {error.place}", remedy=REPORT) from error.__cause__


def described(step: int, queries: Collection[str]) -> str:
    """Describe the jobs of a step for Spark's own pages.

    >>> described(7, ["pairs", "p", "q", "r", "s"])
    'midstream step 7: pairs, p, q and 2 more'
    """
    names = list(queries)
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"midstream step {step}: {', '.join(names[:FEW]) or 'no query'}{more}"


def partitions_of(batch: DataFrame) -> int:
    """Count the partitions of a micro-batch; this costs no Spark job."""
    logical: Any = batch._jdf.queryExecution().analyzed()
    return int(logical.rdd().getNumPartitions())
