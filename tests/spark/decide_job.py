"""A job that looks after its plan as that of an embedded engine: `python -m tests.spark.decide_job FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.optimizer.policies.policy_contract import policies
from midstream.spark.session import local_session
from tests.embedded.decide_engine import query_and_plan, settings
from tests.optimizer.drifting import BAD_FIRST, COLUMNS, rows
from tests.oracle.spec import StreamSpec
from tests.spark.drive import SHORT_LIVED, Place, finish, job

STEPS = 12
"""A review that decides to stay, one that moves the query, a migration of several steps, and another review."""


def feed(root: Path) -> None:
    """The input, a file of each stream for each step."""
    for step in range(STEPS):
        Place(root).feed_together(step, rows(step, BAD_FIRST, rate=60))


def the_job(spark: SparkSession, root: Path) -> ms.Job:
    """The job, the same whenever it is started."""
    streams = [StreamSpec(name, COLUMNS, "ts") for name in "ABC"]
    text, plan = query_and_plan(root)
    made = job(spark, Place(root), streams, {"q": text}, {"q": plan}, lanes=1)
    given = settings(root)
    known = policies()[given.get("policy", "adaptive")].options
    options = {name: given.pop(name) for name in known if name in given}
    return made.optimize("q", **given, options=options)


def main(root: Path) -> None:
    """Run the job to its end."""
    finish(the_job(local_session("decisions", settings=SHORT_LIVED), root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
