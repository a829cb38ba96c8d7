"""What happened in each step of a job: a file of JSON lines a step, for as many steps as are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from midstream.model.codec import encode
from midstream.model.errors import CheckpointError
from midstream.model.events import Event
from midstream.model.time_line import TimeLine
from midstream.state.store.storage import Storage

STEPS_KEPT = 1_000
_FILE = re.compile(r"(?:(\d+)-)?(\d+)\.jsonl")
JsonObject = dict[str, Any]


class EventLog:
    """The events of a job's steps. A file bears the epoch and the step it is of, so that a driver which has lost the
    checkpoint overwrites nothing; what steps have left that do not count is passed over, and removed in time.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.model.events import LanesRescaled
    >>> from midstream.state.store.local import LocalStorage
    >>> with TemporaryDirectory() as folder:
    ...     log = EventLog(LocalStorage(folder))
    ...     log.write(7, TimeLine("j"), [LanesRescaled(7, 1, 2)])
    ...     list(log.read(TimeLine("j"), last=7))
    [{'event': 'lanes_rescaled', 'step': 7, 'old': 1, 'new': 2}]
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def is_there(self) -> bool:
        """Whether any step has written."""
        return bool(self._files())

    def write(self, step: int, line: TimeLine, events: Iterable[Event]) -> None:
        """Write what happened in a step; one that is done again in its epoch writes the same."""
        lines = "".join(json.dumps(encode(event)) + "\n" for event in events)
        self._storage.write(f"{_epoch(line, step):06d}-{step:012d}.jsonl", lines.encode())

    def read(self, line: TimeLine, last: int, after: int = -1) -> Iterator[JsonObject]:
        """The events of the steps after `after` up to `last`, oldest first, as JSON values."""
        for _, name in self._counting(line, last, after):
            yield from self._events(name)

    def newest(self, line: TimeLine, last: int, count: int) -> list[JsonObject]:
        """The last `count` events of the steps up to `last`, oldest first, as JSON values."""
        found = list[JsonObject]()
        for _, name in reversed(self._counting(line, last)):
            if len(found) >= count:
                break
            found = self._events(name) + found
        return found[-count:] if count else []

    def tidy(self, line: TimeLine, step: int) -> None:
        """Remove the files of long ago, and of steps that do not count."""
        kept = {name for _, name in self._counting(line, step, step - STEPS_KEPT)}
        newest = (_epoch(line, step), step)
        self._storage.remove(name for name, at in self._files().items() if at <= newest and name not in kept)

    def _counting(self, line: TimeLine, last: int, after: int = -1) -> list[tuple[int, str]]:
        found = self._files().items()
        return sorted((at, n) for n, (epoch, at) in found if after < at <= last and epoch == _epoch(line, at))

    def _events(self, name: str) -> list[JsonObject]:
        try:
            lines = self._storage.read(name).to_pybytes().decode(errors="replace").splitlines()
        except FileNotFoundError:  # removed between the listing and the reading
            return []
        try:
            return [json.loads(line) for line in lines if line.strip()]
        except (ValueError, RecursionError) as error:
            raise CheckpointError(
                f"the events do not read: {type(error).__name__}",
                place=self._storage.place(name),
                remedy="remove the file: the events of its step are then missing, nothing else",
            ) from error

    def _files(self) -> dict[str, tuple[int, int]]:
        names = self._storage.names()
        return {name: (int(found[1] or 0), int(found[2])) for name in names if (found := _FILE.fullmatch(name))}


def _epoch(line: TimeLine, step: int) -> int:
    epoch = line.epoch_of(step)
    return epoch.number if epoch else 0
