"""A running job: the commands it takes, how it stands, how it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from midstream.checkpoint.reader import send, status, upcoming
from midstream.checkpoint.report import report
from midstream.checkpoint.writer import Writer
from midstream.commands.add_query import AddQuery
from midstream.commands.add_stream import AddStream
from midstream.commands.base import StepCommand
from midstream.commands.controls import Controls
from midstream.commands.stop import Stop
from midstream.dashboard.server import ShowsDashboard
from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.errors import (
    CheckpointError,
    InputError,
    LostCheckpointError,
    MidstreamError,
    ReadError,
    WriteError,
)
from midstream.model.events import ChunksFetched, Event, StepDelayed, StepDone
from midstream.model.lane_choice import StepTiming
from midstream.model.manifest import Manifest
from midstream.model.step_time import StepTime, StepUnderWay, time_summary
from midstream.pipeline.crash_points import CrashPoint
from midstream.pipeline.journal import log_command, log_failure
from midstream.pipeline.outputs import Outputs
from midstream.pipeline.patience import Patience
from midstream.pipeline.reconcile import Declared, differences
from midstream.pipeline.reported import Reported
from midstream.pipeline.static_tables import TableControl, set_table
from midstream.sinks import Sink, as_sink
from midstream.spark.driver import Driver, OtherUnion
from midstream.spark.feed import Feed, last_progress
from midstream.spark.job_streams import declared_stream, rows_of_frame
from midstream.spark.result_frames import stream_of
from midstream.spark.session import as_spark_error
from midstream.state.chunk_store import ChunkStore
from midstream.storage.files import FileStore

_LONG = 3_600_000
_LISTENS_EVERY, _LISTENS_EVERY_FAR = 1.0, 5.0
_INTERRUPTED = "py4j.protocol.Py4JJavaError: An error occurred while calling java.lang.InterruptedException"


class Interrupted(Exception):
    """A micro-batch was left undone because its query is being stopped.

    By its words Spark knows a query that was stopped from one that failed.
    """


class Run(Controls[int], TableControl[int], Reported, ShowsDashboard):
    """A started job; a method that gives a command returns its number in the command log.

    It runs until it is stopped, fails, or (with the trigger `availableNow`) has read all its input.
    """

    def __init__(
        self,
        feed: Feed,
        writer: Writer,
        manifest: Manifest,
        declared: Declared,
        outputs: Outputs,
        patience: int,
    ) -> None:
        self._feed = feed
        crash = CrashPoint.of_environment(feed.jvm_process, os.getpid())
        timing = StepTiming(feed.workers, None, feed.interval)
        self._driver = Driver(
            writer, manifest, declared, outputs, Patience(patience, lambda: self.is_stopping), feed.log, crash, timing
        )
        self._error: BaseException | None = None
        self._stopping = self._widening = False
        self._started, self._ended, self._busy = threading.Event(), threading.Event(), threading.Lock()
        self._query = self._start()
        threading.Thread(target=self._watch, name="midstream", daemon=True).start()
        threading.Thread(target=self._listen, name="midstream stop", daemon=True).start()

    def stream(
        self,
        name: str,
        df: DataFrame,
        timestamp: str,
        lateness: str | int = 0,
        idle_timeout: str | int | None = None,
        schema: pa.Schema | str | None = None,
        unit: str | None = None,
        max_ahead: str | int | None = None,
        dead_letters: Sink | Mapping[str, Any] | None = None,
    ) -> int:
        """Add a stream to the job, beginning with the next step, with the arguments of `Job.stream`.

        Declare the stream in the program too, before you start the job again.
        """
        if name in self._driver.manifest.streams:
            raise InputError(f"there is already a stream {name!r}", place=f"stream {name}", remedy="use another name")
        added = declared_stream(name, df, timestamp, lateness, idle_timeout, schema, unit, max_ahead)
        before, outputs = self._feed, self._driver.outputs
        sinks = outputs.dead_letters
        self._feed = replace(before, streams=(*before.streams, added))
        try:
            if dead_letters is not None:
                sink = as_sink(dead_letters, "")
                sink.open()
                outputs.dead_letters = {**sinks, name: sink}  # A step may read the old ones meanwhile.
            return self._command(AddStream(added.schema))
        except BaseException:
            self._feed, outputs.dead_letters = before, sinks
            raise

    def results(self, query: str, **options: str | int) -> DataFrame:
        """Return a query's results as a streaming DataFrame, for another job: each row exactly once.

        The query's sink must write Parquet files; see `midstream.results_stream`.
        """
        driver = self._driver
        waiting = driver.folders.commands.after(driver.manifest.last_command)
        added = {command.query: command for _, command in waiting if isinstance(command, AddQuery)}
        declared = {} if driver.reconciled else driver.declared.queries
        session = self._feed.session
        return stream_of(session, driver.folders, driver.manifest, query, {**declared, **added}, options)

    def status(self) -> dict[str, Any]:
        """Return the status of the job as JSON values."""
        manifest = self._driver.manifest
        waiting = self._driver.folders.commands.after(manifest.last_command)
        steps = [encode(event) for event in self.events if isinstance(event, StepDone)]
        delayed = {} if self.delayed is None else {"delayed": encode(self.delayed)}
        fetched = [event for event in self.events if isinstance(event, ChunksFetched)]
        cache = {"cache": encode(fetched[-1])} if fetched else {}
        time = {"time": time_summary(self.times)}
        return {"state": self.state, **delayed, **status(report(manifest), waiting, *steps[-1:]), **cache, **time}

    @property
    def times(self) -> tuple[StepTime, ...]:
        """Return the times of the newest 500 steps since this run began, by phase, oldest first."""
        return self._driver.times.newest

    @property
    def under_way(self) -> StepUnderWay | None:
        """The step that has begun and not ended."""
        return self._driver.times.under_way

    @property
    def state(self) -> str:
        """`running`, `stopped`, `failed` or `finished`."""
        if not self._ended.is_set():
            return "running"
        if self._error is not None:
            return "failed"
        return "stopped" if self._stopping else "finished"

    @property
    def not_applied(self) -> tuple[Command, ...]:
        """Return the declared changes that do not run yet, and the commands that wait in the log.

        The next batch with data applies them, because without one Spark does no step.
        """
        driver = self._driver
        waiting = [one for _, one in driver.folders.commands.after(driver.manifest.last_command)]
        # A `stop` is for this run alone; the next one does not stop for it.
        return (*self._ahead(), *(one for one in waiting if not isinstance(one, Stop)))

    @property
    def delayed(self) -> StepDelayed | None:
        """The step that fails at present and is repeated: why it fails, and how often it ran."""
        return self._driver.patience.delayed

    @property
    def events(self) -> tuple[Event, ...]:
        """All events since this run began, in order."""
        return tuple(self._driver.events)

    @property
    def query(self) -> StreamingQuery:
        """Spark's streaming query."""
        return self._query

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds, and return whether the job has ended.

        Raises the error if the job has failed.
        """
        ended = self._ended.wait(timeout)
        if ended and self._error is not None:
            raise self._error
        return ended

    def stop(self) -> None:
        """Stop the job after the current step."""
        self._stopping = True
        with self._busy:
            self._stop_query()
        self._ended.wait()

    @property
    def is_stopping(self) -> bool:
        """Return whether the job is ending, or its query is being replaced by a wider one."""
        return self._stopping or self._widening or self._error is not None

    def _runs(self) -> bool:
        return not self._ended.is_set()

    def _shown(self) -> Manifest:
        return self._driver.manifest

    def _stored(self) -> tuple[Manifest, ChunkStore]:
        return self._driver.manifest, self._driver.store

    def _set_table(self, name: str, rows: Any) -> int:
        driver = self._driver
        given, chunks = rows_of_frame(rows, f"table {name}"), FileStore(driver.folders.chunks)
        with driver.folders.commands.bringing():
            known = upcoming(driver.manifest, driver.folders, self._ahead()).tables
            return self._command(set_table(name, given, known, chunks, driver.manifest.step))

    def _ahead(self) -> tuple[Command, ...]:
        # The next step will change what the job declares otherwise than it runs.
        driver = self._driver
        return () if driver.reconciled else differences(driver.manifest, driver.declared)

    def _checkpoint_url(self) -> str:
        return self._driver.folders.root

    def _add(self, query: AddQuery, sink: Any) -> int:
        meant = self._driver.folders.sink(query.query, sink)
        with self._driver.outputs.adding(query.query, meant):
            return self._command(query.like(sink=meant.to_json()))

    def _command(self, command: StepCommand) -> int:
        driver = self._driver
        if self._ended.is_set() and self._error is not None:
            raise CheckpointError(
                f"the job has failed and takes no command: {self._error}",
                place=driver.folders.root,
                remedy="remove the cause and start the job again; then give the command",
            ) from self._error
        number, logged = send(driver.manifest, driver.folders, command, self._ahead())
        log_command(logged, driver.manifest.step, number, driver.manifest.job)
        return number

    def _start(self) -> StreamingQuery:
        feed = self._feed.of(self._driver.streams_to_come())
        union = feed.union(self._driver.queries_to_come())
        self._driver.layout = union.layout
        self._started.clear()
        feed.log.fit(feed.sources(union.frame))
        query = feed.start(union.frame, self._fold)
        self._query = query
        self._started.set()
        return query

    def _fold(self, batch: DataFrame, number: int) -> None:
        try:
            if self._enter():
                try:
                    self._amend_times()
                    self._driver.fold(batch, number)
                finally:
                    self._busy.release()
                if self.stop_requested:
                    threading.Thread(target=self.stop, daemon=True).start()
                return
        except OtherUnion:
            self._widening = True
        except (ReadError, WriteError, OSError) as error:
            if not self._stopping:  # Else the next start does the step that could not be done.
                self._error = error
        except BaseException as error:
            self._error = error
        threading.Thread(target=self._stop_query, daemon=True).start()
        jvm: Any = self._feed.session._jvm
        with suppress(Exception):  # Spark interrupts the sleep when it stops the query.
            jvm.java.lang.Thread.sleep(_LONG)
        raise Interrupted(_INTERRUPTED)

    def _amend_times(self) -> None:
        # Spark reports on a step only once it is over.
        with suppress(Exception):  # No step waits for what the JVM answers.
            told = last_progress(self._query, list(self._driver.manifest.pushed_streams))
            if told is not None:
                self._driver.times.amend(told.number, told.phases, told.backlog)

    def _enter(self) -> bool:
        # The thread that stops the job must not be waited for.
        while not self.is_stopping:
            if self._busy.acquire(timeout=0.05):
                return True
        return False

    def _stop_query(self) -> None:
        self._started.wait()
        with suppress(Exception):
            self._query.stop()

    def _listen(self) -> None:
        # A job without new rows does no step that would take the command.
        folders, epoch = self._driver.folders, self._driver.writer.claim.number
        every = _LISTENS_EVERY_FAR if folders.is_remote else _LISTENS_EVERY
        while not self._ended.wait(every):
            with suppress(MidstreamError, OSError):
                waiting = folders.commands.after(self._driver.manifest.last_command)
                if any(isinstance(command, Stop) and command.epoch == epoch for _, command in waiting):
                    self.stop()

    def _watch(self) -> None:
        try:
            self._follow()
        finally:  # Somebody may be waiting for the end, of any kind.
            self._ended.set()

    def _follow(self) -> None:
        # A query that is too narrow is replaced; the checkpoint is released once the query has ended.
        while True:
            failure: BaseException | None = None
            try:
                self._query.awaitTermination()
            except Exception as error:
                failure = error
            if not self._widening or self._stopping or self._error is not None:
                break
            self._widening = False
            try:
                self._start()
            except Exception as error:
                failure = error
                break
        if self._error is None and not self._stopping:
            self._error = failure
        if self._error is not None:
            self._error = as_spark_error(self._error, f"step {self._driver.manifest.step + 1}")
        self._let_go()
        if self._error is not None:
            log_failure(self._error, self._driver.manifest.step + 1, self._driver.manifest.job)

    def _let_go(self) -> None:
        # If the job has lost the checkpoint, that is the reason for its end, of any kind.
        writer = self._driver.writer
        self._amend_times()
        self._driver.times.write()
        self._driver.outputs.close(self._driver.manifest)
        try:
            if self._error is not None:
                writer.check()
            writer.release(self._error)
        except LostCheckpointError as lost:
            if not isinstance(self._error, LostCheckpointError):
                lost.__cause__ = self._error
                self._error = lost
        except (ReadError, WriteError) as error:
            if not self._stopping:  # Else the next start finds that this process has ended, or is told to take over.
                self._error = self._error or error
        except MidstreamError as error:
            self._error = self._error or error
