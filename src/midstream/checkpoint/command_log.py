"""The commands given to a job, in order: any process may append, the job takes them at the beginning of a step."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from midstream.model.codec import decode, encode
from midstream.model.command import Command
from midstream.model.errors import CheckpointError
from midstream.state.store.disk import seal, unseal
from midstream.state.store.places import Place, storage_at

COMMANDS_KEPT = 1_000
MISSING_AT_MOST = 10_000
"""Numbers without a file among the commands that wait; each of them is looked for, lest one be passed over."""

_COMMAND = re.compile(r"(\d{9}|[1-9]\d{9,})\.json", re.ASCII)


class CommandLog:
    """Numbered commands, from 1 on, one file each; written whole, never changed.

    Any number of processes may append at once: no number is given twice and no command is lost. A reader that has seen
    number n has seen all before it.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.step.commands.drop_query import DropQuery
    >>> with TemporaryDirectory() as folder:
    ...     log = CommandLog(folder)
    ...     log.append(DropQuery("p")), log.append(DropQuery("q")), log.after(1)
    (1, 2, ((2, DropQuery(query='q')),))
    """

    def __init__(self, root: Place) -> None:
        """The log in a folder, which is made when the first command is added."""
        self.storage = storage_at(root, durable=False)
        self._removed = 0

    @property
    def root(self) -> Path:
        """The folder of the commands, where they are in one."""
        return Path(self.storage.url)

    def append(self, command: Command, taken: int = 0) -> int:
        """Add a command at the end; its number, which is greater than that of the last one that the job has `taken`:
        also where the files of those are gone, for no step would look for it otherwise.

        Raises `SinkError` where it cannot be written; then nothing was added.
        """
        number, data = max(self.numbers(), default=0), seal(encode(command))
        number = max(number, taken) + 1
        while not self.storage.create(_name(number), data):
            number += 1
        return number

    def after(self, number: int) -> tuple[tuple[int, Command], ...]:
        """The commands with greater numbers, in order."""
        # A listing made while others append may miss a file that is older than one it shows: so each is read by name.
        found = ((later, self.read(later)) for later in range(number + 1, self.newest_after(number) + 1))
        return tuple((later, command) for later, command in found if command is not None)

    def tidy(self, taken: int) -> None:
        """Remove commands of long ago: of those up to number `taken`, all but the newest `COMMANDS_KEPT`."""
        last = taken - COMMANDS_KEPT
        if last > self._removed:  # Otherwise there is nothing to be found, and looking costs a request.
            self.storage.remove(_name(number) for number in sorted(self.numbers()) if number <= last)
            self._removed = last

    def read(self, number: int) -> Command | None:
        """A command; None where a user withdrew it. Raises `CheckpointError` where it is damaged."""
        place = self.storage.place(_name(number))
        remedy = "restore the file, or remove it and give the command again"
        try:
            value = unseal(self.storage.read(_name(number)).to_pybytes(), place, remedy)
        except FileNotFoundError:
            return None  # A user withdrew it.
        try:
            return decode(Command, value)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"the file does not read as a command: {error!r}"
            raise CheckpointError(message, place=place, remedy=remedy) from error

    def newest_after(self, number: int) -> int:
        """The number of the last command after another; raises where more of those between are missing than users
        withdraw, for each is looked for.
        """
        there = [one for one in _numbers(self.storage.names_after("", _name(number))) if one > number]
        newest = max(there, default=number)
        missing = newest - number - len(there)
        if missing > MISSING_AT_MOST:
            raise CheckpointError(
                f"command {newest} is there, but {missing} before it are not",
                place=self.storage.place(_name(newest)),
                remedy="restore those before it, or remove the file and give the command again",
            )
        return newest

    def numbers(self) -> list[int]:
        """The numbers of the commands that are there, in no order."""
        return _numbers(self.storage.names())


def _numbers(names: Iterable[str]) -> list[int]:
    return [int(name[:-5]) for name in names if _COMMAND.fullmatch(name)]


def _name(number: int) -> str:
    return f"{number:09d}.json"
