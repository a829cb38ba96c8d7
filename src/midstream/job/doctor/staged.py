"""Staging: that nothing is there which no step will ever commit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from midstream.job.doctor.finding import Finding, Patient
from midstream.job.outputs import Outputs
from midstream.sinks.contract import staged_in, step_of


def staged(patient: Patient) -> Iterator[Finding]:
    """Find what is staged and will never be committed.

    Attempts of tasks that were broken off, or came second, leave what they wrote; the next start removes it. What is of
    no epoch of this job is only named.
    """
    manifest = patient.newest
    if manifest is None or not manifest.job:
        return
    due = {str(file) for _, _, file, _ in manifest.published.get("files", ())}
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
