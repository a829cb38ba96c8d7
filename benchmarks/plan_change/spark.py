"""The Spark host: a job that reads files as they arrive; a thread writes what the schedule releases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import midstream as ms
from benchmarks.peers.session import brought_rows
from benchmarks.plan_change.clock import Clock
from benchmarks.plan_change.contestants import RESTART
from benchmarks.plan_change.rows import Counts
from benchmarks.plan_change.spark_files import Inbox, answer
from benchmarks.plan_change.task import QUERY, Task
from benchmarks.plan_change.trace import Recorder, Trace
from midstream.model.events import StepDone

LANES, PATIENCE = 2, 120.0
POLL = 0.005


def run(task: Task, spark: SparkSession, folder: Path) -> Trace:
    """Run a contestant on the wall clock."""
    live = Live(task, spark, folder)
    try:
        live.go()
    finally:
        live.stop()
    return live.trace()


@dataclass
class Incarnation:
    """One job of a run: a restart makes another, which is given rows that had been taken in `before`."""

    folder: Path
    inbox: Inbox
    run: Any
    before: Counts
    replayed_from: Counts

    def consumed(self) -> Counts:
        """How many rows of each stream have been taken in, by this job or before it.

        The replay lies there when the job starts, so its first step takes all of it; a job that was stopped before its
        first step has added nothing.
        """
        counts = dict(self.replayed_from)
        for event in self.run.events:
            if isinstance(event, StepDone):
                for stream, rows in event.rows_in.items():
                    counts[stream] += rows
        return {stream: max(count, self.before[stream]) for stream, count in counts.items()}


@dataclass
class Live:
    """A run under way: this thread asks for changes, another one hands rows over."""

    task: Task
    spark: SparkSession
    folder: Path
    asked: list[float] = field(default_factory=list)
    jobs: list[Incarnation] = field(default_factory=list)
    progress: list[list[Any]] = field(default_factory=list)

    def go(self) -> None:
        """From the first row to the last result."""
        task, rows = self.task, self.task.rows
        none = dict.fromkeys(rows.tables, 0)
        self._begin(task.start, none, none)
        self._sent = none
        for _, arrived in task.history():
            self._send(arrived)
            self._await(arrived)
        self._clock = Clock(task.begin, source=time.time)
        self._lock, self._over = threading.Lock(), threading.Event()
        feeder = threading.Thread(target=self._feed, name="feeder", daemon=True)
        feeder.start()
        try:
            for at, plan in task.changes:
                self._clock.wait_until(at)
                self.asked.append(self._clock.now())
                self._change(plan)
            self._await(task.end)
            for arrived in task.epilogue():
                self._send(arrived)
                self._await(arrived)
            self._until(self._reported)
        finally:
            self._over.set()
            feeder.join()

    def stop(self) -> None:
        """End the job, if one runs."""
        if self.jobs and self.jobs[-1].run.state == "running":
            self._stop_last()

    def _stop_last(self) -> None:
        last = self.jobs[-1].run
        last.stop()
        self.progress.append(list(last.query.recentProgress))

    def _begin(self, plan: str, replayed_from: Counts, before: Counts) -> None:
        folder = self.folder / f"job{len(self.jobs)}"
        inbox = Inbox(folder / "in")
        inbox.put(self.task.rows.between(replayed_from, before))
        job = ms.Job(self.spark, checkpoint=folder / "checkpoint", lanes=LANES)
        for stream, table in self.task.rows.tables.items():
            keys = [f"{name} BIGINT" for name in table.column_names if name != "ts"]
            reader = self.spark.readStream.schema(", ".join([*keys, "ts TIMESTAMP"]))
            job.stream(stream, reader.parquet(str(folder / "in" / stream)), timestamp="ts")
        job.query(QUERY, self.task.sql, plan=plan, sink=ms.sinks.files(folder / "answer"))
        self.jobs.append(Incarnation(folder, inbox, job.start(), dict(before), dict(replayed_from)))

    def _change(self, plan: str) -> None:
        contestant, load = self.task.contestant, self.task.load
        if contestant.strategy == RESTART:
            with self._lock:  # Rows wait until the new job has its folders, as they would in any log.
                self._stop_last()
                taken = self.jobs[-1].consumed()
                self._begin(plan, self.task.rows.still_in_window(taken, load.window), taken)
                self._sent = taken
                self._send(self._arrived(self._clock.now()))
            return
        self.jobs[-1].run.migrate(QUERY, plan, strategy=contestant.strategy, **contestant.options)

    def _feed(self) -> None:
        due, end = self.task.begin, self.task.end
        while self._sent != end and not self._over.is_set():
            due += self.task.load.tick
            self._clock.wait_until(due)
            with self._lock:
                self._send(self._arrived(due))

    def _arrived(self, now: float) -> Counts:
        return {stream: min(self.task.end[stream], count) for stream, count in self.task.rows.arrived(now).items()}

    def _send(self, upto: Counts) -> None:
        upto = {stream: max(count, self._sent[stream]) for stream, count in upto.items()}
        self.jobs[-1].inbox.put(self.task.rows.between(self._sent, upto))
        self._sent = upto

    def _await(self, counts: Counts) -> None:
        """Wait until the steps have taken in so many rows."""
        self._until(lambda: self.jobs[-1].consumed() == counts)

    def _until(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not reached():
            self.jobs[-1].run.await_termination(POLL)  # Raises what the job failed with.
            if time.monotonic() > end:
                raise TimeoutError(f"the job is stuck: {self.jobs[-1].run.status()['last_step']}")

    def _reported(self) -> bool:
        """Whether Spark has told what the last step took."""
        steps = [event.step for event in self.jobs[-1].run.events if isinstance(event, StepDone)]
        told = self.jobs[-1].run.query.lastProgress
        return told is not None and told.batchId >= max(steps, default=0)

    def trace(self) -> Trace:
        """What happened, once it is over: the sinks' folders and the events tell."""
        recorder, last = Recorder(asked=self.asked), 0.0
        for number, (job, progress) in enumerate(zip(self.jobs, self.progress, strict=True)):
            took = {told.batchId: told.durationMs["triggerExecution"] / 1000 for told in progress if brought_rows(told)}
            at: dict[int, float] = {}
            for event in job.run.events:
                if isinstance(event, StepDone) and (rows := sum(event.rows_in.values())):
                    results, out = answer(job.folder / "answer" / f"step={event.step:08d}", list(self.task.rows.tables))
                    at[event.step] = last = self._clock.at(out) if out else last
                    seconds = took.get(event.step, 0.0)
                    recorder.keep(last, seconds, results, rows, event.comparisons, event.state_rows, job.before)
                    if number > 0 and len(at) == 1:  # The first step of a restart is the replay.
                        recorder.extra += event.comparisons
                        recorder.alone = last
            recorder.migrated(job.run.events, at.get)
        if self.jobs[-1].run.status()["queries"][QUERY]["migration"] is not None:
            recorder.alone = None
        return recorder.trace()
