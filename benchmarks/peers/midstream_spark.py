"""midstream on Spark: the same session, sources and kind of sink as Spark's own join."""

from __future__ import annotations

import midstream as ms
from benchmarks.measurement import Measurement, answer_of_files
from benchmarks.peers import Task
from benchmarks.peers.session import BatchWatch, session, source


def run(task: Task) -> Measurement:
    """Run the scenario as a job to its end."""
    scenario = task.scenario
    spark = session(task.work)
    watch = BatchWatch()
    spark.streams.addListener(watch)
    job = ms.Job(spark, checkpoint=str(task.work / "checkpoint"), lanes=2)
    for stream in scenario.streams:
        job.stream(stream, source(spark, task, stream), timestamp="ts")
    job.query("answer", scenario.midstream, sink=ms.sinks.files(str(task.work / "answer"), format="parquet"))
    job.start(trigger={"availableNow": True}).await_termination()
    batches = watch.batches()
    spark.stop()
    return Measurement("midstream_spark", scenario.name, batches, answer_of_files(task.work / "answer"))
