"""Queries that share come, go and change on Spark; the driver is killed at every named point; no sink tells of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.commands.migrate import Migrate
from midstream.pipeline.crash_points import POINTS
from midstream.sharing.schemes.scheme_contract import schemes
from tests.crash_case import STREAMS
from tests.oracle.compare import difference
from tests.sharing.case import Change
from tests.sharing.drive import Segment, run
from tests.sharing.judge import Judge
from tests.spark.drive import Hooks, Place, finish, job
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.shared_case import commands, job_of
from tests.spark.sharing_job import CASE, case, feed
from tests.spark.test_jobs import PAIRS, feed_step

STEPS = len(CASE.steps)
KILLS = {
    # A change of members in every step; each point once.
    "mem_opt": (
        ("before_job", 1), ("amid_tasks", 1), ("after_chunks", 2), ("after_manifest", 2),
        ("before_sink", 3), ("after_sink", 3), ("before_manifest", 4),
    ),
    **{name: (("after_manifest", 2), ("before_manifest", 4)) for name in schemes() if name != "mem_opt"},
}  # fmt: skip


def undisturbed(sharing: str) -> list[Segment]:
    """What the embedded engine puts out in one go, which the oracle has found right."""
    found = run(case(sharing))
    told = Judge(case(sharing), found).check()
    if sharing == "off":  # A query by itself keeps rows of one window and filter, and none of others.
        assert {type(action) for action, _ in found.refused} == {Change}
        assert told["added amid rows, sees new"] == 3
        return found.segments
    # push_down runs a query as several joins, which have no plan to move.
    assert not found.refused or sharing == "push_down"
    assert all(told[f"added amid rows, sees {what}"] for what in ("all", "some", "new")), told
    return found.segments


def check(place: Place, segments: list[Segment]) -> None:
    """Fail unless every step of every sink is that of the undisturbed run."""
    there = {name: place.by_step(name, STEPS) for name in {segment.query for segment in segments}}
    for segment in segments:
        for number, wanted in enumerate(segment.tables, start=segment.begin):
            found = there[segment.query][number]
            problem = difference(wanted.slice(0, 0) if found is None else found, wanted)
            assert not problem, f"{segment.query} step {number}: {problem}"
            there[segment.query][number] = None
    left = {name: [n for n, table in enumerate(tables) if table and table.num_rows] for name, tables in there.items()}
    assert not any(left.values()), f"answers of steps in which nobody asked: {left}"


@pytest.mark.parametrize("sharing", KILLS)
@pytest.mark.timeout(600)
def test_the_driver_is_killed_as_queries_come_and_go(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path, sharing: str
) -> None:
    assert {point for point, _ in KILLS["mem_opt"]} == set(POINTS)
    feed(tmp_path)
    (tmp_path / "sharing").write_text(sharing)
    place = Place(tmp_path)
    for point, step in KILLS[sharing]:
        drivers.kill("tests.spark.sharing_job", tmp_path, f"{point}:{step}")
        committed = POINTS.index(point) >= POINTS.index("after_manifest")
        assert place.manifest().step == (step if committed else step - 1)
    finish(job_of(spark, tmp_path, case(sharing), CASE.lanes))
    assert place.manifest().step == STEPS - 1
    check(place, undisturbed(sharing))


@pytest.mark.parametrize("sharing", ["auto", "pull_up", "push_down"])
def test_queries_come_and_go(spark: SparkSession, hooks: Hooks, tmp_path: Path, sharing: str) -> None:
    feed(tmp_path)
    for step in range(STEPS):
        for command in commands(tmp_path, step, CASE):
            hooks.give(step, command)
    finish(job_of(spark, tmp_path, case(sharing), CASE.lanes))
    check(Place(tmp_path), undisturbed(sharing))


def test_each_query_of_a_plan_under_migration_has_it_in_its_status(
    spark: SparkSession, hooks: Hooks, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    for step in (0, 1):
        feed_step(place, step)
    hooks.give(1, Migrate("pairs", "[A: B | B: A]", "gpt", together=True))
    wider = PAIRS.replace("WINDOW 4 SECONDS", "WINDOW 9 SECONDS")
    run = finish(job(spark, place, STREAMS, {"pairs": PAIRS, "wider": wider}, sharing="mem_opt"))
    queries = run.status()["queries"]
    assert queries["pairs"]["chain"] == queries["wider"]["chain"] == "pairs"
    for name in ("pairs", "wider"):
        migration = queries[name]["migration"]
        assert (migration["query"], migration["strategy"]) == (name, "gpt")
        assert (migration["old"], migration["plan"], migration["begun"]) == ("(A B)", "[A: B | B: A]", 1)
        assert [one["mark"] for one in migration["under_way"]] == ["pairs.1.0"]
