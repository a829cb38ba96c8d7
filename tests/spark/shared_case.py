"""A case of queries that come, go and change, as a job: its input, and the commands as they are given."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import midstream as ms
from midstream.commands.add_query import AddQuery
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.model.command import Command
from midstream.spark.driver import Driver
from tests.property.drive import Rescale as RescaleAction
from tests.sharing.case import Add, Case, Change, Drop, Move
from tests.spark.drive import Place, finish, job


def job_of(spark: SparkSession, root: Path, case: Case, lanes: int) -> ms.Job:
    """The job, the same whenever it is started."""
    first = [action for action in case.actions if isinstance(action, Add) and action.step == 0]
    queries = {add.query: add.asked.spec.cql() for add in first}
    plans = {add.query: add.asked.plan for add in first if add.asked.plan}
    return job(spark, Place(root), case.streams, queries, plans, lanes, sharing=case.sharing)


def commands(root: Path, step: int, case: Case) -> list[Command]:
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


def run_alone(spark: SparkSession, root: Path, case: Case, lanes: int) -> None:
    """Run the job to its end in a process of its own; commands are given as the steps go by, each once."""
    original = Driver.fold

    def fold(self: Driver, batch: DataFrame, number: int) -> None:
        log = self.folders.commands
        given = [command for _, command in log.after(0)]
        for command in commands(root, number, case):
            if command not in given:
                log.append(command)
        original(self, batch, number)

    Driver.fold = fold  # type: ignore[method-assign]
    finish(job_of(spark, root, case, lanes))
