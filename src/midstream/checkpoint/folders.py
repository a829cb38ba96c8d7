"""The folders of a job's checkpoint, and the sinks of its queries."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from urllib.parse import quote

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.event_log import EventLog, FilesRead
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.savepoints import Savepoints
from midstream.checkpoint.time_log import TimeLog
from midstream.model.errors import MidstreamError, SinkError
from midstream.model.manifest import Manifest
from midstream.model.schema import check_name
from midstream.sinks import FileSink, Sink, as_sink, restored
from midstream.sinks.file_sink import check_apart
from midstream.storage.local import LocalStorage
from midstream.storage.places import storage_at, work_folder
from midstream.storage.storage_contract import Storage
from midstream.storage.sweep import Sweeper
from midstream.storage.unsynced import Unsynced

LATE, DEAD_LETTERS, REJECTED = "late", "dead_letters", "rejected"
"""What a stream's rows may be that enter no state, and results that a query cannot give."""

OWN = (
    "store", "manifests", "commands", "events", "times", "savepoints", "sources", "staging", "spark", LATE,
    DEAD_LETTERS, REJECTED,
)  # fmt: skip
"""The folders of a checkpoint that are the job's own; there may be others next to them, such as that of results."""


@dataclass(frozen=True)
class Folders:
    """A checkpoint at a path or a URL: Spark's own folder and ours, side by side where both can be.

    Where all of a step is written in one process, its chunks, results and events are `unsynced` until its manifest is
    to be published.
    """

    root: str
    durable: bool = True
    unsynced: Unsynced | None = None

    @property
    def spark(self) -> str:
        """Spark's offsets and commits, in a folder for each epoch."""
        return f"{work_folder(self.storage)}/spark"

    @cached_property
    def storage(self) -> Storage:
        """What the checkpoint lies on."""
        return storage_at(self.root, durable=self.durable)

    @property
    def is_remote(self) -> bool:
        """Whether it lies where Spark itself cannot keep its log."""
        return not isinstance(self.storage, LocalStorage)

    @property
    def chunks(self) -> Storage:
        """Where the chunks are."""
        return self._of_a_step("store")

    @cached_property
    def manifests(self) -> ManifestLog:
        """The manifests."""
        return ManifestLog(self.storage.at("manifests"))

    @cached_property
    def commands(self) -> CommandLog:
        """The command log."""
        return CommandLog(self.storage.at("commands"))

    @cached_property
    def events(self) -> EventLog:
        """The events."""
        return EventLog(self._of_a_step("events"))

    @cached_property
    def times(self) -> TimeLog:
        """What the newest steps took; nothing is lost with them."""
        return TimeLog(storage_at(self.root, durable=False).at("times"))

    @cached_property
    def savepoints(self) -> Savepoints:
        """The savepoints."""
        return Savepoints(self.storage)

    @cached_property
    def _sweeper(self) -> Sweeper:
        return Sweeper(self.chunks)

    def _of_a_step(self, folder: str) -> Storage:
        found = self.storage.at(folder)
        return found if self.unsynced is None else found.synced_with(self.unsynced)

    def rejected(self, kind: str, name: str) -> str:
        """Return where a stream's `late` rows or `dead_letters` go, or what of a query is `rejected`."""
        return f"{self.root}/{kind}/{folder_name(name)}"

    def results(self, query: str) -> str:
        """Return where the results go of a query that was given no sink."""
        return f"{self.root}/results/{folder_name(query)}"

    def sink(self, query: str, given: Any) -> Sink:
        """Make the sink that a query is given, as `as_sink` takes it. Raises for other values and for unfit query
        names."""
        check_name("query", query)
        return as_sink(given, self.results(query))

    def sources(self, stream: str) -> FilesRead:
        """Open the log of the files that steps have read of a stream's folder, for hosts other than Spark."""
        return FilesRead(self.storage.at(f"sources/{folder_name(stream)}"))

    def scratch(self, query: str) -> Storage:
        """Return where a query's results are staged, unless its sink has them elsewhere."""
        return self.storage.at(f"staging/{folder_name(query)}")

    def kept(self) -> tuple[Manifest, ...]:
        """Read all manifests that the job may go back to."""
        return (*self.manifests.kept(), *self.savepoints.all().values())

    def brought(self, kept: Iterable[Manifest]) -> set[str] | None:
        """Return the chunks of the commands that one of the kept manifests has not taken, as `CommandLog.brought`."""
        return self.commands.brought(_taken(kept))

    def tidy(self, manifest: Manifest) -> None:
        """Delete chunks that no kept manifest and no savepoint lists, and old events and commands."""
        kept = self.kept()
        self._sweeper.sweep(kept, partial(self.brought, kept))
        self.commands.tidy(_taken(kept))
        self.events.tidy(manifest.time_line, manifest.step)


def _taken(kept: Iterable[Manifest]) -> int:
    # The last of the commands that none of the manifests takes again if the job goes back to it.
    return min((one.last_command for one in kept), default=0)


def folder_name(name: str) -> str:
    """Turn the name of a stream or query into the name of one folder.

    >>> folder_name("my pairs"), folder_name("a/b"), folder_name("..")
    ('my pairs', 'a%2Fb', '%2E%2E')
    """
    return quote(name, safe=" ") if name.strip(".") else name.replace(".", "%2E")


def new_sink(folders: Folders, manifest: Manifest, query: str, value: dict[str, Any] | None) -> Sink | None:
    """Make the sink that a command names for a query that a manifest begins. None for a function, which only the job
    has.

    Raises `SinkError` where no job could ever have it: it cannot be made of its options, or it is a folder that is, has
    in it or is in one of the checkpoint's own or of another query's results. Readers of the one would find the rows of
    the other, or what is removed of one be missed by the other.
    """
    place = f"query {query}"
    try:
        found = restored(value, folders.results(query))
    except SinkError as error:
        raise SinkError(error.message, place=place, remedy=error.remedy) from error
    if isinstance(found, FileSink):
        others = [(f"query {name}", path) for name, path in _folders_of(folders, manifest) if name != query]
        check_apart([*others, (place, found.path)])
        for other, path in others:
            _check_not_inside(place, found.path, f"the results of {other}", path)
        for own in OWN:
            _check_not_inside(place, found.path, "the checkpoint", f"{folders.root}/{own}")
    return found


def _folders_of(folders: Folders, manifest: Manifest) -> Iterator[tuple[str, str]]:
    for name in manifest.asked_queries:
        with suppress(MidstreamError):  # One that waits too, and will be refused.
            sink = restored(manifest.queries[name].sink, folders.results(name))
            if isinstance(sink, FileSink):
                yield name, sink.path


def _check_not_inside(place: str, path: str, what: str, other: str) -> None:
    inside = _is_inside(path, other)
    if inside or _is_inside(other, path):
        raise SinkError(
            f"{path} cannot {'be in' if inside else 'contain'} the folder of {what}, {other}",
            place=place,
            remedy="give each query a folder of its own, outside the checkpoint and the folders of other queries",
        )


def _is_inside(path: str, folder: str) -> bool:
    """Whether a path or URL is a folder or in it.

    >>> _is_inside("s3://b/a/c", "s3://b/a"), _is_inside("s3://b/ac", "s3://b/a")
    (True, False)
    """
    return f"{_resolved(path)}/".startswith(f"{_resolved(folder)}/")


def _resolved(path: str) -> str:
    return (path if "://" in path else os.path.realpath(path)).rstrip("/")
