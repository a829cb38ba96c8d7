"""The optimizer of a job on Spark: many queries in one run, decided as an embedded engine decides them."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.model.events import LanesRescaled, LanesReviewed, MigrationBegun, PlanReviewed
from midstream.spark.running_job import Run
from tests.optimizer.drifting import BAD_FIRST, COLUMNS, query, rows
from tests.oracle.spec import StreamSpec
from tests.spark.drive import Place, job

BAD = "((A B) C)"
FAMILIES, WINDOWS, STEPS = 10, 20, 11
QUERIES = {
    f"q{family}_{window:02d}": (
        f"SELECT A.k FROM A, B, C WHERE A.k = B.k + {family} AND B.k = C.k + {family} WINDOW {100 * (window + 1)} MS"
    )
    for family in range(FAMILIES)
    for window in range(WINDOWS)
}


def decided(events: tuple[ms.events.Event, ...]) -> list[ms.events.Event]:
    return [event for event in events if isinstance(event, PlanReviewed | MigrationBegun)]


@pytest.mark.timeout(600)
def test_200_queries_under_auto_in_one_run(spark: SparkSession, tmp_path: Path) -> None:
    """Those that share a plan are reviewed and moved as one; every one of them is, and answers as embedded."""
    place = Place(tmp_path)
    engine, answers = ms.Engine(lanes=2), dict.fromkeys(QUERIES, 0)
    for name in "ABC":
        engine.create_stream(name, COLUMNS, timestamp="ts")
    for name, sql in QUERIES.items():
        engine.add_query(name, sql, BAD)
    settings = {"mode": "auto", "review": "1 second", "horizon": "1 hour", "effort": 1.0}
    engine.optimize(**settings)  # type: ignore[arg-type]
    for step in range(STEPS):
        tables = rows(step, BAD_FIRST, rate=30)
        place.feed_together(step, tables)
        answers = {name: answers[name] + table.num_rows for name, table in engine.push(tables).items()}
    streams = [StreamSpec(name, COLUMNS, "ts") for name in "ABC"]
    made = job(spark, place, streams, QUERIES, dict.fromkeys(QUERIES, BAD), 2).optimize(**settings)
    run = made.start(trigger={"availableNow": True})
    assert run.await_termination(300), "the job hangs"
    files = {name: place.answers(name).glob("step=*/*.parquet") for name in QUERIES}
    assert {name: sum(pq.read_metadata(file).num_rows for file in found) for name, found in files.items()} == answers
    assert decided(run.events) == decided(engine.events)
    reviewed = Counter(
        query for event in decided(run.events) if isinstance(event, PlanReviewed) for query in event.queries
    )
    assert reviewed.keys() == QUERIES.keys(), "somebody starves"
    assert any(isinstance(event, MigrationBegun) for event in run.events)


@pytest.mark.timeout(300)
def test_late_micro_batches_get_more_lanes(spark: SparkSession, tmp_path: Path) -> None:
    """No step is done within the millisecond that the trigger leaves it; answers are as an embedded engine's."""
    place, steps = Place(tmp_path), 9
    engine, expected = ms.Engine(), 0
    for name in "ABC":
        engine.create_stream(name, COLUMNS, timestamp="ts")
    engine.add_query("q", query("ABC", window=2), BAD)
    for step in range(steps):
        tables = rows(step, BAD_FIRST, rate=30)
        place.feed_together(step, tables)
        expected += engine.push(tables)["q"].num_rows
    streams = [StreamSpec(name, COLUMNS, "ts") for name in "ABC"]
    made = job(spark, place, streams, {"q": query("ABC", window=2)}, {"q": BAD}, 1)
    run = made.optimize(mode="off", lanes="auto", review="1 second").start({"processingTime": "1 millisecond"})
    until_taken(run, place, steps * 90)
    run.stop()
    (rescaled,) = [event for event in run.events if isinstance(event, LanesRescaled)]
    decision = next(event for event in run.events if isinstance(event, LanesReviewed) and event.decision == "switch")
    assert (rescaled.old, rescaled.new, rescaled.step) == (1, decision.chosen, decision.step)
    assert decision.figures["interval"] == 0.001 and place.manifest().lanes == decision.chosen > 1
    found = place.answers("q").glob("step=*/*.parquet")
    assert sum(pq.read_metadata(file).num_rows for file in found) == expected


def until_taken(run: Run, place: Place, rows: int) -> None:
    """Wait until so many rows are done, in however many batches a busy machine takes them."""
    deadline = time.monotonic() + 120
    while sum(progress.rows for progress in place.manifest().progress.values()) < rows:
        assert time.monotonic() < deadline, "the job hangs"
        assert not run.await_termination(0.05)
