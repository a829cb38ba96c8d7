"""The contract of what a checkpoint lies on: a folder of a mounted file system, or a part of a bucket."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from midstream.state.store.unsynced import Unsynced

    Bytes: TypeAlias = bytes | pa.Buffer
    """What a file is written from."""


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
        """Where the root is, for messages and for other programs to read from."""

    @abstractmethod
    def at(self, folder: str) -> Storage:
        """What is below a folder of this one."""

    def synced_with(self, unsynced: Unsynced) -> Storage:
        """The same place, where it pays: what `write` writes there survives the loss of power once `unsynced` is synced
        with all else it has, and not when the call returns.
        """
        return self

    @abstractmethod
    def prepare(self) -> None:
        """See whether files can be written here, making the folder where there is none; raises where they cannot."""

    @abstractmethod
    def write(self, name: str, data: Bytes) -> None:
        """Put a file in place at once, instead of the one that may be there."""

    @abstractmethod
    def create(self, name: str, data: Bytes) -> bool:
        """Put a file in place unless there is one; whether it was put. Of many that try at once, one does it."""

    @abstractmethod
    def read(self, name: str) -> pa.Buffer:
        """What a file holds; raises `FileNotFoundError` where there is none."""

    def mapped(self, name: str) -> pa.Buffer:
        """What a file that never changes holds, without a copy where that can be."""
        return self.read(name)

    def keep_copy(self, name: str, data: Bytes) -> None:
        """Keep on this machine what a file that never changes will hold, if that makes reading it faster."""
        return

    def is_near(self, name: str) -> bool:
        """Whether a file that never changes can be read without a request to another machine."""
        return True

    def drop_copy(self, name: str) -> bool:
        """Forget what this machine keeps of a file, which was found damaged; whether it kept anything."""
        return False

    @abstractmethod
    def names(self, folder: str = "") -> list[str]:
        """The names of the files and folders that are right in a folder, in no order; none where it does not exist."""

    @abstractmethod
    def changed(self, folder: str = "") -> list[tuple[int, str]]:
        """The files right in a folder, in no order: when each was last changed, in nanoseconds, and its name."""

    def names_after(self, folder: str, name: str) -> list[str]:
        """Those of the names in a folder that come after another name, in the order of their bytes."""
        return [one for one in self.names(folder) if one > name]

    @abstractmethod
    def walk(self, folder: str = "") -> Iterator[tuple[str, int]]:
        """Every file below a folder with its size, by its name from the root of this storage."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are not there are passed over."""

    @abstractmethod
    def remove_folder(self, folder: str) -> None:
        """Remove a folder and everything in it, if it is there; a reader who looks for the folder no longer sees it."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Give a file another name, instead of the file that may bear it; `FileNotFoundError` where there is none.

        The name survives the loss of power once its folder is settled.
        """

    def settle(self, folder: str) -> None:
        """Make the names of the files that were moved into a folder survive the loss of power, if it is `durable`."""
        return

    @abstractmethod
    def move_folder(self, source: str, target: str) -> bool:
        """Give a folder of files, which is settled if any were moved into it, another name unless that is taken;
        whether it was given.

        Readers see the folder at once where the storage can do that.
        """

    def copy_all(self, copies: Mapping[str, str]) -> None:
        """Put what many files hold under other names too; `FileNotFoundError` where one of them is not there."""
        for source, target in copies.items():
            self.write(target, self.read(source))

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""
        folder, _, last = name.rpartition("/")
        return last in self.names(folder)

    def place(self, name: str) -> str:
        """Where a file is, for messages."""
        return f"{self.url}/{name}"

    def tidy(self, folder: str = "") -> None:
        """Remove what writes that were broken off have left right in a folder; nobody else may be writing there."""
        return
