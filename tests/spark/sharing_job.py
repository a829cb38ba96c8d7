"""The job whose queries share, and come, go and change as it runs: `python -m tests.spark.sharing_job FOLDER`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.model.command import Command
from midstream.spark.session import local_session
from midstream.step.commands.add_query import AddQuery
from midstream.step.commands.change_query import ChangeQuery
from midstream.step.commands.drop_query import DropQuery
from midstream.step.commands.migrate import Migrate
from midstream.step.commands.rescale import Rescale
from tests.property.drive import Rescale as RescaleAction
from tests.property.rows import Shape, cut, draw_rows
from tests.sharing.case import Action, Add, Case, Change, Drop, Move
from tests.sharing.plain import asked
from tests.spark.drive import SHORT_LIVED, Place, finish, job

LEFT, RIGHT = "((A B) C)", "(A (B C))"

ACTIONS: tuple[Action, ...] = (
    Add(0, "short", asked("ABC", 2)),
    Add(0, "long", asked("ABC", 6)),
    Add(0, "some", asked("ABC", 4, "A.n > 1")),
    Add(0, "pairs", asked("AB", 3, plan="(A B)")),
    Add(1, "late", asked("ABC", 3, "B.k > 0")),
    Change(2, "short", asked("ABC", 5, "A.n > 0")),
    Add(2, "wide", asked("ABC", 9)),
    Add(2, "new", asked("ABC", 6), history=False),
    RescaleAction(2, 3),
    Change(3, "late", asked("ABC", 8, "B.k > 0")),
    Drop(3, "long"),
    Move(3, "wide", RIGHT, "moving_state"),
    Move(4, "short", RIGHT, "hybmig", {}, together=True),
    Drop(4, "some"),
)
STREAMS, ROWS = draw_rows(Shape(seed=29, sizes=(60, 60, 60), span=18, keys=4, disorder=2, slack=1))
CASE = Case(STREAMS, cut(STREAMS, ROWS, (20, 40, 60, 80)), ACTIONS, lanes=2)


def case(sharing: str) -> Case:
    """The case in a mode of sharing."""
    return replace(CASE, sharing=sharing)


def feed(root: Path) -> None:
    """The input, a file of each stream for each step."""
    for step, tables in enumerate(CASE.steps):
        for spec in STREAMS:
            Place(root).feed(spec.name, step, tables.get(spec.name, spec.schema.empty_table()))


def the_job(spark: SparkSession, root: Path, sharing: str) -> ms.Job:
    """The job, the same whenever it is started."""
    first = [action for action in ACTIONS if isinstance(action, Add) and action.step == 0]
    queries = {add.query: add.asked.spec.cql() for add in first}
    plans = {add.query: add.asked.plan for add in first if add.asked.plan}
    return job(spark, Place(root), STREAMS, queries, plans, CASE.lanes, sharing=sharing)


def commands(root: Path, step: int) -> list[Command]:
    """The commands that are given before a step."""
    found: list[Command] = []
    for action in ACTIONS:
        if action.step != step:
            continue
        match action:
            case Add(_, query, asked, history) if step > 0:
                sink = {"path": str(Place(root).answers(query)), "format": "parquet"}
                found.append(AddQuery(query, asked.spec.cql(), asked.plan, sink, history=history))
            case Change(_, query, asked):
                found.append(ChangeQuery(query, asked.spec.cql()))
            case Drop(_, query):
                found.append(DropQuery(query))
            case Move(_, query, plan, strategy, options, together):
                found.append(Migrate(query, plan, strategy, dict(options), together=together))
            case RescaleAction(_, lanes):
                found.append(Rescale(lanes))
    return found


def main(root: Path, sharing: str) -> None:
    """Run the job to its end; commands are given as the steps go by, each once."""
    from midstream.spark.driver import Driver

    log, original = CommandLog(root / "checkpoint" / "commands"), Driver.fold

    def fold(self: Driver, batch: DataFrame, number: int) -> None:
        given = [command for _, command in log.after(0)]
        for command in commands(root, number):
            if command not in given:
                log.append(command)
        original(self, batch, number)

    Driver.fold = fold  # type: ignore[method-assign]
    finish(the_job(local_session("sharing", settings=SHORT_LIVED), root, sharing))


if __name__ == "__main__":
    main(Path(sys.argv[1]), (Path(sys.argv[1]) / "sharing").read_text())
