"""`midstream check`: report the faults of a job file, and start nothing."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.cli.arguments import AllowOperator, AllowSource, AsJson, CommandGroup, EngineIfGiven, Host, placed
from midstream.cli.output import print_json, say
from midstream.model.errors import MidstreamError
from midstream.model.words import counted

if TYPE_CHECKING:
    from midstream.cli.checked_job import CheckedJob
    from midstream.sql.job_file import JobFile


@placed(CommandGroup.RUN, "midstream check job.toml", "midstream check job.toml --json")
def check(
    job_file: Annotated[Path, typer.Argument(metavar="JOB.toml", help="The job file.", dir_okay=False)],
    engine: EngineIfGiven = None,
    allow_operator: AllowOperator = None,
    allow_source: AllowSource = None,
    as_json: AsJson = False,
) -> None:
    """Find all faults in the streams, queries, plans, sinks, settings and checkpoint of a job before it runs.

    The command starts no job, writes no file and does not need Spark. `midstream run` makes all these checks before it
    starts a job. The exit code is 2 if there is a fault.
    """
    job, found = looked_at(job_file, engine, allow_operator, allow_source)
    if as_json:
        print_json(_json(job, found))
    elif not found.faults and job is not None:
        for warning in found.warnings:
            say(f"warning: {warning}")
        read = f"{counted(len(job.streams), 'stream')} and {counted(len(job.queries), 'query')}"
        say(f"{job_file}: no fault found in {read}")
        if found.unknown:
            say(
                f"not checked: {', '.join(found.unchecked) or 'no query'}, because only Spark can read the columns of "
                f"{', '.join(found.unknown)}. To check them here, declare a schema"
            )
    elif found.unchecked:
        who = "it reads" if len(found.unchecked) == 1 else "they read"
        say(f"not checked: {', '.join(found.unchecked)}. Mend the streams and queries that {who}, then check again")
    refuse(found, quiet=as_json)


def looked_at(
    path: Path, engine: Host | None, operators: list[str] | None, sources: list[str] | None
) -> tuple[JobFile | None, CheckedJob]:
    """Read and check a job file, and allow the operators and sources that the command line names.

    Returns: the job and the findings of the check. If midstream cannot read the file, the job is None.
    """
    from midstream.cli.checked_job import CheckedJob, checked_job
    from midstream.model.allowed import allow_operators, allow_sources
    from midstream.sql.job_file import read_parts

    read = read_parts(path)
    allow_operators(*(operators or ()))
    allow_sources(*(sources or ()))
    if read.job is None:
        return None, CheckedJob(list(read.faults))
    embedded = _is_embedded(read.job) if engine is None else engine is Host.EMBEDDED
    found = checked_job(read.job, embedded, read.unread)
    found.faults = _by_line([*read.faults, *found.faults])
    return read.job, found


def _is_embedded(job: JobFile) -> bool:
    # Whether the embedded engine has begun the job; a checkpoint that cannot be read is a fault that is found later.
    from midstream.checkpoint.folders import Folders
    from midstream.model.manifest import EMBEDDED
    from midstream.storage.places import located

    with suppress(MidstreamError):
        folders = Folders(located(job.checkpoint))
        newest = folders.manifests.latest() if folders.storage.names() else None
        return newest is not None and newest.published.host == EMBEDDED
    return False


def _by_line(faults: list[MidstreamError]) -> list[MidstreamError]:
    # In the order of the files and lines that their places name.
    places = [re.match(r"(.*?), line (\d+)", fault.place) for fault in faults]
    files = list(dict.fromkeys(place[1] for place in places if place))
    keys = [(files.index(place[1]), int(place[2])) if place else (-1, 0) for place in places]
    return [fault for _, fault in sorted(zip(keys, faults, strict=True), key=lambda one: one[0])]


def refuse(found: CheckedJob, quiet: bool = False) -> None:
    """Raise all faults of a job as one error, if there are any."""
    from midstream.model.errors import SinkError, WriteError
    from midstream.sql.job_file import JobFileError

    if quiet and found.faults:
        raise typer.Exit(2)
    if len(found.faults) == 1:
        (fault,) = found.faults
        if isinstance(fault, SinkError) and not isinstance(fault, WriteError):  # It is the file's fault, no disk's.
            raise JobFileError(fault.message, place=fault.place, remedy=fault.remedy) from fault
        raise fault
    if found.faults:
        raise JobFileError.of(found.faults)


def _json(job: JobFile | None, found: CheckedJob) -> dict[str, Any]:
    faults = [
        {"error": type(one).__name__, "message": one.message, "place": one.place, "remedy": one.remedy}
        for one in found.faults
    ]
    named = {} if job is None else {"streams": list(job.streams), "queries": list(job.queries)}
    return {"faults": faults, "warnings": found.warnings, **named, "not_looked_into": found.unchecked}
