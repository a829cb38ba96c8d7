"""Sending a command to a running job and learning what became of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from midstream.cli.errors import Failed
from midstream.cli.output import event_in_words, fields_text, print_json, say

if TYPE_CHECKING:
    from midstream.checkpoint.reader import Checkpoint
    from midstream.step.commands.base import StepCommand

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Outcome:
    """What became of a command: `sent`, `refused`, `taken` (under way) or `done`."""

    state: str
    event: dict[str, Any] | None = None


def send(path: str, command: StepCommand, wait: float | None, as_json: bool) -> None:
    """Check the command, append it, wait for its outcome if `wait` is given, and print it.

    It is checked against the job as the commands that no step has taken yet will leave it. What the job would refuse is
    raised here, and nothing is appended; a refusal nevertheless, or a vain wait, is a failure.
    """
    from midstream.checkpoint.reader import Checkpoint
    from midstream.model.codec import encode

    checkpoint = Checkpoint.open(path)
    before = checkpoint.manifest().step
    number, command = checkpoint.send(command)
    outcome = Outcome("sent") if wait is None else _await(checkpoint, number, command, before, wait)
    if as_json:
        print_json({"id": number, **encode(command), "outcome": outcome.state, "event": outcome.event})
    elif outcome.state != "refused":
        say(_sentence(number, command, outcome))
    if outcome.state == "refused" and outcome.event is not None:
        raise Failed(
            f"command {number} ({command.kind}) was refused: {outcome.event['reason']}",
            place=f"step {outcome.event['step']}",
            remedy="everything runs on as before; send a command that the reason allows",
        )
    if wait is not None and outcome.state != "done":
        raise Failed(
            f"command {number} ({command.kind}) is not done after {wait:g} seconds",
            place=checkpoint.url,
            remedy="the command stays in the log; see midstream status, and whether the job is running",
        )


def _await(checkpoint: Checkpoint, number: int, command: StepCommand, before: int, wait: float) -> Outcome:
    deadline = time.monotonic() + wait
    while True:
        manifest = checkpoint.manifest()
        outcome = Outcome("sent")
        if manifest.last_command >= number:
            outcome = _outcome(checkpoint, command, before)
            if outcome.state == "taken" and command.is_met(manifest):
                outcome = Outcome("done")
        if outcome.state in ("done", "refused") or time.monotonic() >= deadline:
            return outcome
        time.sleep(POLL_SECONDS)


def _outcome(checkpoint: Checkpoint, command: StepCommand, before: int) -> Outcome:
    from midstream.model.codec import decode, encode
    from midstream.model.events import Event

    sent = encode(command)
    for event in checkpoint.events(after=before):
        if event["event"] == "command_refused" and _same(event["command"], sent):
            return Outcome("refused", event)
        if command.is_done_by(decode(Event, event)):
            return Outcome("done", event)
    return Outcome("taken")


def _same(refused: dict[str, Any], sent: dict[str, Any]) -> bool:
    return all(refused.get(key) == value for key, value in sent.items())


def _sentence(number: int, command: StepCommand, outcome: Outcome) -> str:
    if outcome.event is None:
        became = {"sent": "is in the log; the job takes it with its next step", "taken": "was taken and is under way"}
        return f"command {number} ({command.kind}) {became.get(outcome.state, 'was done: it was so already')}"
    event = outcome.event
    detail = fields_text(event_in_words(event), "event", "step", "detail")
    return f"command {number} ({command.kind}) was done in step {event['step']}: {detail}"
