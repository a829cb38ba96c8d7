"""What every command offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from midstream.model.codec import decode
from midstream.model.command import Command, Input, inputs_of
from midstream.model.errors import MidstreamError, QueryError
from midstream.model.events import Event
from midstream.model.manifest import Manifest
from midstream.units.draft import Draft


@dataclass(frozen=True)
class StepCommand(Command, ABC, family=True):
    """A command: what it checks, what it changes, and by what it is known to be done.

    Its name in logs is the class's in snake case, its fields are JSON values.
    """

    @abstractmethod
    def apply(self, draft: Draft) -> None:
        """Change the draft of the step that takes it; raise the `MidstreamError` that refuses it.

        What a command that raises has changed by then does not count.
        """

    @abstractmethod
    def is_done_by(self, event: Event) -> bool:
        """Whether this event reports that the command is done."""

    def is_met(self, manifest: Manifest) -> bool:
        """Whether the manifest already is as the command requires; then no event reports it as done."""
        return False

    def allowed(self) -> Self:
        """Allow the operators that it names, and return it: for commands of the user's own program, never for others.

        Commands that come from a log or a page name only operators that the program has allowed already.
        """
        return self

    def logged(self, after: Manifest) -> Self:
        """Return the command as a log keeps it, where a manifest that has taken it writes something otherwise."""
        return self


def offered() -> dict[str, tuple[type[StepCommand], tuple[Input, ...]]]:
    """List the kinds of command that users give, with what they are asked, by their names on the command line.

    Kinds of other packages are among them once their modules are imported.
    """
    found = dict[str, tuple[type[StepCommand], tuple[Input, ...]]]()
    for kind in Command.kinds.values():
        inputs = inputs_of(kind)
        if kind.verb is not None and all(one.kind != "other" for one in inputs):
            found[kind.verb or kind.kind.replace("_", "-")] = (kind, inputs)
    return found


def taken(manifest: Manifest, command: Command) -> Manifest:
    """Return the manifest as a command leaves it; raises the `MidstreamError` that refuses it."""
    draft = Draft(manifest)
    apply(command, draft)
    return draft.manifest


def apply(command: Command, draft: Draft) -> None:
    """Apply a command to a draft."""
    if not isinstance(command, StepCommand):
        raise TypeError(f"{command!r} is not a command for a step")
    command.apply(draft)


def command_of(value: Any) -> StepCommand:
    """Decode a command as logs have it; raises `QueryError` if it is none that a step takes."""
    place = "command"
    try:
        command = decode(Command, value)
    except (KeyError, TypeError, ValueError, AttributeError, MidstreamError) as error:
        raise QueryError(
            f"the value is not a command: {error}",
            place=place,
            remedy="send an object in the format of the command log",
        ) from error
    if not isinstance(command, StepCommand):
        raise QueryError("a step cannot run this command", place=place, remedy="send a command that changes the job")
    return command
