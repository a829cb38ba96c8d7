"""The driver is killed amid reviews, decisions and what they began: it decides and answers the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.model.optimization import OptimizerSettings
from midstream.optimizer.cost.units import PLAN_OBJECTIVES
from midstream.optimizer.policies.policy_contract import policies
from midstream.pipeline.crash_points import POINTS
from tests.embedded import decide_lanes_engine
from tests.embedded.decide_engine import answers, conditions_file, main, policy_file
from tests.embedded.test_decisions_replay import LANES, decisions
from tests.spark import decide_lanes_job
from tests.spark.decide_job import STEPS, feed, the_job
from tests.spark.drive import Place, finish
from tests.spark.forked_drivers import ForkedDrivers


@pytest.mark.timeout(600)
def test_it_decides_the_same_wherever_it_is_killed(spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path) -> None:
    """Amid a review, at each point of the step that decides and begins the migration, amid that and at its end."""
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    main(undisturbed, STEPS)
    expected = decisions(undisturbed)
    reviewed = next(event["step"] for event in expected if event["event"] == "plan_reviewed")
    decided = next(event["step"] for event in expected if event.get("decision") == "switch")
    ended = next(event["step"] for event in expected if event["event"] == "migration_ended")
    assert reviewed < decided < ended - 1 < STEPS - 2, "each has steps of its own"
    feed(killed)
    for point, step in (
        ("before_manifest", reviewed),
        *((point, decided) for point in POINTS),
        ("amid_tasks", decided + 1),
        ("after_manifest", ended),
    ):
        drivers.kill("tests.spark.decide_job", killed, f"{point}:{step}")
        committed = POINTS.index(point) >= POINTS.index("after_manifest")
        assert Place(killed).manifest().step == (step if committed else step - 1)
    finish(the_job(spark, killed))
    assert decisions(killed) == expected
    assert answers(Place(killed).answers("q")) == answers(undisturbed / "answers") != []


OBJECTIVES = [f"adaptive objective={one}" for one in PLAN_OBJECTIVES if one != OptimizerSettings().objective]
CHARTS = [name for name, one in policies().items() if "estimates" in one.options]

KILLS = (("before_manifest", 0), ("amid_tasks", 0), ("after_manifest", 0), ("amid_tasks", 1))
"""Where a driver is killed: a point, and how many steps after the decision."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", [*policies(), *(f"{name} estimates=om cost=om" for name in CHARTS), *OBJECTIVES])
def test_every_policy_decides_the_same_wherever_it_is_killed(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path, policy: str
) -> None:
    """Amid the step in which it moves the query, right after, and amid the next one; answers are as embedded."""
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    for root in (undisturbed, killed):
        root.mkdir()
        policy_file(root).write_text(policy)
    main(undisturbed, STEPS)
    expected = decisions(undisturbed)
    decided = next(event["step"] for event in expected if event.get("decision") == "switch")
    assert 0 < decided < STEPS - 3
    feed(killed)
    for point, later in KILLS:
        drivers.kill("tests.spark.decide_job", killed, f"{point}:{decided + later}")
    finish(the_job(spark, killed))
    assert decisions(killed) == expected
    assert {event["policy"] for event in expected if event["event"] == "plan_reviewed"} == {policy.split()[0]}
    assert answers(Place(killed).answers("q")) == answers(undisturbed / "answers") != []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", CHARTS)
def test_conditions_are_put_in_the_same_order_wherever_it_is_killed(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path, policy: str
) -> None:
    """Conditions are evaluated as many times as embedded: Spark leaves out no row before they count it."""
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    for root in (undisturbed, killed):
        root.mkdir()
        policy_file(root).write_text(policy)
        conditions_file(root).write_text("A.k < 9 AND A.k < 2")
    main(undisturbed, STEPS)
    expected = decisions(undisturbed)
    decided = next(event for event in expected if event.get("decision") == "switch")
    assert (decided["plan"], decided["chosen"]) == ("A: 1 2", "A: 2 1")
    feed(killed)
    for point, later in KILLS:
        drivers.kill("tests.spark.decide_job", killed, f"{point}:{decided['step'] + later}")
    finish(the_job(spark, killed))
    assert decisions(killed) == expected
    assert evaluated(killed) == evaluated(undisturbed)
    assert answers(Place(killed).answers("q")) == answers(undisturbed / "answers") != []


def evaluated(root: Path) -> dict[str, int]:
    """How many times each condition was evaluated."""
    operators = Place(root).manifest().operators
    found = {key: one.predicates for key, one in operators.items() if key.operator.kind == "condition"}
    assert len(found) == 2
    return found


@pytest.mark.timeout(600)
def test_it_sets_the_same_number_of_lanes_wherever_it_is_killed(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path
) -> None:
    """Amid a review that waits for others to agree, amid a step whose load the next review counts, at each point of the
    step that decides and spreads the state anew, and in the first one of the new lanes. It answers what the embedded
    engine does, too.
    """
    embedded, undisturbed, killed = (tmp_path / name for name in ("embedded", "undisturbed", "killed"))
    decide_lanes_engine.main(embedded, decide_lanes_job.STEPS)
    decide_lanes_job.feed(undisturbed)
    decide_lanes_job.run_late(spark, undisturbed)
    expected = decisions(undisturbed, LANES)
    reviewed = next(event["step"] for event in expected if event["event"] == "lanes_reviewed")
    (decided,) = [event["step"] for event in expected if event.get("decision") == "switch"]
    assert reviewed < decided - 1 < expected[-1]["step"] - 2 < decide_lanes_job.STEPS - 2
    assert expected[-1]["event"] == "lanes_reviewed", "one more looks at what the new lanes take"
    decide_lanes_job.feed(killed)
    for point, step, lanes in (
        ("before_manifest", reviewed, 1),
        ("before_manifest", decided - 1, 1),
        *((point, decided, 1) for point in POINTS[: POINTS.index("after_manifest")]),
        ("after_manifest", decided, 2),
        ("amid_tasks", decided + 1, 2),
    ):
        drivers.kill("tests.spark.decide_lanes_job", killed, f"{point}:{step}")
        committed = POINTS.index(point) >= POINTS.index("after_manifest")
        found = Place(killed).manifest()
        assert (found.step, found.lanes) == (step if committed else step - 1, lanes)
    decide_lanes_job.run_late(spark, killed)
    assert decisions(killed, LANES) == expected
    assert Place(killed).manifest().lane_optimization == Place(undisturbed).manifest().lane_optimization
    found = answers(Place(killed).answers("q"))
    assert found == answers(Place(undisturbed).answers("q")) == answers(embedded / "answers") != []
