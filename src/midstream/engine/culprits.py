"""Which of the commands that wait make a step fail, so that none stands in the way for good."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from midstream.model.command import Command
from midstream.model.errors import PASSING


def culprits(
    waiting: Sequence[Command], error: Exception, step: Callable[[Sequence[Command]], object]
) -> tuple[list[Command], list[Command]]:
    """Separate the waiting commands with which a step fails, and not without, from the others, which come first.

    `step` tries the step with some of them. Where the fault may pass, or is not theirs, all wait on.
    """
    innocent, guilty = list[Command](), list[Command]()
    if not waiting or isinstance(error, PASSING):
        return list(waiting), []
    try:
        if not _succeeds(step, ()):
            return list(waiting), []
        for command in waiting:
            if _succeeds(step, (*innocent, command)):
                innocent.append(command)
            else:
                guilty.append(command)
    except PASSING:
        return list(waiting), []
    return innocent, guilty


def _succeeds(step: Callable[[Sequence[Command]], object], commands: Sequence[Command]) -> bool:
    try:
        step(commands)
    except PASSING:
        raise
    except Exception:
        return False
    return True
