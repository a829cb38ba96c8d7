"""`midstream run`: run the job of a job file."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.arguments import AllowOperator, AllowSource, AsJson, CommandGroup, Engine, Host, placed
from midstream.cli.check import looked_at, refuse
from midstream.cli.exit_codes import Failed, WrongUse
from midstream.cli.output import print_json, say
from midstream.cli.run_console import RunConsole
from midstream.cli.savepoint import TakeOver
from midstream.cli.spark_session import spark_session
from midstream.model.errors import MidstreamError, NoStepError
from midstream.model.words import counted

if TYPE_CHECKING:
    from types import FrameType

    from midstream.checkpoint.reader import Checkpoint
    from midstream.pipeline.lost_rows import LostRows, Source
    from midstream.sql.job_file import JobFile

POLL_SECONDS = 0.2


@placed(
    CommandGroup.RUN,
    "midstream run job.toml",
    "midstream run job.toml --engine embedded --once",
    "midstream run job.toml --interval '5 seconds' --cores 4",
)
def run(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.", dir_okay=False)],
    once: Annotated[bool, typer.Option("--once", help="Read all present input, then stop.")] = False,
    interval: Annotated[
        str,
        typer.Option(
            "--interval",
            metavar="DURATION",
            help="The minimum time from the beginning of one step to the beginning of the next step.",
        ),
    ] = "1 second",
    cores: Annotated[
        str, typer.Option("--cores", metavar="N", help="The number of cores to use on this machine; * for all cores.")
    ] = "*",
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="The Spark master to run on. Default: this machine.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="The memory limit of each process that joins rows, such as '4 GB'."
        ),
    ] = None,
    engine: Engine = Host.SPARK,
    take_over: TakeOver = False,
    allow_operator: AllowOperator = None,
    allow_source: AllowSource = None,
    fail_on_late: Annotated[
        bool, typer.Option("--fail-on-late", help="With --once: end with exit code 1 if there are late rows.")
    ] = False,
    fail_on_dead_letters: Annotated[
        bool,
        typer.Option("--fail-on-dead-letters", help="With --once: end with exit code 1 if there are dead letters."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a job until you interrupt it, or with --once until it has read all its input.

    The command first makes the checks of `midstream check`. A job that ran before continues where it stopped, even if
    the job file now has new plans, lanes or queries. A running job takes commands from its checkpoint: stop, migrate,
    add, change, drop, table, spread, rescale, optimize and others. Only the engine that began a checkpoint can continue
    it.

    Operators of your own run only if --allow-operator names them, or an installed package declares them. Some formats
    and options of Spark load code, or read or write files outside the source. A job can use such a format or option
    only if --allow-source names it.
    """
    from midstream.checkpoint.folders import Folders
    from midstream.checkpoint.reader import Checkpoint
    from midstream.expr.duration import parse_duration
    from midstream.model.words import parse_size
    from midstream.pipeline.lost_rows import summary_lines

    _check_cores(cores, master, engine)
    most = None if memory is None else parse_size(memory, "--memory")
    if (fail_on_late or fail_on_dead_letters) and not once:
        option = "--fail-on-late" if fail_on_late else "--fail-on-dead-letters"
        raise WrongUse(f"{option} works only with --once", place=option, remedy="add --once")
    job, found = looked_at(job_file, engine, allow_operator, allow_source)
    refuse(found)
    if job is None:
        raise typer.Exit(2)
    if most is not None:
        job = replace(job, memory=most)
    for warning in () if as_json else found.warnings:
        say(f"warning: {warning}")
    every = parse_duration(interval, what="the interval", place="--interval") / 1e6
    pause = None if once else every
    checkpoint = Checkpoint(Folders(job.checkpoint))
    before = _lost(checkpoint, {})
    if engine is Host.EMBEDDED:
        report = _run_embedded(job, pause, _threads(cores), take_over, as_json, before)
    else:
        trigger = {"availableNow": True} if once else {"processingTime": interval}
        report = _run_on_spark(job, trigger, cores, master, take_over, as_json, before)
    lost = _lost(checkpoint, before)
    if as_json:
        print_json(report)
        _fail_on(lost, fail_on_late, fail_on_dead_letters)
        return
    if left := report.get("not_applied"):
        names = ", ".join(f"{one['command']} {one['query'] or ''}".rstrip() for one in left)
        say(f"not applied yet: {names}: waits for the next batch with data, after the next start")
    if report["step"] < 0:
        say("no step was done before the job ended")
    for name, query in report["queries"].items():
        if query["part_of"]:
            continue
        where = query["sink"].get("path", "its sink")
        say(f"{name}: {counted(query['counters']['rows_out'], 'row')} in {where}")
    for line in summary_lines(lost, checkpoint.folders, report["step"]):
        say(line)
    _fail_on(lost, fail_on_late, fail_on_dead_letters)


def _lost(checkpoint: Checkpoint, before: Mapping[Source, LostRows]) -> dict[Source, LostRows]:
    # Empty where the job has not done a step yet.
    from midstream.pipeline.lost_rows import lost_rows

    try:
        return lost_rows(checkpoint.report(), before)
    except MidstreamError:
        return {}


def _fail_on(lost: Mapping[Source, LostRows], late: bool, dead_letters: bool) -> None:
    from midstream.checkpoint.folders import LATE

    for source, one in lost.items():
        if one.rows > 0 and (late if source[0] == LATE else dead_letters):
            option = "--fail-on-late" if source[0] == LATE else "--fail-on-dead-letters"
            raise Failed(one.text(source), place=option, remedy="correct the rows; the results contain all other rows")


def _run_on_spark(
    job: JobFile,
    trigger: dict[str, Any],
    cores: str,
    master: str | None,
    take_over: bool,
    quiet: bool,
    before: Mapping[Source, LostRows],
) -> dict[str, Any]:
    from midstream.checkpoint.folders import Folders
    from midstream.checkpoint.reader import Checkpoint
    from midstream.cli.spark_job import job_of
    from midstream.storage.places import work_folder

    settings = {"spark.ui.enabled": "true", **job.spark} | ({"spark.master": master} if master else {})
    checkpoint = Checkpoint(Folders(job.checkpoint))
    with RunConsole(quiet, "starting Spark") as console, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # What they say of lost rows is printed.
        console.lost(before)
        console.begin("starting Spark")
        # Spark takes the interrupt for itself when it starts, so ours is set after.
        session = spark_session(
            "midstream",
            cores,
            Path(work_folder(checkpoint.folders.storage)) / "spark.log",
            settings,
            otherwise="run the job with --engine embedded",
        )
        with session as spark, _signals() as interrupted:
            console.begin("Spark runs; opening the streams and the checkpoint")
            running = job_of(spark, job).start(trigger, take_over=take_over)
            console.begin("the job runs; waiting for rows")
            while not running.await_termination(POLL_SECONDS):
                if interrupted:
                    running.stop()
                    break
                console.report(running, running.delayed)
            console.report(running)
            left = [{"command": one.kind, "query": getattr(one, "query", None)} for one in running.not_applied]
    return {**_at_the_end(checkpoint), "not_applied": left}


def _run_embedded(
    job: JobFile,
    pause: float | None,
    threads: int,
    take_over: bool,
    quiet: bool,
    before: Mapping[Source, LostRows],
) -> dict[str, Any]:
    from midstream.checkpoint.folders import Folders
    from midstream.checkpoint.reader import Checkpoint
    from midstream.embedded.job_run import FileJob

    checkpoint = Checkpoint(Folders(job.checkpoint))
    with (
        RunConsole(quiet, "waiting for files") as console,
        _signals() as interrupted,
        FileJob(job, take_over=take_over, threads=threads) as running,
    ):
        engine = running.engine
        console.lost(before)
        running.run(pause, lambda: bool(interrupted), lambda patience: console.report(engine, patience.delayed))
    return _at_the_end(checkpoint)


def _at_the_end(checkpoint: Checkpoint) -> dict[str, Any]:
    try:
        return checkpoint.status(checkpoint.report())
    except NoStepError:  # No rows came, or it was stopped before its first step.
        return checkpoint.status_without_a_step()


def _threads(cores: str) -> int:
    return (os.cpu_count() or 1) if cores == "*" else int(cores)


def _check_cores(cores: str, master: str | None, engine: Host) -> None:
    if engine is Host.EMBEDDED and master is not None:
        raise WrongUse("the embedded engine does not use a Spark master", place="--master", remedy="leave out --master")
    if cores != "*" and not (cores.isascii() and cores.isdigit() and int(cores)):
        raise WrongUse(
            f"{cores!r} is not a number of cores", place="--cores", remedy="give a number, or * for all cores"
        )


@contextmanager
def _signals() -> Iterator[list[int]]:
    # Interrupt and terminate mean: stop the job in order; a second one, at once. The list yielded is empty before.
    interrupted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if interrupted:
            raise KeyboardInterrupt
        interrupted.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
