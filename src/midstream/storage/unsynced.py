"""Files that are made to survive the loss of power together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from midstream.storage.disk import Writing, sync

EachPath = Callable[[Callable[[str], None], Iterable[str]], Iterable[None]]
"""Does something for several paths, perhaps at the same time."""


class Unsynced:
    """What was written to a file system and may not survive the loss of power yet; shared by all who write it.

    A file system notes the names and sizes of all that was written when it is asked for the first: so several files
    cost little more than one if all are written before the first is synced.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.storage.local import LocalStorage
    >>> with TemporaryDirectory() as folder:
    ...     unsynced = Unsynced()
    ...     storage = LocalStorage(folder, durable=True).synced_with(unsynced)
    ...     storage.write("a", b"x")
    ...     storage.write("b", b"y")
    ...     unsynced.sync()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files = dict[str, None]()
        self._folders = dict[str, None]()

    def file(self, path: str) -> None:
        """Note a file that was written."""
        with self._lock:
            self._files[path] = None

    def folder(self, path: str) -> None:
        """Note a folder that has a new name in it."""
        with self._lock:
            self._folders[path] = None

    def sync(self, each: EachPath = map) -> None:
        """Make everything survive that was noted before; raises `WriteError` where that is not certain.

        Files removed since are passed over: no manifest lists them.
        """
        with self._lock:
            files, self._files = self._files, {}
            folders, self._folders = self._folders, {}
        list(each(_sync, files))
        list(each(_sync, folders))


def _sync(path: str) -> None:
    with Writing(path), suppress(FileNotFoundError):
        sync(path)
