"""The job that the crash tests run in a process of its own: `python -m tests.spark.crash_job FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.spark.session import local_session
from midstream.step.commands.migrate import Migrate
from midstream.step.commands.rescale import Rescale
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Case
from tests.property.rows import Shape, cut, draw_rows
from tests.spark.drive import SHORT_LIVED, Place, finish, job

SHAPE = Shape(seed=11, sizes=(120, 120, 120), span=24, keys=5, disorder=2, slack=1)
PLANS = ("((A B) C)", "(A (B C))")
CHAIN = QuerySpec(
    tuple(SourceSpec(name, name, range=4 * SECOND) for name in "ABC"),
    (Item("A.u", "a"), Item("B.u", "b"), Item("C.u", "c")),
    (Condition("A.k = B.k", ("A", "B")), Condition("B.k = C.k", ("B", "C"))),
)
GROUPED = QuerySpec(
    (SourceSpec("A", "A", range=3 * SECOND), SourceSpec("B", "B", range=3 * SECOND)),
    (Item("COUNT(*)", "n"), Item("_ts")),
    (Condition("A.n < B.n", ("A", "B")),),
    every=2 * SECOND,
)
STREAMS, ROWS = draw_rows(SHAPE)
CASE = Case(STREAMS, cut(STREAMS, ROWS, (25, 50, 75)), (Lifetime("chain", CHAIN), Lifetime("counts", GROUPED)))


def feed(root: Path) -> None:
    """The input, and the commands that the job takes with the steps 1 and 2."""
    place = Place(root)
    for step, tables in enumerate(CASE.steps):
        for spec in STREAMS:
            place.feed(spec.name, step, tables.get(spec.name, spec.schema.empty_table()))


def the_job(spark: SparkSession, root: Path) -> ms.Job:
    """The job, the same whenever it is started."""
    queries = {life.name: life.spec.cql() for life in CASE.queries}
    return job(spark, Place(root), STREAMS, queries, {"chain": PLANS[0]}, 2)


def main(root: Path) -> None:
    """Run the job to its end; commands are given as the steps go by."""
    from midstream.spark.driver import Driver

    log, original = CommandLog(root / "checkpoint" / "commands"), Driver.fold
    commands = {1: Migrate("chain", PLANS[1]), 2: Rescale(3)}

    def fold(self: Driver, batch: object, number: int) -> None:
        if number in commands and commands[number] not in [command for _, command in log.after(0)]:
            log.append(commands[number])
        original(self, batch, number)  # type: ignore[arg-type]

    Driver.fold = fold  # type: ignore[method-assign, assignment]
    finish(the_job(local_session("crash", settings=SHORT_LIVED), root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
