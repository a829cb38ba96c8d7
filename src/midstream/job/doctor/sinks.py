"""Sinks: that they have what the checkpoint says it has put there."""

from __future__ import annotations

from collections.abc import Iterator

from midstream.job.doctor.finding import Finding, Patient
from midstream.job.outputs import JobOutput
from midstream.model.errors import MidstreamError
from midstream.model.manifest import Manifest
from midstream.sinks import FileSink, Sink


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
    # The newest step may not have been delivered yet: whoever takes the checkpoint up does that.
    due = [one for called, one in patient.kept.items() if called.startswith("step") and one.step < manifest.step]
    steps = [one.step for one in due if any((k, n) == output for k, n, *_ in one.published.get("files", ()))]
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
