"""On Spark: one job of all queries, against one streaming query of Spark's own join for each of them.

Both read the same files, one of each stream a step, keep a checkpoint, and write Parquet. A step is done when the last
query has committed it. The first steps (the history, and what warms up) are left out.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import midstream as ms
from benchmarks.measurement import answer_of_files
from benchmarks.peers.session import brought_rows
from benchmarks.sharing.pace import Pace
from benchmarks.sharing.record import OnSpark
from benchmarks.sharing.workload import SCHEMA, STREAMS, Feed, Workload

OURS, THEIRS = "one job of midstream", "separate Spark queries"
LANES = 2
SELECTIVITY = 0.00001
"""Rarer than in memory, for here it is rows that come in masses."""


@contextmanager
def session() -> Iterator[SparkSession]:
    """A session for both contenders."""
    from midstream.spark.session import local_session

    found = local_session("sharing", settings={"spark.driver.memory": "6g"})
    try:
        yield found
    finally:
        found.stop()


def write_input(folder: Path, pace: Pace) -> None:
    """A file a stream and step."""
    feed = Feed(pace.rate, SELECTIVITY)
    for number, seconds in enumerate(pace.ticks()):
        put(folder, number, feed.next(seconds))


def put(folder: Path, number: int, tables: Mapping[str, Any]) -> None:
    """A step's files, put in place at once."""
    for stream, table in tables.items():
        (folder / stream).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / f"{stream}.tmp")
    for stream in tables:
        (folder / f"{stream}.tmp").rename(folder / stream / f"{number:05d}.parquet")
    time.sleep(0.002)  # Spark takes files in order of modification, to the millisecond.


def compete(spark: SparkSession, counts: Sequence[int], pace: Pace, budget: float) -> Iterator[OnSpark]:
    """Both contenders for each number of queries; one that no longer keeps up goes no further."""
    out: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="midstream-sharing-") as name:
        folder = Path(name)
        write_input(folder / "in", pace)
        for count in counts:
            workload, found = Workload(count), list[OnSpark]()
            for contender in (OURS, THEIRS):
                if contender in out:
                    continue
                done = _run(spark, contender, workload, folder, pace, budget)
                if done.stopped:
                    out[contender] = done.stopped
                found.append(done)
            if len(found) == 2 and not found[1].seconds:
                yield found[0]
                yield found[1]
                continue
            marks = {(done.results, done.mark) for done in found}
            yield from (replace(done, wrong="" if len(marks) == 1 else "the two answers differ") for done in found)


def _run(spark: SparkSession, contender: str, workload: Workload, folder: Path, pace: Pace, budget: float) -> OnSpark:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    begin = time.monotonic()
    run = _ours if contender == OURS else _theirs
    ends = run(spark, workload, folder / "in", work, begin + budget)
    steps = len(pace.ticks())
    said = OnSpark(contender, workload.queries, pace.tick, pace.rate)
    if len(ends) < steps:
        return replace(said, stopped=f"not done within {budget:g} s ({len(ends)} of {steps} steps)")
    seconds = tuple(b - a for a, b in zip(ends[-pace.measured - 1 :], ends[-pace.measured :], strict=False))
    answer = answer_of_files(work / "answer")
    done = replace(said, seconds=seconds, results=answer.rows, mark=answer.mark)
    return done if done.keeps_up else replace(done, stopped="does not keep up")


def source(spark: SparkSession, folder: Path, stream: str) -> Any:
    """A stream: one file, that is one step, at a time."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / stream))


def _ours(spark: SparkSession, workload: Workload, files: Path, work: Path, deadline: float) -> list[float]:
    """When each step was committed, by one job that shares."""
    job = ms.Job(spark, checkpoint=work / "checkpoint", lanes=LANES)
    for stream in STREAMS:
        job.stream(stream, source(spark, files, stream), timestamp="ts")
    for name, sql in workload.sqls().items():
        job.query(name, sql, sink=ms.sinks.files(work / "answer" / name))
    run = job.start(trigger={"availableNow": True})
    try:
        run.await_termination(max(deadline - time.monotonic(), 0.1))
    finally:
        run.stop()
    return _ends([run.query.recentProgress])


def _theirs(spark: SparkSession, workload: Workload, files: Path, work: Path, deadline: float) -> list[float]:
    """When each step was committed by the last of all, by one streaming query for each member."""
    queries = []
    for (name, _), window in zip(workload.sqls().items(), workload.windows(), strict=True):
        sides = [
            source(spark, files, s).withWatermark("ts", "0 seconds").select("id", "k", "ts").alias(s) for s in STREAMS
        ]
        within = f"A.ts BETWEEN B.ts - INTERVAL {window} MICROSECONDS AND B.ts + INTERVAL {window} MICROSECONDS"
        joined = sides[0].join(sides[1], on=_condition(f"A.k = B.k AND {within}"))
        answer = joined.selectExpr("A.id AS a", "B.id AS b", "greatest(A.ts, B.ts) AS _ts")
        writer = answer.writeStream.format("parquet").option("path", str(work / "answer" / name))
        writer = writer.option("checkpointLocation", str(work / "checkpoints" / name))
        queries.append(writer.trigger(availableNow=True).start())
    try:
        for query in queries:
            query.awaitTermination(max(deadline - time.monotonic(), 0.1))
    finally:
        for query in queries:
            query.stop()
    return _ends([query.recentProgress for query in queries])


def _condition(text: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(text)


def _ends(progresses: Sequence[Sequence[Any]]) -> list[float]:
    """When the last of several streaming queries had committed each batch of rows that all of them have done."""
    ends = []
    for progress in progresses:
        own = {}
        for told in progress:
            if brought_rows(told):
                begin = datetime.fromisoformat(told.timestamp.replace("Z", "+00:00")).timestamp()
                own[told.batchId] = begin + told.durationMs["triggerExecution"] / 1000
        ends.append([own[number] for number in sorted(own)])
    return [max(step) for step in zip(*ends, strict=False)]
