"""How long processors wait in the steps of a ring on Spark: `python -m benchmarks.ring.idle [--rows 1000]`.

Prints for each scheme the share of the processors' time in which no task runs, of the time that a step's stages take
(tasks wait for the longest of their stage) and of all the time from the first steady step to the end of the last.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import midstream as ms
from benchmarks.peers import Task
from benchmarks.peers.session import session, source
from benchmarks.ring.contestants import Contestant, spread_of, texts
from benchmarks.ring.scenarios import SCENARIOS
from benchmarks.ring.spark import LANES

SCHEMES, NODES, PROCESSORS = ("psp", "psp_i", "psp_d"), 4, 2
ASKED = SCENARIOS["great_circle_3"]
FILLING = 3
"""Steps until the windows are full, which are left out."""


@dataclass(frozen=True)
class SparkJobTime:
    """When Spark's job of a step began and ended, and how long its tasks ran, in milliseconds."""

    begun: int
    ended: int
    ran: int


def measured(scheme: str, rows: int) -> tuple[float, float]:
    """Return the idle share of the processors in the stages of steps, and in all."""
    contestant = Contestant(scheme, nodes=NODES)
    scenario = replace(ASKED.on("spark", quick=False), rows=rows)
    with tempfile.TemporaryDirectory(prefix="midstream-idle-") as place:
        folder = Path(place)
        scenario.write(folder / "in")
        spark = session(folder)
        try:
            job = ms.Job(spark, checkpoint=folder / "checkpoint", lanes=LANES)
            for stream in scenario.streams:
                job.stream(stream, source(spark, Task(scenario, folder / "in", folder), stream), timestamp="ts")
            for name, text in texts(ASKED, scenario, contestant).items():
                job.query(name, text, sink=ms.sinks.files(str(folder / name)), **spread_of(ASKED, contestant))
            live = job.start(trigger={"availableNow": True})
            live.await_termination()
            jobs = times_of_jobs(spark, str(live.query.runId))[FILLING:]
        finally:
            spark.stop()
    ran = sum(one.ran for one in jobs)
    stages, whole = sum(one.ended - one.begun for one in jobs), jobs[-1].ended - jobs[0].begun
    return 1 - ran / (PROCESSORS * stages), 1 - ran / (PROCESSORS * whole)


def times_of_jobs(spark: SparkSession, group: str) -> list[SparkJobTime]:
    """What Spark's store knows of the jobs of a group, in order."""
    context: Any = spark.sparkContext
    inside = context._jsc.sc()
    inside.listenerBus().waitUntilEmpty()
    store, found = inside.statusStore(), []
    for number in sorted(context.statusTracker().getJobIdsForGroup(group)):
        job, stages = store.job(number), context.statusTracker().getJobInfo(number).stageIds
        ran = sum(store.lastStageAttempt(stage).executorRunTime() for stage in stages)
        found.append(SparkJobTime(job.submissionTime().get().getTime(), job.completionTime().get().getTime(), ran))
    return found


def main() -> None:
    """Measure one scheme after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000, help="of each stream in a step")
    rows = parser.parse_args().rows
    for scheme in SCHEMES:
        stages, whole = measured(scheme, rows)
        print(f"{scheme:6} {NODES} nodes, {PROCESSORS} processors: {stages:.0%} in stages, {whole:.0%} in all")


if __name__ == "__main__":
    main()
