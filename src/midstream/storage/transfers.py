"""Files on their way to a storage and from it, several at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING

from midstream.model.errors import MidstreamError
from midstream.storage.process_resources import RESOURCES
from midstream.storage.storage_contract import Storage

if TYPE_CHECKING:
    from midstream.storage.disk import Bytes

_WAITING = 4
"""How many writes may wait for each that is under way: they are held in memory."""


class Transfers:
    """The requests of one process to a storage that have not been answered yet.

    What is handed over to be written is written once `finish` has returned. What was read ahead is near: see
    `Storage.is_near`.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._writes: list[Future[None]] = []
        self._reads: dict[str, Future[object]] = {}

    def write(self, name: str, data: Bytes) -> None:
        """Begin to write a file; raises the error of an earlier one only where too many wait."""
        if len(self._writes) >= _WAITING * self._storage.at_once:
            self._writes.pop(0).result()
        self._writes.append(threads(self._storage.at_once).submit(self._storage.write, name, data))

    def finish(self) -> None:
        """Wait for all that is being written; raises `SinkError` where a file could not be."""
        writes, self._writes = self._writes, []
        wait(writes)
        for write in writes:
            write.result()

    def read_ahead(self, names: Iterable[str]) -> None:
        """Begin to read files that are not near; a failure is raised to the reader that needs the file."""
        for name in names:
            if name not in self._reads and not self._storage.is_near(name):
                self._reads[name] = threads(self._storage.at_once).submit(self._storage.mapped, name)

    def arrived(self, name: str) -> None:
        """Wait for a file that is being read ahead."""
        reading = self._reads.pop(name, None)
        if reading is not None:
            with suppress(MidstreamError, FileNotFoundError):
                reading.result()


def threads(count: int) -> ThreadPoolExecutor:
    """Return a pool of `count` threads of this process that wait for storages."""
    return RESOURCES.once(
        ("threads", count),
        lambda: ThreadPoolExecutor(count, thread_name_prefix="midstream-transfer"),
        close=ThreadPoolExecutor.shutdown,
    )
