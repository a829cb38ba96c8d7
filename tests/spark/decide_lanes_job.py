"""A job that sets its number of lanes: `python -m tests.spark.decide_lanes_job FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import SparkSession

import midstream as ms
from midstream.model.lane_choice import StepTiming
from midstream.spark.driver import Driver
from midstream.spark.session import local_session
from midstream.step.plan_step import StepPlan
from tests.embedded.decide_lanes_engine import KEYS, LATE, SETTINGS, WORKERS
from tests.optimizer.drifting import COLUMNS, query, rows
from tests.oracle.spec import StreamSpec
from tests.spark.drive import SHORT_LIVED, Place, finish, job

STEPS = 13
"""Reviews that wait for others to agree, one that changes the lanes, and one that is content with them."""


def feed(root: Path) -> None:
    """The input, a file of each stream for each step."""
    for step in range(STEPS):
        Place(root).feed_together(step, rows(step, KEYS, rate=20))


def the_job(spark: SparkSession, root: Path) -> ms.Job:
    """The job, the same whenever it is started."""
    streams = [StreamSpec(name, COLUMNS, "ts") for name in "ABC"]
    return job(spark, Place(root), streams, {"q": query("ABC", window=3)}, lanes=1).optimize(**SETTINGS)


class LateDriver(Driver):
    """A driver all of whose steps are late by so much, whatever time they take here."""

    def _plan(self) -> StepPlan:
        """Plan a step as if the one before it had been so late."""
        self._timing = StepTiming(WORKERS, LATE["took"], LATE["interval"])
        return super()._plan()


def run_late(spark: SparkSession, root: Path) -> None:
    """Run the job to its end by such a driver."""
    with patch("midstream.spark.running_job.Driver", LateDriver):
        finish(the_job(spark, root))


def main(root: Path) -> None:
    """Run it in a session of its own."""
    run_late(local_session("lanes", settings=SHORT_LIVED), root)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
