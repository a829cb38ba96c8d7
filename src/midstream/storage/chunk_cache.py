"""Files of an object store that never change, kept on this machine's disk for all its processes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from midstream.model.errors import SinkError
from midstream.storage.disk import write_whole
from midstream.storage.process_resources import RESOURCES

if TYPE_CHECKING:
    from midstream.storage.disk import Bytes

FOLDER, LIMIT = "MIDSTREAM_CACHE", "MIDSTREAM_CACHE_BYTES"
"""The environment's names for the folder of the cache and for how many bytes it may hold."""

DEFAULT_LIMIT = 8 << 30
_SLACK = 1 / 16
"""The share of the limit that one process may add before it looks how much there is."""


class CacheUse(NamedTuple):
    """How often a chunk was found in the cache and how often not, and how many bytes the cache holds."""

    hits: int = 0
    misses: int = 0
    bytes: int = 0

    def since(self, before: CacheUse) -> CacheUse:
        """Subtract earlier counts; the bytes are those held now."""
        return CacheUse(self.hits - before.hits, self.misses - before.misses, self.bytes)

    def beside(self, other: CacheUse) -> CacheUse:
        """Add the counts of another process; the bytes are those of the fuller cache."""
        return CacheUse(self.hits + other.hits, self.misses + other.misses, max(self.bytes, other.bytes))


NOT_USED = CacheUse()


class ChunkCache:
    """A folder of files named by a digest of where they come from; those unused for longest go first.

    Nothing in it is trusted: who reads a chunk checks its size and checksum, and has it dropped where they differ.
    Without room on the disk nothing is kept, and everything works as before, only slower. `hits` and `misses` count
    those of this process.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     kept = ChunkCache(folder, limit=1000)
    ...     kept.put("s3://bucket/a", b"abc")
    ...     kept.get("s3://bucket/a").to_pybytes(), kept.get("s3://bucket/b"), kept.hits, kept.misses, kept.size()
    (b'abc', None, 1, 1, 3)
    """

    def __init__(self, folder: str, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self.hits = self.misses = 0
        self._added = limit  # Whatever was left here before is looked at with the first file.
        self._held = 0

    @staticmethod
    def here() -> ChunkCache:
        """Open the cache of this machine and user, as the environment configures it."""
        folder = os.environ.get(FOLDER) or os.path.join(tempfile.gettempdir(), f"midstream-cache-{os.getuid()}")
        limit = os.environ.get(LIMIT, str(DEFAULT_LIMIT))
        if not limit.isdigit():
            raise SinkError(
                f"{LIMIT} is {limit!r}", place="environment", remedy="give a number of bytes, or unset the variable"
            )
        return RESOURCES.once((FOLDER, folder, limit), lambda: ChunkCache(folder, int(limit)))

    @property
    def use(self) -> CacheUse:
        """The counts of this process; the bytes are those when it last looked, plus what it has added since."""
        return CacheUse(self.hits, self.misses, self._held)

    def get(self, place: str) -> pa.Buffer | None:
        """Return the cached content of a place as a view of the mapped file, valid after the file's removal."""
        found = self._mapped(place)
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def has(self, place: str) -> bool:
        """Return whether something is cached for a place."""
        return self._is_own() and os.path.exists(self._path(place))

    def put(self, place: str, data: Bytes) -> None:
        """Cache what was read or written at a place, if the disk has room."""
        size = sum(map(len, data)) if isinstance(data, tuple) else len(data)
        if size > self.limit:
            return
        with suppress(SinkError, OSError):
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            if not self._is_own():
                return
            write_whole(self._path(place), data)
        self._added += size
        self._held += size
        if self._added > self.limit * _SLACK:
            self._added = 0
            self._make_room()

    def filled(self, place: str, data: pa.Buffer) -> pa.Buffer:
        """Cache what was read; returns a view of the mapped file, which takes no process memory, if it was cached."""
        self.put(place, data)
        return self._mapped(place) or data

    def drop(self, place: str) -> bool:
        """Remove a place whose file was found damaged; returns whether there was one."""
        try:
            os.unlink(self._path(place))
        except OSError:
            return False
        return True

    def size(self) -> int:
        """Sum the bytes of all files."""
        return sum(size for _, size, _ in self._files())

    def _mapped(self, place: str) -> pa.Buffer | None:
        path = self._path(place)
        try:
            if not self._is_own():
                return None
            with pa.memory_map(path) as file:
                found = file.read_buffer()
            os.utime(path)
        except OSError:
            return None
        return found

    def _is_own(self) -> bool:
        # What lies in another user's folder, or where another user's link leads, may be meant to deceive.
        try:
            return os.lstat(self.folder).st_uid == os.stat(self.folder).st_uid == os.getuid()
        except OSError:
            return False

    def _make_room(self) -> None:
        files = self._files()
        self._held = sum(size for _, size, _ in files)
        for _, one, path in sorted(files):
            if self._held <= self.limit * (1 - _SLACK):
                return
            with suppress(OSError):
                os.unlink(path)
            self._held -= one

    def _files(self) -> list[tuple[int, int, str]]:
        # Last use, size and path of each.
        with suppress(OSError), os.scandir(self.folder) as entries:
            return [(one.st_mtime_ns, one.st_size, path) for path, one in _stats(entries)]
        return []

    def _path(self, place: str) -> str:
        return f"{self.folder}/{hashlib.sha256(place.encode()).hexdigest()[:40]}"


def _stats(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.stat_result]]:
    for entry in entries:
        with suppress(FileNotFoundError):
            yield entry.path, entry.stat()
