"""The Spark host: a job that reads files; those of a step are put in place once it has done the step before."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import midstream as ms
from benchmarks.optimizer.contestants import Contestant
from benchmarks.optimizer.course import LEAD, Course
from benchmarks.optimizer.review_time import review_time
from benchmarks.optimizer.trace import Answers, Trace, reviews_in, switches_in, work_of
from benchmarks.plan_change.spark_files import Inbox
from midstream.model.counters import Counters
from midstream.model.events import StepDone
from midstream.spark.running_job import Run

LANES, PATIENCE, POLL = 2, 120.0, 0.005
"""Lanes of the job, and the seconds that a step may take, and between two looks at whether it is done."""


def run(course: Course, contestant: Contestant, spark: SparkSession, folder: Path) -> Trace:
    """Run a contestant; the wall clock of its steps stands for processor time, most of which is that of workers."""
    inbox, given = Inbox(folder / "in"), 0
    inbox.put({stream: table.slice(0, 0) for stream, table in course.rows.tables.items()})
    live = _job(course, contestant, spark, folder).start()
    waiting, seconds, done, made = dict(contestant.changes), list[float](), [0.0], [0]
    try:
        with review_time() as reviewing:
            for number, tables in enumerate(course.steps()):
                if number in waiting:
                    live.migrate(LEAD, waiting[number], strategy="auto", together=course.scenario.queries > 1)
                begun = time.perf_counter()
                inbox.put(tables)
                given += sum(table.num_rows for table in tables.values())
                _await(live, given)
                seconds.append(time.perf_counter() - begun)
                done.append(work_of(Counters(**live.status()["counters"])))
                made.append(sum(sum(event.rows_out.values()) for event in _steps(live)))
    finally:
        live.stop()
    work = tuple(after - before for before, after in pairwise(done))
    answers = Answers()
    answers.keep(_answer(folder / "answers" / name, list(course.rows.tables)) for name in course.sqls)
    results = tuple(after - before for before, after in pairwise(made))
    return Trace(
        work, tuple(seconds), results, sum(seconds), reviewing.seconds, reviews_in(live.events),
        switches_in(live.events), live.status()["queries"][LEAD]["plan"], answers.mark,
    )  # fmt: skip


def _job(course: Course, contestant: Contestant, spark: SparkSession, folder: Path) -> ms.Job:
    job = ms.Job(spark, checkpoint=folder / "checkpoint", lanes=LANES)
    for stream, table in course.rows.tables.items():
        keys = [f"{name} BIGINT" for name in table.column_names if name != "ts"]
        reader = spark.readStream.schema(", ".join([*keys, "ts TIMESTAMP"]))
        frame = reader.parquet(str(folder / "in" / stream))
        job.stream(stream, frame, timestamp="ts", idle_timeout=course.idle_timeout)
    for name, sql in course.sqls.items():
        job.query(name, sql, plan=contestant.plan, sink=ms.sinks.files(folder / "answers" / name))
    if contestant.kind == "policy":
        return job.optimize(policy=contestant.name, mode="auto", review=round(course.load.review * 1e6))
    return job.optimize(mode="off")


def _steps(live: Run) -> list[StepDone]:
    return [event for event in live.events if isinstance(event, StepDone)]


def _await(live: Run, rows: int) -> None:
    """Wait until the steps have taken in so many rows."""
    end = time.monotonic() + PATIENCE
    while sum(sum(event.rows_in.values()) for event in _steps(live)) < rows:
        live.await_termination(POLL)  # Raises what the job failed with.
        if time.monotonic() > end:
            raise TimeoutError(f"the job is stuck: {live.status()['last_step']}")


def _answer(folder: Path, streams: list[str]) -> pa.Table:
    """All results of a query."""
    names = [*(stream.lower() for stream in streams), "_ts"]
    return pa.concat_tables([pq.read_table(file).select(names) for file in sorted(folder.rglob("*.parquet"))])
