"""Spark's own log of a job, its offsets and commits, a copy of its own for every driver.

Spark takes a batch for done once it has noted that, and refuses a log that two queries write. So each epoch goes on
with a copy of what the last one left, cut off after the step that the checkpoint is at, and no driver ever meets the
files of another.
"""

from __future__ import annotations

import os
import shutil

from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.state.store.disk import cannot_write, names_in
from midstream.state.store.files import epoch_folder


def begin_log(root: str, epoch: int, manifest: Manifest) -> str:
    """The folder of an epoch's log below `root`: a copy of the former one, without what was done after the manifest.

    Commonly there is none such, or one that was begun and not done: Spark does it again, with the same input. After the
    job went back there are more. Raises `CheckpointError` where no former log knows where the manifest's step ended.
    """
    target = f"{root}/{epoch_folder(epoch)}"
    former = _former(root, manifest.step)
    try:
        if former is not None:
            temporary = f"{target}.tmp"
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.copytree(former, temporary, ignore=_others)
            if max(_batches(f"{temporary}/commits"), default=-1) > manifest.step:
                _cut_off(temporary, manifest.step)
            os.replace(temporary, target)
        return target
    except OSError as error:
        raise cannot_write(error, target) from error


def forget_former_logs(root: str, epoch: int) -> None:
    """Remove the logs of former epochs below `root`, and that of the time before there were epochs."""
    for name in names_in(root):
        if name.startswith("epoch=") and name >= epoch_folder(epoch):
            continue
        shutil.rmtree(f"{root}/{name}", ignore_errors=True)
        if os.path.isfile(f"{root}/{name}"):
            os.unlink(f"{root}/{name}")


def has_committed(log: str, step: int) -> bool:
    """Whether Spark knows that a step is done to the end, its sinks filled."""
    return step in _batches(f"{log}/commits")


def has_run(root: str) -> bool:
    """Whether Spark has begun a batch of the job."""
    return any(_batches(f"{log}/offsets") for log in _logs(root))


def _former(root: str, step: int) -> str | None:
    """The newest log that knows where a step ended; None before the first step."""
    logs = _logs(root)
    for log in logs:
        if step in _batches(f"{log}/offsets"):
            return log
    if step >= 0:
        raise CheckpointError(
            f"Spark does not know where step {step}, the newest, ended",
            place=root,
            remedy="restore the folder, go back to a newer step, or begin with another checkpoint",
        )
    return None


def _logs(root: str) -> list[str]:
    """The logs of all epochs, the newest first; before there were epochs the log was right in the root."""
    epochs = sorted((n for n in names_in(root) if n.startswith("epoch=") and not n.endswith(".tmp")), reverse=True)
    return [*(f"{root}/{name}" for name in epochs), root]


def _cut_off(log: str, step: int) -> None:
    for kind in ("offsets", "commits"):
        for batch in _batches(f"{log}/{kind}"):
            if batch > step:
                os.unlink(f"{log}/{kind}/{batch}")


def _batches(folder: str) -> set[int]:
    return {int(name) for name in names_in(folder) if name.isdigit()}


def _others(folder: str, names: list[str]) -> set[str]:
    """What is not to be copied: logs of epochs, files that are being written, checksums of files."""
    return {name for name in names if name.startswith("epoch=") or name.endswith((".tmp", ".crc"))}
