"""The Spark host: a job of the query, in the session and on the sources that Spark's own join has."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from benchmarks.measurement import answer_of_files
from benchmarks.peers import Task
from benchmarks.peers.session import batches_of, rows_by_step, session, source
from benchmarks.ring.contestants import Contestant, engine_for, spread_of, texts
from benchmarks.ring.load import Load
from benchmarks.ring.record import Record, measured
from benchmarks.ring.scenarios import QUERY, RingScenario
from midstream.model.events import StepDone

LANES = 2


def run(asked: RingScenario, contestant: Contestant, load: Load, folder: Path) -> Record:
    """Run the query as a job to its end."""
    scenario = asked.on("spark", load.quick)
    engine_for(asked, scenario, contestant)  # Raises what a job would be refused with, before it is started.
    scenario.write(folder / "in")
    spark = session(folder)
    try:
        task = Task(scenario, folder / "in", folder)
        job = ms.Job(spark, checkpoint=folder / "checkpoint", lanes=LANES)
        for stream in scenario.streams:
            job.stream(stream, source(spark, task, stream), timestamp="ts")
        for name, text in texts(asked, scenario, contestant).items():
            job.query(name, text, sink=ms.sinks.files(str(folder / name)), **spread_of(asked, contestant))
        live = job.start(trigger={"availableNow": True})
        if not live.await_termination(load.budget):
            live.stop()
            return Record.nothing(contestant, scenario.name, stopped=f"not done within {load.budget:g} s")
        batches = batches_of(live.query, rows_by_step(live.times))
        nodes = live.status()["queries"][QUERY].get("nodes")
        stages = stages_of_jobs(spark, str(live.query.runId))
        steps = [event for event in live.events if isinstance(event, StepDone) and any(event.rows_in.values())]
    finally:
        spark.stop()
    return Record(
        contestant, measured(contestant, scenario.name, batches, answer_of_files(folder / QUERY)),
        tuple(step.comparisons for step in steps), tuple(step.state_rows for step in steps),
        tuple(node["comparisons"] for node in nodes["work"]) if nodes else (), tuple(nodes["sent"]) if nodes else (),
        stages,
    )  # fmt: skip


def stages_of_jobs(spark: SparkSession, group: str) -> tuple[int, ...]:
    """How many stages each job of a group had, in order."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in sorted(tracker.getJobIdsForGroup(group))]
    return tuple(len(job.stageIds) for job in jobs if job is not None)
