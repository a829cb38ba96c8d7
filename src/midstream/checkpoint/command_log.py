"""The commands given to a job, in order: any process may append, the job takes them at the beginning of a step."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from midstream.checkpoint.epochs import Holder
from midstream.model.codec import decode, encode
from midstream.model.command import Command
from midstream.model.errors import CheckpointError
from midstream.sql.parts import QueryText
from midstream.storage.disk import seal, unseal
from midstream.storage.places import Place, storage_at

COMMANDS_KEPT = 1_000
MISSING_AT_MOST = 10_000
"""Numbers without a file among the commands that wait; each of them is looked for, so that none is passed over."""

BRINGING = ".bringing"
"""How the names of files end that say that a process puts chunks which a command is to name."""

_COMMAND = re.compile(r"(\d{9}|[1-9]\d{9,})\.json", re.ASCII)


class CommandLog:
    """Numbered commands, from 1 on, one file each; written whole, never changed.

    Any number of processes may append at once: no number is given twice and no command is lost. A reader that has seen
    number n has seen all before it.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.commands.drop_query import DropQuery
    >>> with TemporaryDirectory() as folder:
    ...     log = CommandLog(folder)
    ...     log.append(DropQuery("p")), log.append(DropQuery("q")), log.after(1)
    (1, 2, ((2, DropQuery(query='q')),))
    """

    def __init__(self, root: Place) -> None:
        """Open the log in a folder, which is made when the first command is added."""
        self.storage = storage_at(root, durable=False)
        self._removed = 0
        self._chunks: dict[int, tuple[str, ...]] = {}
        self._known: dict[int, tuple[bytes, Command]] = {}  # those that wait, whose queries are parsed once

    @property
    def root(self) -> Path:
        """The folder of the commands, where they are in one."""
        return Path(self.storage.url)

    def append(self, command: Command, taken: int = 0) -> int:
        """Append a command and return its number.

        The number is greater than that of the last command that the job has `taken`, also where the files of those are
        gone: no step would look for it otherwise.

        Raises `SinkError` where it cannot be written; then nothing was added.
        """
        number, data = max(self.numbers(), default=0), seal(encode(command))
        number = max(number, taken) + 1
        while not self.storage.create(_name(number), data):
            number += 1
        if isinstance(command, QueryText) and isinstance(logged := self._decoded(number, data), QueryText):
            logged.of_tree(command)
        return number

    def after(self, number: int) -> tuple[tuple[int, Command], ...]:
        """Return the commands with greater numbers, in order."""
        # A listing made while others append may miss a file that is older than one it shows: so each is read by name.
        for one in [one for one in tuple(self._known) if one <= number]:
            self._known.pop(one, None)
        found = ((later, self.read(later)) for later in range(number + 1, self.newest_after(number) + 1))
        return tuple((later, command) for later, command in found if command is not None)

    @contextmanager
    def bringing(self) -> Iterator[None]:
        """Hold off the sweep of chunks until the command that names them is appended.

        Within the context, put the chunks and append the command. What the chunks are named by, and which are there
        already, has to be read within it as well.
        """
        name = f"{secrets.token_hex(8)}{BRINGING}"
        self.storage.create(name, seal(encode(Holder.here())))
        try:
            yield
        finally:
            self.storage.remove([name])

    def brought(self, after: int) -> set[str] | None:
        """Return the chunks that the commands after a number bring.

        A chunk that was there before this is called, that no manifest lists and that is not returned, belongs to no
        command.

        Returns: the names, or None if other chunks may come to be named, or if a command cannot be read.
        """
        # In this order: a process that brings chunks appends the command first, and ends the file after that.
        if any(holder is None or not holder.is_gone for holder in self.bringers().values()):
            return None
        try:
            self._chunks = {number: self._brought_by(number) for number in self.numbers() if number > after}
        except CheckpointError:
            return None
        return {chunk for chunks in self._chunks.values() for chunk in chunks}

    def _brought_by(self, number: int) -> tuple[str, ...]:
        if number in self._chunks:  # Commands never change.
            return self._chunks[number]
        command = self.read(number)
        return () if command is None else command.chunks

    def bringers(self) -> dict[str, Holder | None]:
        """Read which processes began to bring chunks and have not ended, by file; None if a file cannot be read."""
        found = dict[str, Holder | None]()
        for name in self.storage.names():
            if name.endswith(BRINGING):
                with suppress(FileNotFoundError):  # It has ended meanwhile.
                    found[name] = self._bringer(name)
        return found

    def _bringer(self, name: str) -> Holder | None:
        data = self.storage.read(name).to_pybytes()
        try:
            return decode(Holder, unseal(data, self.storage.place(name), ""))
        except (CheckpointError, KeyError, TypeError, ValueError, AttributeError):
            return None

    def tidy(self, taken: int) -> None:
        """Remove the commands up to number `taken`, except the newest `COMMANDS_KEPT`."""
        last = taken - COMMANDS_KEPT
        if last > self._removed:  # Otherwise there is nothing to be found, and looking costs a request.
            self.storage.remove(_name(number) for number in sorted(self.numbers()) if number <= last)
            self._removed = last

    def read(self, number: int) -> Command | None:
        """Read a command; None if a user withdrew it. Raises `CheckpointError` where it is damaged."""
        try:
            data = self.storage.read(_name(number)).to_pybytes()
        except FileNotFoundError:
            return None  # A user withdrew it.
        known = self._known.get(number)
        return known[1] if known is not None and known[0] == data else self._decoded(number, data)

    def _decoded(self, number: int, data: bytes) -> Command:
        place = self.storage.place(_name(number))
        remedy = "restore the file, or remove it and give the command again"
        value = unseal(data, place, remedy)
        try:
            command = decode(Command, value)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"the file does not read as a command: {error!r}"
            raise CheckpointError(message, place=place, remedy=remedy) from error
        self._known[number] = data, command
        return command

    def newest_after(self, number: int) -> int:
        """Find the number of the last command after another.

        Raises `CheckpointError` where more commands are missing than users withdraw, since each is looked for by name.
        """
        there = [one for one in _numbers(self.storage.names_after("", _name(number))) if one > number]
        newest = max(there, default=number)
        missing = newest - number - len(there)
        if missing > MISSING_AT_MOST:
            raise CheckpointError(
                f"command {newest} exists, but {missing} commands before it are missing",
                place=self.storage.place(_name(newest)),
                remedy="restore the missing commands, or remove this file and give the command again",
            )
        return newest

    def numbers(self) -> list[int]:
        """List the numbers of the commands that are there, in no order."""
        return _numbers(self.storage.names())


def _numbers(names: Iterable[str]) -> list[int]:
    return [int(name[:-5]) for name in names if _COMMAND.fullmatch(name)]


def _name(number: int) -> str:
    return f"{number:09d}.json"
