"""midstream as it was before joins could be spread over nodes: what spreads must be faster than.

The sources of that commit are taken out of the repository's history and run in another process, on the same Spark,
numpy and Arrow and by the same environment as everyone else. As they do, it does a small job in its session first.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.history import environment, take_out
from benchmarks.measurement import Measurement, answer_of_files
from benchmarks.peers import Task
from benchmarks.peers.session import batches_of, session, source

COMMIT = "d4b7faed43e3"
"""The last commit before the first of spreads, of 2026-11-22."""


def run(task: Task) -> Measurement:
    """Run the scenario by the sources of that commit; raises `MidstreamError` where they are not in the history."""
    former, asked, told = (task.work / name for name in ("former", "task", "measured.json"))
    take_out(COMMIT, former)
    asked.write_bytes(pickle.dumps(task))
    command = [sys.executable, "-m", "benchmarks.peers.former_lane", str(asked), str(told)]
    done = subprocess.run(command, cwd=task.work, env=environment(former), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"midstream of {COMMIT} ended with {done.returncode}: {done.stderr[-2000:]}")
    return Measurement.from_json(json.loads(told.read_text()))


def _job(spark: SparkSession, task: Task) -> Measurement:
    """Run the scenario by whatever midstream this process has, as its users did then."""
    import midstream as ms

    job = ms.Job(spark, checkpoint=task.work / "checkpoint", lanes=2)
    for stream in task.scenario.streams:
        job.stream(stream, source(spark, task, stream), timestamp="ts")
    job.query("answer", task.scenario.midstream, sink=ms.sinks.files(str(task.work / "answer")))
    live = job.start(trigger={"availableNow": True})
    live.await_termination()
    batches = batches_of(live.query)
    answer = answer_of_files(task.work / "answer")
    return Measurement("former_lane", task.scenario.name, batches[: task.scenario.batches], answer)


def main() -> None:
    """Run a task, as the process that `run` begins."""
    asked, told = map(Path, sys.argv[1:])
    task, warm = pickle.loads(asked.read_bytes()), asked.parent / "warm"
    small = Task(task.scenario.quick(), warm / "in", warm)
    small.scenario.write(small.source)
    spark = session(task.work)
    try:
        _job(spark, small)
        told.write_text(json.dumps(_job(spark, task).to_json()))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
