"""midstream on Spark: the same session, sources and kind of sink as Spark's own join."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

import midstream as ms
from benchmarks.measurement import Measurement, answer_of_files
from benchmarks.peers import Task
from benchmarks.peers.session import batches_of, rows_by_step, session, source
from midstream.embedded.folder_source import FolderSource
from midstream.spark.whole_files import WholeFiles
from tests.object_server import BUCKET, ObjectServer, free_port


def run(task: Task) -> Measurement:
    """Run the scenario as a job to its end, its checkpoint on the local disk."""
    return _run(task, "midstream_spark", str(task.work / "checkpoint"))


def unsynced(task: Task) -> Measurement:
    """The same, but a loss of power may lose what a step has done."""
    return _run(task, "midstream_spark_unsynced", str(task.work / "checkpoint"), durable=False)


def of_a_folder(task: Task) -> Measurement:
    """The same, but tasks read the files by themselves, as those of a folder that a job file names."""
    return _run(task, "midstream_spark_folder", str(task.work / "checkpoint"), sources=_folder)


def on_an_object_store(task: Task) -> Measurement:
    """The same with the checkpoint on an S3 server on this machine, over HTTP."""
    server = ObjectServer(free_port())
    server.start()
    try:
        os.environ.update(server.environment, MIDSTREAM_CACHE=str(task.work / "cache"), MIDSTREAM_WORK=str(task.work))
        return _run(task, "midstream_s3", f"s3://{BUCKET}/checkpoint", lambda steps: _requests(server, steps))
    finally:
        server.stop()


def _folder(spark: SparkSession, task: Task, stream: str) -> WholeFiles:
    path = str(task.source / stream)
    source = FolderSource(path, "parquet", task.scenario.schema(stream), {})
    return WholeFiles.of(spark, source, path, {"maxFilesPerTrigger": "1"})


def _run(task: Task, peer: str, checkpoint: str, notes: Any = None, **options: Any) -> Measurement:
    spark = session(task.work)
    try:
        measured = run_in(spark, task, peer, checkpoint, **options)
    finally:
        spark.stop()
    return replace(measured, notes=notes(len(measured.batches))) if notes else measured


def run_in(
    spark: SparkSession,
    task: Task,
    peer: str,
    checkpoint: str,
    *,
    durable: bool = True,
    lanes: int = 2,
    sources: Callable[[SparkSession, Task, str], Any] = source,
) -> Measurement:
    """Run the scenario in a session that others may use before and after."""
    scenario = task.scenario
    job = ms.Job(spark, checkpoint=checkpoint, lanes=lanes, durable=durable)
    for stream in scenario.streams:
        schema = None if sources is source else scenario.schema(stream)
        job.stream(stream, sources(spark, task, stream), timestamp="ts", schema=schema)
    for name, static in scenario.tables.items():
        job.table(name, static)
    for name, sql in scenario.queries.items():
        job.query(name, sql, sink=ms.sinks.files(str(task.work / "answers" / name), format="parquet"))
    live = job.start(trigger={"availableNow": True})
    live.await_termination()
    batches = batches_of(live.query, rows_by_step(live.times))
    answer = answer_of_files(task.work / "answers" / list(scenario.queries)[-1], by_value=scenario.by_value)
    return Measurement(peer, scenario.name, batches[: scenario.batches], answer)


def _requests(server: ObjectServer, steps: int) -> Mapping[str, Any]:
    """How many requests of each kind a step made, starting and ending the job included."""
    counted = Counter(request.kind for request in server.requests())
    return {"requests a step": {kind: round(times / steps, 1) for kind, times in sorted(counted.items())}}
