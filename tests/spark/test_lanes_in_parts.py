"""A job of many lanes, each of which its task writes as a part: killed at named points, and gone back."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.model.manifest import MOST_INSIDE
from midstream.pipeline.doctor import examine
from tests.spark.crash_job import CASE, feed, the_job
from tests.spark.drive import Place, finish
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.many_lanes_job import LANES
from tests.spark.test_crashes import check

JOB = "tests.spark.many_lanes_job"


@pytest.mark.timeout(600)
def test_the_driver_is_killed_and_goes_back(spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path) -> None:
    feed(tmp_path)
    place = Place(tmp_path)
    for point, step in (("amid_tasks", 1), ("before_manifest", 1), ("after_manifest", 2)):
        drivers.kill(JOB, tmp_path, f"{point}:{step}")
        assert place.manifest().step == (step if point == "after_manifest" else step - 1)
    opened = ms.open(place.checkpoint)
    assert opened.savepoint("here") == 2
    finish(the_job(spark, tmp_path, LANES))
    check(place, CASE.expected())
    manifest = place.manifest()
    assert manifest.lanes == LANES + 1
    assert sum(state.part is not None for state in manifest.lane_states.values()) > MOST_INSIDE
    assert not [one for one in examine(place.checkpoint).findings if not one.harmless]
    assert ms.open(place.checkpoint).rewind("here").step == 2
    finish(the_job(spark, tmp_path, LANES))
    check(place, CASE.expected())
