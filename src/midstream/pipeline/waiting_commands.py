"""The commands of a log that the next step of a job takes up, and those of them that cannot be admitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from midstream.checkpoint.folders import Folders
from midstream.commands.add_query import AddQuery
from midstream.model.command import Command
from midstream.model.errors import PASSING, MidstreamError
from midstream.model.manifest import Manifest
from midstream.pipeline.outputs import Outputs


class WaitingCommands:
    """The commands of the log that no step has taken yet, and the `manifest` that has taken up the last of them.

    `refuse` is asked by the plan of the step; `refused` has what it refused, with the reasons.
    """

    def __init__(self, outputs: Outputs, before: Manifest) -> None:
        given = outputs.folders.commands.after(before.last_command)
        self._outputs, self._before = outputs, before
        self.commands = tuple(command for _, command in given)
        self.manifest = replace(before, last_command=given[-1][0]) if given else before
        self.refused: list[tuple[Command, str]] = []

    def refuse(self, command: Command, after: Manifest) -> str | None:
        """Return why the step must not take a command of the log, after which the manifest would be `after`.

        A query whose sink cannot be opened, or has what is not this job's, would have this step fail, and every one
        after it. A fault that may pass and is the checkpoint's as well is raised instead: the step fails, and waits for
        that. So it does where a function is missing that the program can name again.
        """
        begins = isinstance(command, AddQuery) and command.query not in self._before.queries
        if not begins or not is_in(command, self.commands):
            return None
        assert isinstance(command, AddQuery)
        try:
            if "function" not in (command.sink or {}):
                self._outputs.check_new(command.query, command.sink, after, self._before)
        except MidstreamError as error:
            if isinstance(error, PASSING) and _goes_into(self._outputs.folders, command):
                raise
            self.refused.append((command, str(error)))
            return str(error)
        return None


def is_in(command: Command, commands: Sequence[Command]) -> bool:
    """Return whether a command itself is among others: equal ones may be given twice, by the program and in the log."""
    return any(one is command for one in commands)


def _goes_into(folders: Folders, command: AddQuery) -> bool:
    # Then the checkpoint cannot be written either.
    return not command.sink or str(command.sink.get("path", "")).startswith(f"{folders.root}/")
