"""A job with queries over nodes is killed between and amid the stages of a step; the sinks are those of a quiet run."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from typing_extensions import override

from midstream.pipeline.crash_points import POINTS, SPREAD_POINTS, CrashPoint
from midstream.spark import parcel
from tests.oracle.compare import assert_each_step_same
from tests.spark.drive import Hooks, Place, finish
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.processes import busy_workers
from tests.spark.spread_job import KILLED, feed, parcels_below, the_job

JOB = "tests.spark.spread_job"
STEPS = len(KILLED.steps)

POINTS_OF_A_STEP = [
    *POINTS[: POINTS.index("amid_tasks") + 1],
    *SPREAD_POINTS,
    *POINTS[POINTS.index("amid_tasks") + 1 :],
]
"""In the order in which a step passes them."""

CRASHES = [*((point, 1) for point in POINTS_OF_A_STEP), *((point, 2) for point in SPREAD_POINTS), ("amid_hop_2", 3)]
"""One after the other on the same checkpoint. With step 2 a ring is spread otherwise as its rows run out, with step 3
it has other nodes at once, and of two queries that share their nodes one goes to lanes.
"""


@dataclass(frozen=True)
class WorkerDies(CrashPoint):
    """Kills the worker that first gets there, and nothing else."""

    mark: str = ""

    @override
    def reach(self, point: str, step: int) -> None:
        if self.at == f"{point}:{step}" and not os.path.exists(self.mark):
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)


def check(place: Place) -> None:
    for name, answer in KILLED.expected().items():
        assert answer.table.num_rows
        assert_each_step_same(place.by_step(name, STEPS), answer, name)
    assert not list(place.root.glob("answers/*/_staging/*")), "staging was left behind"
    assert not parcels_below(place.root)


def check_spreads(place: Place) -> None:
    nodes = {name: entry.nodes for name, entry in place.manifest().queries.items()}
    ways = {name: one and (one.scheme, one.nodes, one.before) for name, one in nodes.items()}
    assert ways == {"ring": ("psp_d", 5, None), "keys": None, "near": ("hash_hops", 4, None), "lane": None}


@pytest.mark.timeout(1200)
def test_the_driver_is_killed_at_every_point(spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path) -> None:
    feed(tmp_path)
    place = Place(tmp_path)
    for point, step in CRASHES:
        drivers.kill(JOB, tmp_path, f"{point}:{step}")
        committed = point in POINTS[POINTS.index("after_manifest") :]
        assert place.manifest().step == (step if committed else step - 1)
    finish(the_job(spark, tmp_path))
    check(place)
    check_spreads(place)


@pytest.mark.timeout(600)
def test_its_jvm_is_killed_too(spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path) -> None:
    feed(tmp_path)
    for _ in drivers.kill_with_their_jvms(JOB, tmp_path, ["amid_hop_2:2"]):
        pass
    finish(the_job(spark, tmp_path))
    check(Place(tmp_path))


@pytest.fixture(params=["in parcels", "in files"])
def bodies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes from hop to hop does so through Spark's shuffle or by files."""
    if request.param == "in files":
        monkeypatch.setattr(parcel, "LEAST", 1)


@pytest.mark.usefixtures("bodies")
def test_workers_are_killed_amid_the_stages(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """What a task was doing is done again, in whatever stage, without a restart."""
    feed(tmp_path)
    killed: list[int] = []

    def hunt() -> None:
        deadline = time.monotonic() + 20
        while len(killed) < 3 and time.monotonic() < deadline:
            for worker in busy_workers():
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)
                time.sleep(0.15)
            time.sleep(0.001)

    for step in (1, 2):
        hooks.at(step, lambda _: threading.Thread(target=hunt).start())
    finish(the_job(spark, tmp_path))
    assert killed
    check(Place(tmp_path))


@pytest.mark.usefixtures("bodies")
def test_a_worker_dies_in_the_first_hop_while_the_second_waits(
    spark: SparkSession, hooks: Hooks, tmp_path: Path
) -> None:
    """It kills itself, once; its task is done again, and the job goes on."""
    feed(tmp_path)
    mark, here = tmp_path / "died", sys.modules[__name__]
    hooks.at(1, lambda driver: setattr(driver, "_crash", WorkerDies("amid_hop_1:1", (), str(mark))))
    cloudpickle.register_pickle_by_value(here)  # The workers do not have the tests.
    try:
        assert finish(the_job(spark, tmp_path)).state == "finished"
    finally:
        cloudpickle.unregister_pickle_by_value(here)
    assert mark.exists()
    check(Place(tmp_path))
