"""What steps of four fixed workloads ask of Spark: its jobs, stages and tasks a step. They must not grow unnoticed.

`MIDSTREAM_COUNTS=write pytest` of this file records them anew, and the change is then to be seen in the file beside
this one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import midstream as ms
from tests.spark.test_blocks import QUERIES, fill, frame

RECORD = Path(__file__).with_name("job_counts.json")

BEFORE, UP_TO = 3, 7
"""Jobs of so many steps are compared: the difference is that of steady steps, whatever a start asks of Spark."""


@dataclass(frozen=True)
class Workload:
    """Queries over Parquet files, a file of 60 rows of each stream a step, in two lanes."""

    queries: tuple[str, ...] = ("pairs",)
    asked: Mapping[str, Any] = field(default_factory=dict)


WORKLOADS = {
    "rows through Spark": Workload(),
    "aggregates": Workload(queries=("counts",)),
    "two levels": Workload(queries=("counts", "most")),
    "spread by hash_hops": Workload(asked={"spread": "hash_hops", "nodes": 3}),
}


def done(spark: SparkSession, after: int) -> list[Any]:
    """Spark's jobs with greater numbers; all have been told of once the bus is empty."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    return [job for n in range(jobs.size()) if (job := jobs.apply(n)).jobId() > after]


def counts(spark: SparkSession, root: Path, load: Workload, steps: int) -> dict[str, int]:
    """The jobs, stages and tasks of a job of midstream that does so many steps."""
    folder = root / f"{steps} steps"
    folder.mkdir()
    fill(folder, range(steps))
    newest = max((job.jobId() for job in done(spark, -1)), default=-1)
    made = ms.Job(spark, folder / "checkpoint", lanes=2)
    for name in "ABC":
        made.stream(name, frame(spark, folder, name), timestamp="ts", lateness="1 second")
    for name in load.queries:
        made.query(name, QUERIES[name], **load.asked)
    made.start({"availableNow": True}).await_termination()
    assert ms.open(folder / "checkpoint").report().step >= steps - 1
    jobs = done(spark, newest)
    stages = sum(job.stageIds().size() - job.numSkippedStages() for job in jobs)
    return {"jobs": len(jobs), "stages": stages, "tasks": sum(job.numTasks() - job.numSkippedTasks() for job in jobs)}


@pytest.mark.parametrize(("costs", "tasks"), [(1e-9, [3, 3, 3]), (1e9, [3, 1, 1])])
def test_lanes_with_little_to_do_share_a_task(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, costs: float, tasks: list[int]
) -> None:
    """The first step knows nothing of the work; a later one of one task reads the rows in it too."""
    monkeypatch.setattr("midstream.spark.driver.TASK_COSTS", costs)
    newest = max((job.jobId() for job in done(spark, -1)), default=-1)
    fill(tmp_path, range(3))
    made = ms.Job(spark, tmp_path / "checkpoint", lanes=2).stream("A", frame(spark, tmp_path, "A"), timestamp="ts")
    made.query("counts", QUERIES["counts"]).start({"availableNow": True}).await_termination()
    jobs = sorted(done(spark, newest), key=lambda job: int(job.jobId()))
    assert [job.numTasks() - job.numSkippedTasks() for job in jobs] == tasks


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_step_asks_no_more_of_spark_than_was_recorded(name: str, spark: SparkSession, tmp_path: Path) -> None:
    load = WORKLOADS[name]
    few, many = (counts(spark, tmp_path, load, steps) for steps in (BEFORE, UP_TO))
    found = {what: (many[what] - few[what]) / (UP_TO - BEFORE) for what in many}
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if os.environ.get("MIDSTREAM_COUNTS") == "write":
        RECORD.write_text(json.dumps({**recorded, name: found}, indent=2, sort_keys=True) + "\n")
        return
    assert recorded.keys() == WORKLOADS.keys()
    assert all(found[what] <= recorded[name][what] for what in found), (found, recorded[name])
