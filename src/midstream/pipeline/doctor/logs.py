"""Manifests, commands, events, claims and Spark's own log: that each can be read and is of the steps that are done."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.time_log import TIMES_KEPT
from midstream.model.errors import CheckpointError
from midstream.model.manifest import SPARK, Manifest
from midstream.pipeline.commits import STEPS_BETWEEN_TIDYINGS
from midstream.pipeline.doctor.finding import ASIDE, Finding, Patient
from midstream.pipeline.spark_log import offsets_of, unread_offsets
from midstream.storage.local import LocalStorage

STEPS_LATE = 2 * STEPS_BETWEEN_TIDYINGS
"""Steps for which what is not needed any more may stay."""


def manifests(patient: Patient) -> Iterator[Finding]:
    """Check that every kept manifest and savepoint can be read."""
    log, newest = patient.folders.manifests, None
    try:
        newest = log.latest()
    except CheckpointError as error:
        yield Finding("manifests", error.message, error.place, error.remedy)
    for step in log.steps():
        try:
            log.read(step)
        except CheckpointError as error:
            name = error.place.rpartition("/")[2]
            # Without the newest it is not known which of the others count.
            mend = patient.aside(f"manifests/{name}") if newest is not None else None
            yield Finding("manifests", error.message, error.place, f"move it to {ASIDE}: no job needs it", mend=mend)
    for name in patient.folders.savepoints.names():
        try:
            patient.folders.savepoints.read(name)
        except CheckpointError as error:
            yield Finding("manifests", error.message, error.place, error.remedy)


def commands(patient: Patient) -> Iterator[Finding]:
    """Check that every command that no step has taken yet is there and can be read."""
    log, newest = patient.folders.commands, patient.newest
    taken = newest.last_command if newest else 0
    numbers = log.numbers()
    for number in numbers:
        try:
            log.read(number)
        except CheckpointError as error:
            name = f"commands/{error.place.rpartition('/')[2]}"
            yield Finding("commands", error.message, error.place, error.remedy, mend=patient.aside(name))
    try:
        newest_number = log.newest_after(taken)
    except CheckpointError as error:
        name = f"commands/{error.place.rpartition('/')[2]}"
        yield Finding("commands", error.message, error.place, error.remedy, mend=patient.aside(name))
        return
    for number in sorted(set(range(taken + 1, newest_number)) - set(numbers)):
        yield Finding(
            "commands",
            f"command {number} is missing",
            log.storage.url,
            "restore the file, or give the command again, unless you have withdrawn it",
            harmless=True,
        )


def events(patient: Patient) -> Iterator[Finding]:
    """Check that every file of events can be read."""
    log = patient.folders.events
    for name in log.names():
        try:
            log.check(name)
        except CheckpointError as error:
            yield Finding("events", error.message, error.place, error.remedy, mend=patient.aside(f"events/{name}"))


def files_read(folders: Folders, newest: Manifest, stream: str) -> dict[str, int]:
    """Map each file that steps of the embedded engine read of a stream to the step, or to a later step."""
    read = dict.fromkeys(newest.published.read.get(stream, ()), newest.step)
    return read | folders.sources(stream).by_file(newest.time_line, newest.step)


def changed_files(folders: Folders, newest: Manifest) -> Iterator[tuple[str, str, int]]:
    """Yield each local file that changed after a step of the embedded engine read it, with its stream and this step."""
    ended = {one.step: one.ended for one in folders.times.newest(newest.time_line, newest.step, TIMES_KEPT)}
    steps = sorted(ended)
    for stream in newest.streams:
        for file, step in files_read(folders, newest, stream).items():
            # The times of older steps are not kept; a later time is certain, too.
            at = bisect_left(steps, step)
            with suppress(OSError, ValueError):
                if at < len(steps) and os.path.isabs(file) and os.path.getmtime(file) > ended[steps[at]]:
                    yield stream, file, step


def files(patient: Patient) -> Iterator[Finding]:
    """Check that no file has changed since a step read it."""
    with suppress(CheckpointError):  # A finding of another check.
        for stream, file, step in changed_files(patient.folders, patient.newest) if patient.newest else ():
            problem = f"a file of stream {stream} has changed after step {step} read it; the job reads each file once"
            yield Finding("files", problem, file, "if rows were added, write them to a new file", harmless=True)


def sources(patient: Patient) -> Iterator[Finding]:
    """Check that every note of the files that an embedded job has read can be read."""
    for stream in patient.newest.streams if patient.newest else ():
        log = patient.folders.sources(stream)
        for name in log.names():
            try:
                log.check(name)
            except CheckpointError as error:
                yield Finding("sources", error.message, error.place, error.remedy)


def tidying(patient: Patient) -> Iterator[Finding]:
    """Find what keeps a job from removing old files; the job itself passes over it."""
    manifest = patient.newest
    if manifest is None or not manifest.job:
        return
    try:
        patient.folders.kept()
    except CheckpointError as error:
        problem = f"the job removes no old files, because one manifest cannot be read: {error.message}"
        yield Finding("tidying", problem, error.place, error.remedy, harmless=True)
    for name in ("store", "manifests", "events", "commands"):
        storage = patient.folders.storage.at(name)
        if (
            isinstance(storage, LocalStorage)
            and storage.root.is_dir()
            and not os.access(storage.root, os.W_OK | os.X_OK)
        ):
            problem = "nothing can be removed here by this user, so what is not needed any more stays"
            yield Finding("tidying", problem, storage.url, "give the user of the job the right to write", harmless=True)
    overdue = patient.folders.events.overdue(manifest.time_line, manifest.step - STEPS_LATE)
    if overdue:
        yield Finding(
            "tidying",
            f"events of steps of long ago are there still, in files such as {overdue[0]} ({len(overdue)} in all)",
            patient.folders.events.storage.url,
            "mend what the other findings say; the job then removes them",
            harmless=True,
        )


def claims(patient: Patient) -> Iterator[Finding]:
    """Check that the newest claim on the checkpoint can be read."""
    try:
        patient.folders.manifests.epochs.newest()
    except CheckpointError as error:
        yield Finding("claims", error.message, error.place, error.remedy)


def spark(patient: Patient) -> Iterator[Finding]:
    """Check that Spark's offsets are those of the steps that are done."""
    manifest = patient.newest
    if manifest is None or not manifest.job or manifest.published.host != SPARK or manifest.step < 0:
        return
    if patient.folders.is_remote:
        if manifest.published.spark is None:
            problem, remedy = "the newest manifest does not carry Spark's log", "go back to a step that does"
            yield Finding("spark", problem, patient.folders.root, remedy)
        return
    offsets = offsets_of(patient.folders.spark)
    if manifest.step not in offsets:
        yield Finding(
            "spark",
            f"Spark's log does not record where step {manifest.step}, the newest, ended",
            patient.folders.spark,
            "restore the folder, or go back to a step in the log",
        )
    for place in unread_offsets(patient.folders.spark, manifest.step):
        yield Finding(
            "spark",
            f"Spark's log of a source does not reach the end of the newest step, {manifest.step}",
            place,
            "restore the folder: the job would not start, or would read files again",
        )
    given_up = max((epoch.abandoned or -1 for epoch in manifest.epochs), default=-1)
    if not patient.is_held and max(offsets, default=-1) > max(manifest.step, given_up) + 1:
        yield Finding(
            "spark",
            f"Spark has begun batch {max(offsets)}, but the newest manifest is of step {manifest.step}",
            patient.folders.spark,
            "restore the folder `manifests`; otherwise those steps are done again, if the sinks are not ahead",
        )
