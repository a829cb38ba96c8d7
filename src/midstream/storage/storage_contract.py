"""The contract of what a checkpoint lies on: a folder of a mounted file system, or a part of a bucket."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from midstream.storage.disk import Bytes
    from midstream.storage.unsynced import Unsynced


class Storage(ABC):
    """Whole files below a root, named by paths of `/`-separated parts.

    A file is seen whole or not at all, and what one call has written the next one reads, also in another process or on
    another machine. A storage can be pickled, and holds no secret: credentials are those of the machine it is used on.
    Where it cannot write it raises `SinkError`, where it cannot read `CheckpointError`; then nothing has changed. If it
    is `durable`, what a call has written survives the loss of power once it returns.
    """

    durable: bool = True
    at_once: int = 1
    """How many requests it pays to have under way at the same time."""
    renames_folders: bool = True
    """Whether a folder is given another name at once, so that a reader sees all its files or none."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The place of the root, for messages and for other programs to read from."""

    @abstractmethod
    def at(self, folder: str) -> Storage:
        """Return the storage below a folder of this one."""

    def synced_with(self, unsynced: Unsynced) -> Storage:
        """Return the same place with writes synced later, where it pays.

        What `write` writes there survives the loss of power once `unsynced` is synced with all else it has, and not
        when the call returns.
        """
        return self

    @abstractmethod
    def prepare(self) -> None:
        """Check that files can be written here, creating the folder where there is none; raises where they cannot."""

    @abstractmethod
    def write(self, name: str, data: Bytes) -> None:
        """Put a file in place atomically, and replace the file that may be there."""

    @abstractmethod
    def create(self, name: str, data: Bytes) -> bool:
        """Put a file in place unless there is one; returns whether it was put. Of concurrent calls one succeeds."""

    @abstractmethod
    def read(self, name: str) -> pa.Buffer:
        """Read a file; raises `FileNotFoundError` where there is none."""

    def mapped(self, name: str) -> pa.Buffer:
        """Read a file that never changes, without a copy where possible."""
        return self.read(name)

    def keep_copy(self, name: str, data: Bytes) -> None:
        """Keep on this machine what a file that never changes will hold, if that makes reading it faster."""
        return

    def is_near(self, name: str) -> bool:
        """Return whether a file that never changes can be read without a request to another machine."""
        return True

    def drop_copy(self, name: str) -> bool:
        """Remove this machine's copy of a file that was found damaged; returns whether there was one."""
        return False

    @abstractmethod
    def names(self, folder: str = "") -> list[str]:
        """List the files and folders right in a folder, in no order; none where it does not exist."""

    @abstractmethod
    def changed(self, folder: str = "") -> list[tuple[int, str]]:
        """List the files right in a folder, in no order: the time of the last change (nanoseconds) and the name."""

    def names_after(self, folder: str, name: str) -> list[str]:
        """List the names in a folder that come after another name, in the order of their bytes."""
        return [one for one in self.names(folder) if one > name]

    @abstractmethod
    def walk(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """Walk every file below a folder: its name from the root of this storage, and its size."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are not there are passed over."""

    @abstractmethod
    def remove_folder(self, folder: str) -> None:
        """Remove a folder and everything in it, if it exists; readers no longer see the folder."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Rename a file, replacing one of that name; raises `FileNotFoundError` where there is none.

        The name survives the loss of power once its folder is settled.
        """

    def settle(self, folder: str) -> None:
        """Make the names of files moved into a folder survive the loss of power, if the storage is `durable`."""
        return

    @abstractmethod
    def move_folder(self, source: str, target: str) -> bool:
        """Rename a folder of files unless the name is taken; returns whether it was renamed.

        The folder must be settled if files were moved into it. Readers see the folder at once where the storage can do
        that.
        """

    def copy_all(self, copies: Mapping[str, str]) -> None:
        """Copy files to other names; raises `FileNotFoundError` where one of them is missing."""
        for source, target in copies.items():
            self.write(target, self.read(source))

    def exists(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        folder, _, last = name.rpartition("/")
        return last in self.names(folder)

    def place(self, name: str) -> str:
        """Format where a file is, for messages."""
        return f"{self.url}/{name}"

    def tidy(self, folder: str = "") -> None:
        """Remove what interrupted writes have left right in a folder; nothing else may be writing there."""
        return
