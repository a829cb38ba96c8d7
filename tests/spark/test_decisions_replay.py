"""The driver is killed amid reviews, a decision and the migration it began: it decides and answers the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.job.crash_points import POINTS
from tests.embedded.decide_engine import answers, main
from tests.embedded.test_decisions_replay import decisions
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
