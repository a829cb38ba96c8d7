"""Logs of a job's steps, a file of JSON lines a step: what happened, and other things that a host notes."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from midstream.checkpoint.manifest_file import fits
from midstream.model.codec import encode
from midstream.model.errors import CheckpointError
from midstream.model.events import Event
from midstream.model.manifest import Manifest
from midstream.model.time_line import TimeLine
from midstream.storage.storage_contract import Storage

STEPS_KEPT = 1_000
_FILE = re.compile(r"(?:(\d+)-)?(\d+)\.jsonl")
JsonObject = dict[str, Any]


class StepLog(ABC):
    """JSON objects noted by steps. A file bears the epoch and the step it is of, so that a driver which has lost the
    checkpoint overwrites nothing; what steps have left that do not count is passed over.
    """

    shape: ClassVar[Mapping[str, type]]
    """The fields of each object and their types, in the notation of `fits`."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._tidied: int | None = None

    def note(self, step: int, line: TimeLine, values: Iterable[JsonObject]) -> None:
        """Write what a step notes; a step that is repeated in its epoch replaces it."""
        lines = "".join(json.dumps(value) + "\n" for value in values)
        self.storage.write(f"{_epoch(line, step):06d}-{step:012d}.jsonl", lines.encode())

    def by_step(self, line: TimeLine, last: int, after: int = -1) -> Iterator[tuple[int, list[JsonObject]]]:
        """Yield what the steps after `after` up to `last` have noted, in order."""
        for at, name in self._counting(line, last, after):
            yield at, self._values(name)

    def forget(self, line: TimeLine, steps: Iterable[int]) -> None:
        """Remove what steps have noted."""
        self.storage.remove(f"{_epoch(line, step):06d}-{step:012d}.jsonl" for step in steps)

    def _counting(self, line: TimeLine, last: int, after: int = -1) -> list[tuple[int, str]]:
        found: dict[int, tuple[int, str]] = {}
        for name, (epoch, at) in self._files().items():
            if after < at <= last and _counts(line, epoch, at):
                found[at] = max(found.get(at, (-1, "")), (epoch, name))
        return [(at, found[at][1]) for at in sorted(found)]

    def names(self) -> list[str]:
        """List the names of all files of the log, in order."""
        return sorted(self._files())

    def check(self, name: str) -> None:
        """Raise `CheckpointError` where a file of the log cannot be read."""
        self._values(name)

    def _values(self, name: str) -> list[JsonObject]:
        try:
            lines = self.storage.read(name).to_pybytes().decode(errors="replace").splitlines()
        except FileNotFoundError:  # removed between the listing and the reading
            return []
        try:
            found = [json.loads(line) for line in lines if line.strip()]
            if not all(fits(one, self.shape) for one in found):
                raise ValueError("a line of the file does not have the fields of this log")
            return found
        except (ValueError, RecursionError) as error:
            what, remedy = self._damaged(name)
            raise CheckpointError(
                f"{what} cannot be read: {type(error).__name__}", place=self.storage.place(name), remedy=remedy
            ) from error

    @abstractmethod
    def _damaged(self, name: str) -> tuple[str, str]:
        """Return what a damaged file holds, and the remedy, for the message."""

    def _files(self) -> dict[str, tuple[int, int]]:
        names = self.storage.names()
        return {name: (int(found[1] or 0), int(found[2])) for name in names if (found := _FILE.fullmatch(name))}


class FilesRead(StepLog):
    """Which files of a stream the steps of an embedded job have read.

    >>> from midstream.storage.local import LocalStorage
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = FilesRead(LocalStorage(folder))
    ...     log.write(7, TimeLine("j"), ["/in/a.parquet"])
    ...     log.by_file(TimeLine("j"), last=7)
    {'/in/a.parquet': 7}
    """

    shape: ClassVar[Mapping[str, type]] = {"file": str}

    def write(self, step: int, line: TimeLine, files: Iterable[str]) -> None:
        """Write which files a step has read."""
        self.note(step, line, ({"file": file} for file in files))

    def by_file(self, line: TimeLine, last: int) -> dict[str, int]:
        """Map each file that was read up to a step to the last step that read it."""
        return {note["file"]: step for step, notes in self.by_step(line, last) for note in notes}

    def _damaged(self, name: str) -> tuple[str, str]:
        before = int(name.removesuffix(".jsonl").rpartition("-")[2]) - 1
        return (
            "the notes of files that were read",
            f"restore the file, or do its step again: midstream rewind CKPT {before}; if you only remove the file, "
            "the job reads the files of its step again",
        )


STEPS_IN_A_FILE = 8
"""Steps of an embedded engine whose events go into one file of the log, that of the last of them: to make a file for
each would take a tenth of a small step's time.
"""


class EventLog(StepLog):
    """The events of a job's steps, for as many steps as are kept.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.model.events import LanesRescaled
    >>> from midstream.storage.local import LocalStorage
    >>> with TemporaryDirectory() as folder:
    ...     log = EventLog(LocalStorage(folder))
    ...     log.write(7, TimeLine("j"), [LanesRescaled(7, 1, 2)])
    ...     list(log.read(TimeLine("j"), last=7))
    [{'event': 'lanes_rescaled', 'step': 7, 'old': 1, 'new': 2}]
    """

    shape: ClassVar[Mapping[str, type]] = {"event": str, "step": int}

    def _damaged(self, name: str) -> tuple[str, str]:
        return "the events", "remove the file: the events of its step are then missing, nothing else"

    def write(self, step: int, line: TimeLine, events: Iterable[Event]) -> None:
        """Write what happened in a step; a step that is repeated in its epoch writes the same."""
        self.note(step, line, map(encode, events))

    def write_together(self, manifest: Manifest, events: Iterable[Event]) -> list[JsonObject]:
        """Write the events of a step together with those that manifests carry of earlier steps.

        Returns: the events that the manifest of this step must carry instead, as JSON values.
        """
        waiting = [*manifest.published.events, *map(encode, events)]
        if manifest.step % STEPS_IN_A_FILE:
            return waiting
        self.note(manifest.step, manifest.time_line, waiting)
        return []

    def read(self, line: TimeLine, last: int, after: int = -1) -> Iterator[JsonObject]:
        """Yield the events of the steps after `after` up to `last`, oldest first, as JSON values."""
        for _, events in self.by_step(line, last, after):
            yield from (event for event in events if event["step"] > after)

    def newest(self, line: TimeLine, last: int, count: int) -> list[JsonObject]:
        """Read the last `count` events of the steps up to `last`, oldest first, as JSON values."""
        found = list[JsonObject]()
        for _, name in reversed(self._counting(line, last)):
            if len(found) >= count:
                break
            found = self._values(name) + found
        return found[-count:] if count else []

    def overdue(self, line: TimeLine, step: int) -> list[str]:
        """List the files that `tidy` would have removed by a step."""
        kept = {name for _, name in self._counting(line, step, step - STEPS_KEPT)}
        return sorted(
            name for name, at in self._files().items() if at <= (_epoch(line, step), step) and name not in kept
        )

    def tidy(self, line: TimeLine, step: int) -> None:
        """Remove the files of steps that are no longer kept, and of steps that do not count."""
        if self._tidied is None:
            self.storage.remove(self.overdue(line, step))
        else:  # Nobody but this writer has added any since, and it knows their names.
            self.forget(line, range(max(0, self._tidied - STEPS_KEPT + 1), step - STEPS_KEPT + 1))
        self._tidied = step


def _counts(line: TimeLine, epoch: int, step: int) -> bool:
    # The steps before the first known epoch count in the last older epoch that noted something.
    if line.epoch_of(step) is None and line.epochs:
        return epoch < line.epochs[0].number
    return epoch == _epoch(line, step)


def _epoch(line: TimeLine, step: int) -> int:
    epoch = line.epoch_of(step)
    return epoch.number if epoch else 0
