"""A job is killed as the slices of its shared rings are cut by load; the sinks are those of a quiet run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.pipeline.crash_points import POINTS
from midstream.ring import lengthening
from tests.embedded.cut_by_load_engine import main
from tests.embedded.test_kills_amid_cuts import cuts
from tests.oracle.compare import assert_each_step_same
from tests.spark.cut_by_load_job import BETWEEN, CASE, feed, the_job
from tests.spark.drive import Place, finish
from tests.spark.forked_drivers import ForkedDrivers

JOB = "tests.spark.cut_by_load_job"
POINTS_OF_A_STEP = ("before_job", "amid_tasks", "amid_placing", "amid_hop_1", *POINTS[POINTS.index("after_chunks") :])
"""In the order in which a step passes them; a join of two streams has one hop."""

PUBLISHED = POINTS_OF_A_STEP.index("after_manifest")
CUT, AGAIN = 3 * BETWEEN, 4 * BETWEEN
"""With the first slices are cut by what nodes compared since the look before it, with the second anew."""

CRASHES = [
    ("after_manifest", CUT - BETWEEN),
    *((point, CUT) for point in POINTS_OF_A_STEP[: PUBLISHED + 1]),
    *((point, CUT + 1) for point in ("amid_placing", "amid_hop_1", "before_sink")),
    *((point, AGAIN) for point in ("amid_hop_1", "after_sink")),
]
"""One after the other on the same checkpoint."""


@pytest.mark.timeout(1200)
def test_the_driver_is_killed_at_every_point_of_a_cut(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices are cut where the embedded engine cuts them, from the counters of what was committed alone."""
    monkeypatch.setattr(lengthening, "STEPS_BETWEEN", BETWEEN)
    feed(tmp_path)
    place = Place(tmp_path)
    for point, step in CRASHES:
        drivers.kill(JOB, tmp_path, f"{point}:{step}")
        committed = point in POINTS_OF_A_STEP[PUBLISHED:]
        assert place.manifest().step == (step if committed else step - 1)
    finish(the_job(spark, tmp_path))
    for name, answer in CASE.expected().items():
        assert answer.table.num_rows
        assert_each_step_same(place.by_step(name, len(CASE.steps)), answer, name)
    assert not list(tmp_path.glob("answers/*/_staging/*")), "staging was left behind"
    main(tmp_path / "embedded", CASE)
    assert cuts(tmp_path) == cuts(tmp_path / "embedded")
    assert all(ends or pieces > 1 for ends, pieces, _ in cuts(tmp_path).values()), "some ring was not cut"
