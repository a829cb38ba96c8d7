"""Spark's own log of a job, its offsets and commits, a copy of its own for every driver.

Spark takes a batch for done once it has noted that, and refuses a log that two queries write. So each epoch goes on
with a copy of what the last one left, cut off after the step that the checkpoint is at, and no driver ever meets the
files of another.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from contextlib import suppress

from midstream.model.errors import CheckpointError
from midstream.model.manifest import Manifest
from midstream.storage.disk import Writing, names_in, sync, sync_tree, write_whole
from midstream.storage.files import epoch_folder

NOTHING_READ = "-"
"""What Spark's offsets say of a source that has read nothing."""

_SAVEPOINT = "savepoint="
_BATCH = re.compile(r"\d{1,18}", re.ASCII)
_LOG = re.compile(r"epoch=\d+", re.ASCII)
_COMPACT = re.compile(r"(\d{1,9})\.compact", re.ASCII)

MOST = 1 << 24
"""No source of files has seen as many batches."""


def begin_log(root: str, epoch: int, manifest: Manifest, *, durable: bool = True) -> str:
    """Begin the log of an epoch below `root` and return its folder: a copy of the former log, up to the manifest's
    step.

    What was done after the manifest is left out. Commonly there is nothing, or one step that was begun and not done:
    Spark does it again, with the same input. After the job went back there are more. A `durable` copy survives the loss
    of power, since the former one will be removed. Raises `CheckpointError` where no former log knows where the
    manifest's step ended.
    """
    target = f"{root}/{epoch_folder(epoch)}"
    former = _former(root, manifest.step)
    if former is None:
        return target
    with Writing(target):
        temporary = f"{target}.tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(former, temporary, ignore=_others)
        if max(_batches(f"{temporary}/commits"), default=-1) > manifest.step:
            _cut_off(temporary, manifest.step)
        _put(temporary, target, durable)
    return target


def fit_sources(log: str, sources: int, *, durable: bool = True) -> None:
    """Make a log that no query writes have so many sources: new ones, which come last, have read nothing yet.

    Spark has a line of offsets for each source, "-" for nothing, and goes on only with as many sources as lines. A log
    that was cut off before a stream was added has lines too many, of sources that had read nothing by then; what such a
    source had seen is removed.
    """
    try:
        for batch in sorted(_batches(f"{log}/offsets")):
            path = f"{log}/offsets/{batch}"
            with open(path, encoding="utf-8", newline="") as file:
                version, settings, *ends = file.read().splitlines()
            fitted = [*ends, *[NOTHING_READ] * (sources - len(ends))]
            if len(fitted) > sources and set(fitted[sources:]) == {NOTHING_READ}:
                fitted = fitted[:sources]
            if fitted != ends:
                write_whole(path, "\n".join([version, settings, *fitted]).encode(), fsync=durable)
        newest = max(_batches(f"{log}/offsets"), default=None)
        for number, end in enumerate(_ends(f"{log}/offsets/{newest}") if newest is not None else ()):
            if end == NOTHING_READ:
                shutil.rmtree(f"{log}/sources/{number}", ignore_errors=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"Spark's log of offsets cannot be read: {error}", place=log, remedy="go back to an older step"
        ) from error


def _ends(path: str) -> list[str]:
    # By source, as Spark has it.
    with open(path, encoding="utf-8", newline="") as file:
        return file.read().splitlines()[2:]


def forget_former_logs(root: str, epoch: int) -> None:
    """Remove the logs of former epochs below `root`, and the log that a fork began with."""
    for name in names_in(root):
        if name.startswith(_SAVEPOINT) or (name.startswith("epoch=") and name >= epoch_folder(epoch)):
            continue
        shutil.rmtree(f"{root}/{name}", ignore_errors=True)
        if os.path.isfile(f"{root}/{name}"):
            with suppress(OSError):  # What a file system keeps of a file that is read cannot be removed.
                os.unlink(f"{root}/{name}")


def keep_log(root: str, savepoint: str, step: int) -> None:
    """Keep what Spark knows of a step as long as its savepoint is there. Does nothing for a job that Spark does not
    run."""
    if has_run(root):
        _copy(_former(root, step), f"{root}/{_SAVEPOINT}{savepoint}", step)


def drop_log(root: str, savepoint: str) -> None:
    """Remove what was kept for a savepoint."""
    shutil.rmtree(f"{root}/{_SAVEPOINT}{savepoint}", ignore_errors=True)


def fork_log(root: str, target: str, step: int) -> None:
    """Begin the log of another job below `target`, which goes on after a step of this one."""
    if has_run(root):
        _copy(_former(root, step), target, step)
        # Spark runs no two queries of one id at once.
        write_whole(f"{target}/metadata", json.dumps({"id": str(uuid.uuid4())}).encode(), fsync=True)


def offsets_of(root: str) -> set[int]:
    """Return the steps whose ends Spark knows."""
    return {step for log in _logs(root) for step in _batches(f"{log}/offsets")}


def unread_offsets(root: str, step: int) -> list[str]:
    """Find the sources of files whose own log does not reach to where a step ended by Spark's offsets.

    Such a source would read again what came after. Spark numbers what a source of files has seen, a file of its log
    each number; now and then one holds all before.
    """
    log = next((log for log in _logs(root) if step in _batches(f"{log}/offsets")), None)
    if log is None:
        return []
    found = []
    for number, end in enumerate(_file_offsets(f"{log}/offsets/{step}")):
        folder = f"{log}/sources/{number}"
        missing = _first_missing(folder, end)
        if missing is not None:
            found.append(f"{folder}/{missing}")
    return found


def _first_missing(folder: str, end: int) -> int | None:
    # A compact file has all numbers before it.
    compact = {int(found[1]) for name in names_in(folder) if (found := _COMPACT.fullmatch(name))}
    there = _batches(folder) | compact
    first = max((number for number in compact if number <= end), default=0)
    return next((number for number in range(first, end + 1) if number not in there), None)


def _file_offsets(path: str) -> list[int]:
    # By source; -1 for other sources than files, and where none is said.
    try:
        with open(path, encoding="utf-8") as file:
            _, _, *lines = file.read().splitlines()
        values = [json.loads(line) if line.startswith("{") else {} for line in lines]
    except (OSError, ValueError):
        return []
    ends = [value.get("logOffset") if isinstance(value, dict) else None for value in values]
    return [end if isinstance(end, int) and 0 <= end < MOST else -1 for end in ends]


def has_committed(log: str, step: int) -> bool:
    """Return whether Spark knows that a step is done to the end, its sinks filled."""
    return step in _batches(f"{log}/commits")


def has_run(root: str) -> bool:
    """Return whether Spark has begun a batch of the job."""
    return any(_batches(f"{log}/offsets") for log in _logs(root))


def _copy(log: str | None, target: str, step: int) -> None:
    if log is None:
        return
    temporary = f"{target}.tmp"
    with Writing(target):
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(log, temporary, ignore=_others)
        _cut_off(temporary, step)
        _put(temporary, target, durable=True)


def _put(temporary: str, target: str, durable: bool) -> None:
    # The files of the copy must be durable before its name is.
    if durable:
        sync_tree(temporary)
    os.replace(temporary, target)
    if durable:
        sync(os.path.dirname(target))


def _former(root: str, step: int) -> str | None:
    # None before the first step.
    logs = _logs(root)
    for log in logs:
        if step in _batches(f"{log}/offsets"):
            return log
    if step >= 0:
        raise CheckpointError(
            f"Spark's log does not record where step {step}, the newest, ended",
            place=root,
            remedy="restore the folder, go back to another step, or begin with another checkpoint",
        )
    return None


def _logs(root: str) -> list[str]:
    # The newest first; the log that a fork begins with is right in the root.
    epochs = sorted(filter(_LOG.fullmatch, names_in(root)), reverse=True)
    kept = sorted(name for name in names_in(root) if name.startswith(_SAVEPOINT) and not name.endswith(".tmp"))
    return [*(f"{root}/{name}" for name in (*epochs, *kept)), root]


def _cut_off(log: str, step: int) -> None:
    for kind in ("offsets", "commits"):
        for batch in _batches(f"{log}/{kind}"):
            if batch > step:
                os.unlink(f"{log}/{kind}/{batch}")


def _batches(folder: str) -> set[int]:
    return {int(name) for name in names_in(folder) if _BATCH.fullmatch(name)}


def _others(folder: str, names: list[str]) -> set[str]:
    # Logs of epochs, files that are being written and checksums of files are not copied.
    return {name for name in names if name.startswith(("epoch=", _SAVEPOINT)) or name.endswith((".tmp", ".crc"))}
