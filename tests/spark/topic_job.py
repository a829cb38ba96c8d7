"""A job on Spark from topics to a topic, by `job.toml`: `python -m tests.spark.topic_job FOLDER POINT STEP`.

It gets another plan with step 1, and dies at the point of the step: one of `SINK_POINTS` of the transaction, or one of
a step of any job, by `MIDSTREAM_KILL_AT`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from midstream.cli.spark_job import job_of
from midstream.commands.migrate import Migrate
from midstream.spark.session import local_session
from midstream.sql.job_file import read_job_file
from tests.kafka.killed_job import PLANS, die_in_sink
from tests.spark.drive import SHORT_LIVED, finish, giving


def main(root: Path, point: str, step: int) -> None:
    """Run the job until it dies, or nothing waits."""
    os.chdir(root)
    die_in_sink(point, step)
    giving(root, {1: Migrate("q", PLANS[1])})
    finish(job_of(local_session("topics", settings=SHORT_LIVED), read_job_file("job.toml")))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
