"""What became of a command that was appended to a job's log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from midstream.checkpoint.reader import Checkpoint
from midstream.model.codec import decode, encode
from midstream.model.events import Event
from midstream.step.commands.base import StepCommand


@dataclass(frozen=True)
class Outcome:
    """What became of a command: `sent`, `refused`, `taken` (under way) or `done`."""

    state: str
    event: dict[str, Any] | None = None


def outcome_of(checkpoint: Checkpoint, number: int, command: StepCommand, since: int = -1) -> Outcome:
    """Find out what the steps after `since` have made of the command of this number."""
    manifest = checkpoint.manifest()
    if manifest.last_command < number:
        return Outcome("sent")
    sent = encode(command)
    for event in checkpoint.events(after=since):
        if event["event"] == "command_refused" and _same(event["command"], sent):
            return Outcome("refused", event)
        if command.is_done_by(decode(Event, event)):
            return Outcome("done", event)
    return Outcome("done" if command.is_met(manifest) else "taken")


def _same(refused: dict[str, Any], sent: dict[str, Any]) -> bool:
    return all(refused.get(key) == value for key, value in sent.items())
