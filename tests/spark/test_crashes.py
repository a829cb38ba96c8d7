"""Driver and JVM are killed at every named point of a step; after a restart the sink is that of an undisturbed run."""

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

from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.pipeline.crash_points import POINTS, CrashPoint
from midstream.spark.driver import Driver
from tests.crash_case import PLANS
from tests.oracle.answer import Answer
from tests.oracle.compare import assert_each_step_same
from tests.spark.crash_job import CASE, feed, the_job
from tests.spark.drive import Hooks, Place, finish
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.processes import busy_workers

JOB = "tests.spark.crash_job"
STEPS = len(CASE.steps)


@pytest.fixture(scope="module")
def expected() -> dict[str, Answer]:
    return CASE.expected()


def check(place: Place, expected: dict[str, Answer]) -> None:
    for name, answer in expected.items():
        assert_each_step_same(place.by_step(name, STEPS), answer, name)
    assert not list(place.root.glob("answers/*/_staging/*")), "staging was left behind"


CRASHES = [*((point, 1) for point in POINTS), ("amid_tasks", 2)]
"""One after the other on the same checkpoint. Step 1 begins a moving_state migration, step 2 a rescale."""


THREE = (("amid_tasks", 1), ("before_manifest", 1), ("after_manifest", 2))
"""Before anything is durable, before the manifest lists what is, and before the sink has what the manifest lists."""


def test_the_driver_is_killed_at_three_points(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path, expected: dict[str, Answer]
) -> None:
    feed(tmp_path)
    place = Place(tmp_path)
    for point, step in THREE:
        drivers.kill(JOB, tmp_path, f"{point}:{step}")
        assert place.manifest().step == (step if point == "after_manifest" else step - 1)
    finish(the_job(spark, tmp_path))
    check(place, expected)


@pytest.mark.timeout(1200)
def test_the_driver_and_its_jvm_are_killed_at_every_point(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path, expected: dict[str, Answer]
) -> None:
    """Where only the Python process dies, at every point too, is in test_sharing.py."""
    feed(tmp_path)
    place = Place(tmp_path)
    killed = drivers.kill_with_their_jvms(JOB, tmp_path, [f"{point}:{step}" for point, step in CRASHES])
    for (point, step), _ in zip(CRASHES, killed, strict=True):
        committed = POINTS.index(point) >= POINTS.index("after_manifest")
        assert place.manifest().step == (step if committed else step - 1)
    finish(the_job(spark, tmp_path))
    check(place, expected)
    assert place.manifest().lanes == 3
    assert place.manifest().queries["chain"].plan == PLANS[1]


def test_the_number_of_tasks_changes_from_step_to_step(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, expected: dict[str, Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a migration, and from two lanes to three."""
    monkeypatch.setattr(Driver, "_worthwhile", lambda self, plan, *_: 1 + plan.manifest.step % 2)
    feed(tmp_path)
    hooks.give(1, Migrate("chain", PLANS[1]))
    hooks.give(2, Rescale(3))
    finish(the_job(spark, tmp_path))
    check(Place(tmp_path), expected)


@dataclass(frozen=True)
class WorkerDies(CrashPoint):
    """Kills the worker that first has staged results, and nothing else."""

    mark: str = ""

    @override
    def reach(self, point: str, step: int) -> None:
        if self.at == f"{point}:{step}" and not os.path.exists(self.mark):
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_dies_that_has_staged_results(
    spark: SparkSession, hooks: Hooks, tmp_path: Path, expected: dict[str, Answer]
) -> None:
    """What it staged is removed with its step."""
    feed(tmp_path)
    mark, here = tmp_path / "died", sys.modules[__name__]
    hooks.at(1, lambda driver: setattr(driver, "_crash", WorkerDies("amid_tasks:2", (), str(mark))))
    cloudpickle.register_pickle_by_value(here)  # The workers do not have the tests.
    try:
        assert finish(the_job(spark, tmp_path)).state == "finished"
    finally:
        cloudpickle.unregister_pickle_by_value(here)
    assert mark.exists()
    check(Place(tmp_path), expected)


def test_a_worker_is_killed(spark: SparkSession, hooks: Hooks, tmp_path: Path, expected: dict[str, Answer]) -> None:
    """No restart is needed: what a task was doing is done again."""
    feed(tmp_path)
    killed: list[int] = []

    def hunt() -> None:
        deadline = time.monotonic() + 20
        while not killed and time.monotonic() < deadline:
            for worker in busy_workers():
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)
            time.sleep(0.001)

    hooks.at(2, lambda _: threading.Thread(target=hunt).start())
    finish(the_job(spark, tmp_path))
    assert killed
    check(Place(tmp_path), expected)
