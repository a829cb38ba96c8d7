"""A folder of a mounted file system as a storage."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from midstream.model.errors import SinkError
from midstream.storage.disk import (
    NewName,
    Writing,
    cannot_read,
    cannot_write,
    discard,
    make_folder,
    names_in,
    sync,
    write_temporary,
    write_whole,
)
from midstream.storage.storage_contract import Storage
from midstream.storage.unsynced import Unsynced

if TYPE_CHECKING:
    from midstream.storage.disk import Bytes

TEMPORARY = ".tmp"


class LocalStorage(Storage):
    """A folder, on this machine or mounted by all that use it; made when the first file is written.

    With `durable`, what a call has written survives the loss of power once it returns; what `write` has written, once
    the `unsynced` is synced that the folder was made with. `create` needs a file system with hard links.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     storage = LocalStorage(folder)
    ...     storage.create("a/1", b"x"), storage.create("a/1", b"y"), storage.read("a/1").to_pybytes()
    (True, False, b'x')
    """

    def __init__(
        self, root: str | os.PathLike[str], *, durable: bool = False, unsynced: Unsynced | None = None
    ) -> None:
        self._root = os.path.abspath(root)
        self.durable = durable
        self._unsynced = unsynced

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStorage) and (self._root, self.durable) == (other._root, other.durable)

    def __hash__(self) -> int:
        return hash((self._root, self.durable))

    @property
    def url(self) -> str:
        """The folder's path."""
        return self._root

    @property
    def root(self) -> Path:
        """The folder."""
        return Path(self._root)

    def at(self, folder: str) -> LocalStorage:
        """Return the storage of a folder in this one."""
        return LocalStorage(f"{self._root}/{folder}", durable=self.durable, unsynced=self._unsynced)

    def synced_with(self, unsynced: Unsynced) -> LocalStorage:
        """Return the folder with its files synced later, together with all that `unsynced` notes."""
        return LocalStorage(self._root, durable=True, unsynced=unsynced) if self.durable else self

    def path(self, name: str) -> str:
        """Return the path of a file."""
        return f"{self._root}/{name}" if name else self._root

    place = path

    def prepare(self) -> None:
        """Make the folder."""
        with Writing(self._root):
            make_folder(self._root, self._new_name)
            if not os.access(self._root, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def write(self, name: str, data: Bytes) -> None:
        """Write to a temporary file, then rename."""
        if self._unsynced is None:
            write_whole(self.path(name), data, fsync=self.durable)
        else:
            write_whole(self.path(name), data, new_name=self._unsynced.folder)
            self._unsynced.file(self.path(name))

    def create(self, name: str, data: Bytes) -> bool:
        """Write to a temporary file, then link, which unlike a rename fails where the name is taken.

        A file system that is mounted over a network may link, lose the answer and link again: the links tell.
        """
        path = self.path(name)
        try:
            temporary = write_temporary(path, data, fsync=self.durable, new_name=self._new_name)
            try:
                os.link(temporary, path)
            except FileExistsError:
                if os.stat(temporary).st_nlink < 2:
                    return False
            finally:
                discard(temporary)
            if self.durable:
                sync(os.path.dirname(path))
        except OSError as error:
            raise cannot_write(error, path) from error
        return True

    def read(self, name: str) -> pa.Buffer:
        """Read the bytes into memory."""
        path = self.path(name)
        try:
            with open(path, "rb") as file:
                return pa.py_buffer(file.read())
        except FileNotFoundError:
            raise
        except OSError as error:
            raise cannot_read(error, path) from error

    def mapped(self, name: str) -> pa.Buffer:
        """Map the file; the view stays valid when the file is removed."""
        path = self.path(name)
        try:
            # Closing the file leaves the mapping to the buffers that view it, and does not use up the open files.
            with pa.memory_map(path) as file:
                return file.read_buffer()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise cannot_read(error, path) from error

    def names(self, folder: str = "") -> list[str]:
        """List the names in a folder, except those of files that are being written."""
        return [name for name in names_in(self.path(folder)) if not name.endswith(TEMPORARY)]

    def changed(self, folder: str = "") -> list[tuple[int, str]]:
        """List the files in a folder, with the file system's time of the last change of each."""
        try:
            with os.scandir(self.path(folder)) as entries:
                return [(entry.stat().st_mtime_ns, entry.name) for entry in entries if entry.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise cannot_read(error, self.path(folder)) from error

    def walk(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """Walk every file below, including those that were being written."""
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(self.path(folder)) as found:
                entries = list(found)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise cannot_read(error, self.path(folder)) from error
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from self.walk(f"{prefix}{entry.name}")
            else:
                with suppress(FileNotFoundError):
                    yield f"{prefix}{entry.name}", entry.stat().st_size

    def remove(self, names: Iterable[str]) -> None:
        """Unlink each; folders that are empty then go too, as do those they alone were in.

        Nothing is removed through a link that leads elsewhere.
        """
        folders = set[str]()
        for name in names:
            folder = os.path.dirname(self.path(name))
            if folder not in folders and self._leads_out(name):
                raise SinkError(
                    "midstream does not remove files through a link that leads out of the folder",
                    place=folder,
                    remedy="find out which program made the link, and remove the link",
                )
            with Writing(self.path(name)), suppress(FileNotFoundError):
                os.unlink(self.path(name))
            folders.add(folder)
        for folder in folders:
            outer = os.path.dirname(folder)
            with suppress(OSError):
                os.rmdir(folder)
                if outer != self._root:
                    os.rmdir(outer)

    def _leads_out(self, name: str) -> bool:
        outer = os.path.dirname(name)
        while outer:
            if os.path.islink(self.path(outer)) or os.path.basename(outer) == "..":
                own = os.path.realpath(self._root)
                return os.path.commonpath((own, os.path.realpath(os.path.dirname(self.path(name))))) != own
            outer = os.path.dirname(outer)
        return False

    def remove_folder(self, folder: str) -> None:
        """Rename the folder, so that it is gone at once, then remove it, and its parent if that is empty."""
        path = self.path(folder)
        gone = f"{path}{TEMPORARY}"
        shutil.rmtree(gone, ignore_errors=True)
        with Writing(path), suppress(FileNotFoundError):
            os.rename(path, gone)
        shutil.rmtree(gone, ignore_errors=True)
        with suppress(OSError):
            os.rmdir(os.path.dirname(path))

    def move(self, source: str, target: str) -> None:
        """Rename."""
        try:
            make_folder(os.path.dirname(self.path(target)), self._new_name)
            os.replace(self.path(source), self.path(target))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise cannot_write(error, self.path(target)) from error

    def move_folder(self, source: str, target: str) -> bool:
        """Rename; a folder that has files is never replaced."""
        try:
            os.rename(self.path(source), self.path(target))
            if self.durable:
                sync(os.path.dirname(self.path(target)))
        except OSError as error:
            if os.path.isdir(self.path(target)):
                return False
            raise cannot_write(error, self.path(target)) from error
        return True

    def settle(self, folder: str) -> None:
        """Sync the folder."""
        if self.durable:
            with Writing(self.path(folder)):
                sync(self.path(folder))

    def exists(self, name: str) -> bool:
        """Return whether the file exists."""
        return os.path.exists(self.path(name))

    @property
    def _new_name(self) -> NewName | None:
        return sync if self.durable else None

    def tidy(self, folder: str = "") -> None:
        """Remove files that were being written."""
        for name in names_in(self.path(folder)):
            if name.endswith(TEMPORARY):
                discard(self.path(f"{folder}/{name}" if folder else name))
