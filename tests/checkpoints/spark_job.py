"""The job whose checkpoint is kept: `python -m tests.checkpoints.spark_job FOLDER` runs it to its end."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.model.command import Command
from midstream.spark.driver import Driver
from midstream.spark.session import local_session
from midstream.step.commands.add_query import AddQuery
from midstream.step.commands.change_query import ChangeQuery
from midstream.step.commands.drop_query import DropQuery
from midstream.step.commands.migrate import Migrate
from midstream.step.commands.rescale import Rescale
from tests.checkpoints.course import Course
from tests.checkpoints.courses import CROSSED, LEFT, RIGHT, ROWS, case, counts, difference, member
from tests.property.drive import Rescale as RescaleAction
from tests.sharing.case import Add, Case, Change, Drop, Move
from tests.spark.drive import SHORT_LIVED, Place, finish, job

SAVED = 5

ACTIONS = (
    Add(0, "whole", member("k", 5, plan=LEFT)),
    Add(0, "narrow", member("k", 2, plan=LEFT)),
    Add(0, "filtered", member("k", 4, "A.n > 1", plan=LEFT)),
    Add(0, "leaves", member("n", 6, "B.k > 0", plan=LEFT)),
    Add(0, "stays", member("n", 4, plan=LEFT)),
    Add(0, "alone", member("kn", 5, plan=LEFT)),
    Add(0, "counts", counts("ABC", 4, plan=LEFT)),
    Add(0, "except", difference("A", "B", 5)),
    Add(0, "numbered", member("s", 9, rows=True, plan=LEFT)),
    Add(1, "comes", member("n", 3, "C.k > 0", plan=LEFT)),
    Move(3, "whole", RIGHT, "hybmig", {}, together=True),
    Move(3, "leaves", RIGHT, "parallel_track"),
    Move(3, "alone", RIGHT, "gpt"),
    Move(3, "counts", CROSSED, "ghm", {"budget": 2}),
    Move(SAVED, "stays", RIGHT, "jisc", {"background": 1}, together=True),
    Add(SAVED, "waits", member("k", 3, "B.n > 0", plan=RIGHT)),
    Drop(6, "narrow"),
    Change(6, "filtered", member("k", 6, "A.n > 1", plan=LEFT)),
    RescaleAction(7, 3),
)
"""Those of the step `SAVED` are in the command log when the checkpoint is kept, and not taken yet."""

COURSE = Course(case(ROWS, *ACTIONS), SAVED, frozenset({"whole", "leaves", "alone", "counts"}))
CASE = COURSE.case
LANES = 2


def the_job(spark: SparkSession, root: Path, case: Case = CASE) -> ms.Job:
    """The job, the same whenever it is started."""
    first = [action for action in case.actions if isinstance(action, Add) and action.step == 0]
    queries = {add.query: add.asked.spec.cql() for add in first}
    plans = {add.query: add.asked.plan for add in first if add.asked.plan}
    return job(spark, Place(root), case.streams, queries, plans, LANES, sharing="auto")


def feed(root: Path, case: Case = CASE) -> None:
    """The input, a file of each stream for each step."""
    for step, tables in enumerate(case.steps):
        for spec in case.streams:
            Place(root).feed(spec.name, step, tables.get(spec.name, spec.schema.empty_table()))


def commands(root: Path, step: int, case: Case = CASE) -> list[Command]:
    """The commands that are given before a step."""
    found: list[Command] = []
    for action in case.actions:
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


def main(root: Path) -> None:
    """Run the job to its end; commands are given as the steps go by, each once."""
    original = Driver.fold

    def fold(self: Driver, batch: DataFrame, number: int) -> None:
        log = self.folders.commands
        given = [command for _, command in log.after(0)]
        for command in commands(root, number):
            if command not in given:
                log.append(command)
        original(self, batch, number)

    Driver.fold = fold  # type: ignore[method-assign]
    finish(the_job(local_session("kept", settings=SHORT_LIVED), root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
