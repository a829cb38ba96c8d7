"""The commands given to a job, in order: any process may append, the job takes them at the beginning of a step."""

from __future__ import annotations

import os
import re
from pathlib import Path

from midstream.model.codec import decode, encode
from midstream.model.command import Command
from midstream.model.errors import CheckpointError
from midstream.state.store.disk import (
    cannot_read,
    cannot_write,
    discard,
    names_in,
    seal,
    sync_folder,
    unseal,
    write_temporary,
)

_COMMAND = re.compile(r"\d+\.json")


class CommandLog:
    """Numbered commands, from 1 on, one file each; written whole, never changed.

    Any number of processes may append at once: no number is given twice and no command is lost. A reader that has seen
    number n has seen all before it. Needs a file system with hard links.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.step.commands.drop_query import DropQuery
    >>> with TemporaryDirectory() as folder:
    ...     log = CommandLog(folder)
    ...     log.append(DropQuery("p")), log.append(DropQuery("q")), log.after(1)
    (1, 2, ((2, DropQuery(query='q')),))
    """

    def __init__(self, root: str | os.PathLike[str], *, fsync: bool = False) -> None:
        """The log in the folder `root`, which is made when the first command is added."""
        self._root = os.path.abspath(root)
        self._fsync = fsync

    @property
    def root(self) -> Path:
        """The folder of the commands."""
        return Path(self._root)

    def append(self, command: Command) -> int:
        """Add a command at the end; its number.

        Raises `SinkError` where it cannot be written; then nothing was added.
        """
        number = max(self._numbers(), default=0) + 1
        try:
            temporary = write_temporary(self._path(number), seal(encode(command)), fsync=self._fsync)
            try:
                while not _linked(temporary, self._path(number)):
                    number += 1
            finally:
                discard(temporary)
            if self._fsync:
                sync_folder(self._root)
        except OSError as error:
            raise cannot_write(error, self._path(number)) from error
        return number

    def after(self, number: int) -> tuple[tuple[int, Command], ...]:
        """The commands with greater numbers, in order."""
        newest = max(self._numbers(), default=0)
        # A listing made while others append may miss a file that is older than one it shows: so each is read by name.
        found = ((later, self._read(later)) for later in range(number + 1, newest + 1))
        return tuple((later, command) for later, command in found if command is not None)

    def _read(self, number: int) -> Command | None:
        path = self._path(number)
        remedy = "restore the file, or remove it and give the command again"
        try:
            with open(path, "rb") as file:
                value = unseal(file.read(), path, remedy)
        except FileNotFoundError:
            return None  # A user withdrew it.
        except OSError as error:
            raise cannot_read(error, path) from error
        try:
            return decode(Command, value)
        except (KeyError, TypeError, AttributeError) as error:
            message = f"the file does not read as a command: {error!r}"
            raise CheckpointError(message, place=path, remedy=remedy) from error

    def _numbers(self) -> list[int]:
        return [int(name[:-5]) for name in names_in(self._root) if _COMMAND.fullmatch(name)]

    def _path(self, number: int) -> str:
        return f"{self._root}/{number:09d}.json"


def _linked(temporary: str, path: str) -> bool:
    try:
        os.link(temporary, path)  # Unlike a rename it fails where the name is taken.
    except FileExistsError:
        return False
    return True
