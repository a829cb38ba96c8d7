"""Sinks, late rows, dead letters and staging: that each has what the checkpoint says, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from midstream.checkpoint.folders import DEAD_LETTERS, LATE, REJECTED
from midstream.model.errors import MidstreamError
from midstream.model.manifest import Manifest
from midstream.pipeline.doctor.finding import Finding, Patient
from midstream.pipeline.outputs import RESULTS, JobOutput, Outputs
from midstream.sinks import FileSink, Sink
from midstream.sinks.contract import anything, staged_in, step_of
from midstream.sinks.formats import parquet_rows
from midstream.storage.places import storage_at


def sinks(patient: Patient) -> Iterator[Finding]:
    """Check that every sink has the steps of this time line that are done, and no others."""
    manifest = patient.newest
    for output, sink in patient.sinks():
        assert manifest is not None
        try:
            yield from _ahead(patient, manifest, output, sink)
            yield from _behind(patient, manifest, output, sink)
        except MidstreamError as error:
            yield Finding("sinks", error.message, error.place or output.place, error.remedy)


def _ahead(patient: Patient, manifest: Manifest, output: JobOutput, sink: Sink) -> Iterator[Finding]:
    stamp, line = sink.newest(output.name), manifest.time_line
    if stamp is None:
        return
    if line.gave_up(stamp):
        yield Finding(
            "sinks",
            f"step {stamp.step} is there, which the job gave up when it went back",
            output.place,
            "take it out; the next start does so",
            mend=lambda: sink.forget_after(output.name, manifest.step, line.gave_up),
        )
    elif stamp.job not in ("", manifest.job):
        problem = f"the sink has results of another job, {stamp.job}, up to step {stamp.step}"
        yield Finding("sinks", problem, output.place, "give the query a sink of its own, or empty this one")
    elif stamp.step > manifest.step or (stamp.job and not line.has(stamp)):
        if patient.is_held and (patient.folders.manifests.latest() or manifest).step >= stamp.step:
            return  # The job has done a step meanwhile.
        yield Finding(
            "sinks",
            f"the sink has step {stamp.step}, which is not of this checkpoint: its newest step is {manifest.step}",
            output.place,
            f"if an older checkpoint was restored: midstream rewind {patient.folders.root} {manifest.step}",
        )


def _behind(patient: Patient, manifest: Manifest, output: JobOutput, sink: Sink) -> Iterator[Finding]:
    # The newest step may not have been delivered yet: the next driver does that.
    due = [one for called, one in patient.kept.items() if called.startswith("step") and one.step < manifest.step]
    due = [one for one in due if any((kind, name) == output for kind, name, *_ in one.published.files)]
    # Steps from before the query got another sink are in the sink of that time.
    steps = [one.step for one in due if _target(output, one) == _target(output, manifest)]
    if isinstance(sink, FileSink):
        missing = [step for step in steps if not sink.has(step)]
    else:
        newest = sink.newest(output.name)
        missing = [step for step in steps if newest is not None and step > newest.step]
    if missing:
        yield Finding(
            "sinks",
            f"results of step {', '.join(map(str, missing))} are missing",
            output.place,
            f"restore them, or have them done again: midstream rewind {patient.folders.root} {missing[0] - 1}",
        )


def _target(output: JobOutput, manifest: Manifest) -> object:
    if output.kind == RESULTS:
        sink = manifest.queries[output.name].sink or {}
        return sink.get("path", sink)
    return manifest.published.dead_letter_sinks.get(output.name)


def rejected(patient: Patient) -> Iterator[Finding]:
    """Check that every file of late rows and dead letters can be read."""
    if patient.newest is None:
        return
    steps = range(patient.newest.step + 1)
    for kind in (LATE, DEAD_LETTERS, REJECTED):
        for folder in sorted(patient.folders.storage.names(kind)):
            place = f"{patient.folders.root}/{kind}/{folder}"
            storage = storage_at(place)
            for _, name in FileSink(place).files(steps, anything):
                try:
                    parquet_rows(storage.read(name), storage.place(name))
                except FileNotFoundError:
                    continue  # The job has gone back to an earlier step meanwhile.
                except MidstreamError as error:
                    yield Finding("rejected", error.message, error.place, error.remedy)


def staged(patient: Patient) -> Iterator[Finding]:
    """Find what is staged and will never be committed.

    Attempts of tasks that were broken off, or came second, leave what they wrote; the next start removes it. What is of
    no epoch of this job is only named.
    """
    manifest = patient.newest
    if manifest is None or not manifest.job:
        return
    due = {str(file) for _, _, file, _ in manifest.published.files}
    due_in, known = staged_in(manifest.time_line.stamp(manifest.step)), {epoch.token for epoch in manifest.epochs}
    running = manifest.epochs[-1].token if patient.is_held and manifest.epochs else None
    for storage in Outputs(patient.folders, {}).staged(manifest):
        left, foreign = list[str](), list[str]()
        for name, _ in storage.walk():
            folder, _, file = name.rpartition("/")
            token, _, step = folder.rpartition("/")
            if step_of(step) < 0 or (token == running and step_of(step) >= manifest.step):
                continue
            is_due = file in due if folder == due_in else folder == f"{due_in}.ready"
            if not is_due:
                (left if token in known or not token else foreign).append(name)
        if left:
            yield Finding(
                "staged",
                f"{len(left)} files were staged that no step will commit, such as {left[0]}",
                storage.url,
                "remove them; the next start of the job does so",
                harmless=True,
                mend=partial(storage.remove, left),
            )
        if foreign:
            yield Finding(
                "staged",
                f"{len(foreign)} files are staged there by no epoch of this job, such as {foreign[0]}",
                storage.url,
                "see whether another job writes there; if none does, remove them",
                harmless=True,
            )
