"""The driver is killed at every named point of a step; after a restart the sink is that of an undisturbed run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from midstream.job.crash_points import POINTS
from tests.oracle.answer import Answer
from tests.oracle.compare import assert_each_step_same
from tests.spark.crash_job import CASE, PLANS, feed, the_job
from tests.spark.drive import Hooks, Place, finish
from tests.spark.processes import busy_workers
from tests.spark.ready_classes import environment

STEPS = len(CASE.steps)


@pytest.fixture(scope="module")
def expected() -> dict[str, Answer]:
    return CASE.expected()


def run_and_kill(root: Path, point: str, script: str = "tests.spark.crash_job") -> None:
    """Run a job script until it kills its driver."""
    done = subprocess.run(
        [sys.executable, "-m", script, str(root)],
        cwd=root,
        env={**environment(), "MIDSTREAM_KILL_AT": point},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]


def check(place: Place, expected: dict[str, Answer]) -> None:
    for name, answer in expected.items():
        assert_each_step_same(place.by_step(name, STEPS), answer, name)
    assert not list(place.root.glob("answers/*/_staging/*")), "staging was left behind"


CRASHES = [*((point, 1) for point in POINTS), ("amid_tasks", 2)]
"""One after the other on the same checkpoint. Step 1 begins a moving_state migration, step 2 a rescale."""


@pytest.mark.timeout(600)
def test_the_driver_is_killed_at_every_point(spark: SparkSession, tmp_path: Path, expected: dict[str, Answer]) -> None:
    feed(tmp_path)
    place = Place(tmp_path)
    for point, step in CRASHES:
        run_and_kill(tmp_path, f"{point}:{step}")
        committed = POINTS.index(point) >= POINTS.index("after_manifest")
        assert place.manifest().step == (step if committed else step - 1)
    finish(the_job(spark, tmp_path))
    check(place, expected)
    assert place.manifest().lanes == 3
    assert place.manifest().queries["chain"].plan == PLANS[1]


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
