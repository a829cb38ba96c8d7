"""The job whose shared rings are cut by load as it is killed: `python -m tests.spark.cut_by_load_job FOLDER`."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.ring import lengthening
from midstream.spark.session import local_session
from tests.embedded import cut_by_load_engine
from tests.embedded.cut_by_load_engine import NODES, ROWS, STREAMS, scheme_of
from tests.property.rows import cut
from tests.spark.drive import SHORT_LIVED, Place, feed_steps, finish, job

BETWEEN = 2
"""After so many steps the work of nodes is looked at here, where it is 16: steps of Spark take long."""

CASE = replace(cut_by_load_engine.CASE, steps=cut(STREAMS, ROWS, tuple(range(10, 100, 10))))


feed = partial(feed_steps, STREAMS, CASE.steps)
"""Put the input in a folder in place."""


def the_job(spark: SparkSession, root: Path) -> ms.Job:
    """The job, the same whenever it is started; two queries share the ring of each scheme."""
    place = Place(root)
    made = job(spark, place, STREAMS, {}, lanes=2)
    for life in CASE.queries:
        sink = ms.sinks.files(place.answers(life.name))
        made.query(life.name, life.spec.cql(), None, sink, spread=scheme_of(life.name), nodes=NODES)
    return made


def main(root: Path) -> None:
    """Run the job to its end."""
    lengthening.STEPS_BETWEEN = BETWEEN
    finish(the_job(local_session("cuts", settings=SHORT_LIVED), root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
