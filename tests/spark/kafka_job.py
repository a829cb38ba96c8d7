"""A job on Spark whose results go to a topic: `python -m tests.spark.kafka_job FOLDER TOPIC SERVERS POINT STEP`.

It gets another plan with step 1, and dies at the point of the step: one of `SINK_POINTS` of the transaction, or one of
a step of any job, by `MIDSTREAM_KILL_AT`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.commands.migrate import Migrate
from midstream.spark.session import local_session
from tests.crash_case import CHAIN, PLANS, STREAMS, crash_case
from tests.kafka.killed_job import die_in_sink
from tests.spark.drive import SHORT_LIVED, Place, finish, giving, job

CASE = crash_case(25, 50, 75)


def the_job(spark: SparkSession, root: Path, topic: str, servers: str) -> ms.Job:
    """The job, the same whenever it is started."""
    sink = ms.sinks.KafkaSink(topic, servers, key=("a",))
    return job(spark, Place(root), STREAMS, {}, lanes=2).query("chain", CHAIN.cql(), PLANS[0], sink)


def main(root: Path, topic: str, servers: str, point: str, step: int) -> None:
    """Run the job until it dies."""
    die_in_sink(point, step)
    giving(root, {1: Migrate("chain", PLANS[1])})
    finish(the_job(local_session("kafka", settings=SHORT_LIVED), root, topic, servers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5]))
