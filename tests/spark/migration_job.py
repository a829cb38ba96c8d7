"""The job in which every strategy migrates a query of its own: `python -m tests.spark.migration_job FOLDER`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.commands.migrate import Migrate
from midstream.migration.strategy_contract import discovered
from midstream.optimizer.chooser import OBJECTIVES
from midstream.spark.session import local_session
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Case
from tests.property.rows import Shape, cut, draw_rows
from tests.spark.drive import SHORT_LIVED, Place, feed_steps, finish, job

BEGIN = 1
"""The step with which all migrations begin; rows that are old then live for some steps more."""

CHAIN = QuerySpec(
    tuple(SourceSpec(name, name, range=4 * SECOND) for name in "ABC"),
    (Item("A.u", "a"), Item("B.u", "b"), Item("C.u", "c"), Item("_ts")),
    (Condition("A.k = B.k", ("A", "B")), Condition("B.k = C.k", ("B", "C"))),
)
PLAIN = QuerySpec((SourceSpec("A", "A"),), (Item("A.u", "a"),), (Condition("A.k > 3", ("A",)),))


@dataclass(frozen=True)
class MigrationRequest:
    """A query, and how it migrates."""

    strategy: str
    old: str = "((A B) C)"
    new: str = "(A (B C))"
    options: dict[str, Any] = field(default_factory=dict)
    spec: QuerySpec = CHAIN


MOVES = {
    **{name: MigrationRequest(name) for name in discovered()},
    "pause_drain_resume": MigrationRequest("pause_drain_resume", "A", "[A: ]", spec=PLAIN),
    "m_join": MigrationRequest("m_join", new="[A: B C | B: A C | C: B A]"),
    "cacq": MigrationRequest("cacq", new="eddy(A B C)"),
    "stairs": MigrationRequest("stairs", new="stairs((A (B C)))"),
    "jisc_stairs": MigrationRequest("jisc_stairs", "stairs(((A B) C))", "stairs((A (B C)))"),
    "ghm": MigrationRequest("ghm", options={"budget": 40}),
    "held": MigrationRequest("parallel_track", options={"hold_new": True}),
    "completed": MigrationRequest("hybmig", options={"background": 2}),
    **{f"auto_{of}": MigrationRequest("auto", options={"objective": of}) for of in OBJECTIVES},
    "just_in_time": MigrationRequest("jisc", options={"background": 0, "decompose": False}),
}
"""A query of each strategy, by its name, and some with options."""

STREAMS, ROWS = draw_rows(Shape(seed=23, sizes=(300, 300, 300), span=12, keys=300, disorder=1, slack=1))
CASE = Case(
    STREAMS, cut(STREAMS, ROWS, (20, 40, 55, 70, 85)), tuple(Lifetime(name, move.spec) for name, move in MOVES.items())
)


feed = partial(feed_steps, STREAMS, CASE.steps)
"""Put the input in a folder in place."""


def the_job(spark: SparkSession, root: Path) -> ms.Job:
    """The job, the same whenever it is started; a state that another query has would leave nothing to carry."""
    queries = {life.name: life.spec.cql() for life in CASE.queries}
    plans = {name: move.old for name, move in MOVES.items()}
    return job(spark, Place(root), STREAMS, queries, plans, lanes=2, sharing="off")


def main(root: Path) -> None:
    """Run the job to its end; all migrations are asked for before their step."""
    from midstream.spark.driver import Driver

    log, original = CommandLog(root / "checkpoint" / "commands"), Driver.fold

    def fold(self: Driver, batch: DataFrame, number: int) -> None:
        if number == BEGIN and not log.after(0):
            for name, move in MOVES.items():
                log.append(Migrate(name, move.new, move.strategy, move.options))
        original(self, batch, number)

    Driver.fold = fold  # type: ignore[method-assign]
    finish(the_job(local_session("migrations", settings=SHORT_LIVED), root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
