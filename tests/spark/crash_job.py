"""The job that the crash tests run in a process of its own: `python -m tests.spark.crash_job FOLDER`."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.spark.session import local_session
from midstream.storage.memory_limit import MemoryLimit
from tests.crash_case import PLANS, STREAMS, crash_case
from tests.spark.drive import SHORT_LIVED, Place, feed_steps, finish, giving, job

CASE = crash_case(25, 50, 75)


feed = partial(feed_steps, STREAMS, CASE.steps)
"""Put the input in a folder in place."""


def the_job(spark: SparkSession, root: Path, lanes: int = 2) -> ms.Job:
    """The job, the same whenever it is started."""
    queries = {life.name: life.spec.cql() for life in CASE.queries}
    # Near a limit a worker keeps few chunks, and asks before it joins.
    memory = MemoryLimit(1).held() + (64 << 20) if "CRASH_LIMITED" in os.environ else None
    return job(spark, Place(root), STREAMS, queries, {"chain": PLANS[0]}, lanes, memory=memory)


def main(root: Path, lanes: int = 2) -> None:
    """Run the job to its end; commands are given as the steps go by."""
    giving(root, {1: Migrate("chain", PLANS[1]), 2: Rescale(lanes + 1)})
    finish(the_job(local_session("crash", settings=SHORT_LIVED), root, lanes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
