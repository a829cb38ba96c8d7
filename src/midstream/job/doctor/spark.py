"""Spark's own log: that it is of the steps of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from midstream.job.carried_log import CARRIED
from midstream.job.doctor.finding import Finding, Patient
from midstream.job.spark_log import offsets_of, unread_offsets
from midstream.model.manifest import HOST, SPARK


def spark(patient: Patient) -> Iterator[Finding]:
    """Check that Spark's offsets are those of the steps that are done."""
    manifest = patient.newest
    if manifest is None or not manifest.job or manifest.published.get(HOST, SPARK) != SPARK or manifest.step < 0:
        return
    if patient.folders.is_remote:
        if CARRIED not in manifest.published:
            problem, remedy = "the newest manifest does not carry Spark's log", "go back to a step that does"
            yield Finding("spark", problem, patient.folders.root, remedy)
        return
    offsets = offsets_of(patient.folders.spark)
    if manifest.step not in offsets:
        yield Finding(
            "spark",
            f"Spark does not know where step {manifest.step}, the newest, ended",
            patient.folders.spark,
            "restore the folder, or go back to a step that it knows",
        )
    for place in unread_offsets(patient.folders.spark, manifest.step):
        yield Finding(
            "spark",
            f"Spark's log of a source does not reach to where step {manifest.step}, the newest, ended",
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
