"""Which of the commands that wait make a step fail, so that none stands in the way for good."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.errors import PASSING
from midstream.model.events import CommandRefused


def culprits(
    waiting: Sequence[Command], number: int, error: Exception, step: Callable[[Sequence[Command]], object]
) -> tuple[list[Command], list[CommandRefused]]:
    """The waiting commands that may wait on, and the refusals of those with which step `number` fails, and not without.

    `step` tries the step with some of them. Where the fault may pass, or is not theirs, all wait on.
    """
    innocent, refused = list[Command](), list[CommandRefused]()
    if not waiting or isinstance(error, PASSING):
        return list(waiting), []
    try:
        if not _succeeds(step, ()):
            return list(waiting), []
        for command in waiting:
            if _succeeds(step, (*innocent, command)):
                innocent.append(command)
            else:
                refused.append(CommandRefused(number, encode(command), str(error)))
    except PASSING:
        return list(waiting), []
    return innocent, refused


def _succeeds(step: Callable[[Sequence[Command]], object], commands: Sequence[Command]) -> bool:
    try:
        step(commands)
    except PASSING:
        raise
    except Exception:
        return False
    return True
