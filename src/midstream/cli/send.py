"""Sending a command to a running job and learning what became of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from midstream.cli.exit_codes import Failed
from midstream.cli.output import busy, print_json, say

if TYPE_CHECKING:
    from midstream.checkpoint.reader import Checkpoint, Outcome
    from midstream.commands.base import StepCommand

POLL_SECONDS = 0.2


def send(path: str, command: StepCommand, wait: float | None, as_json: bool) -> None:
    """Check a command, append it to the log, and print its outcome.

    The check assumes that the job has taken all waiting commands of the log. If the job would then refuse the command,
    this function raises the error of the check, and appends nothing. The function waits at most `wait` seconds for the
    outcome. It raises `Failed` if the job refuses the command, or does not take the command in this time. The function
    does not wait for the end of a migration that the command begins.
    """
    from midstream.checkpoint.reader import Checkpoint, Outcome
    from midstream.model.codec import encode

    checkpoint = Checkpoint.open(path)
    before = checkpoint.manifest().step
    number, command = checkpoint.send(command)
    with busy("waiting for the job to do it", as_json or wait is None):
        outcome = Outcome("sent") if wait is None else _await(checkpoint, number, command, before, wait)
    # A job may have ended during the wait.
    life = checkpoint.liveness()
    if as_json:
        told = {"outcome": outcome.state, "event": outcome.event, "job": life.state}
        print_json({"id": number, **encode(command), **told})
    elif outcome.state != "refused":
        not_running = "" if life.takes_commands else life.sentence(time.time())
        say(_sentence(number, command, outcome, not_running, _under_way(checkpoint, command), _next_step(checkpoint)))
    if outcome.state == "refused" and outcome.event is not None:
        raise Failed(
            f"command {number} ({command.kind}) was refused: {outcome.event['reason']}",
            place=f"step {outcome.event['step']}",
            remedy="correct the command and send it again; the job continues unchanged",
        )
    if wait is not None and outcome.state == "sent":
        remedy = f"start the job again. State of the job: {life.sentence(time.time())}"
        if life.takes_commands:
            remedy = f"wait longer; the job runs and takes the command with {_next_step(checkpoint)}"
        raise Failed(
            f"the job has not taken command {number} ({command.kind}) after {wait:g} seconds",
            place=checkpoint.url,
            remedy=remedy,
        )


def _await(checkpoint: Checkpoint, number: int, command: StepCommand, before: int, wait: float) -> Outcome:
    from midstream.checkpoint.reader import outcome_of

    deadline = time.monotonic() + wait
    while True:
        outcome = outcome_of(checkpoint, number, command, before)
        if outcome.state in ("done", "refused") or time.monotonic() >= deadline:
            return outcome
        time.sleep(POLL_SECONDS)


def _under_way(checkpoint: Checkpoint, command: StepCommand) -> str:
    # Empty where the command has begun no migration.
    query = getattr(command, "query", None)
    moving = [one for one in checkpoint.report().migrations if query in one.queries]
    if not moving:
        return ""
    phase = f": {moving[-1].phase}" if moving[-1].phase else ""
    return f"begun in step {moving[-1].begun:,}, under way, {100 * moving[-1].progress:.0f} %{phase}"


def _next_step(checkpoint: Checkpoint) -> str:
    # A job on Spark does no step without new rows.
    return "its next batch of data" if checkpoint.manifest().is_on_spark else "its next step"


def _sentence(
    number: int, command: StepCommand, outcome: Outcome, not_running: str, under_way: str, next_step: str
) -> str:
    from midstream.explain.event_sentence import event_sentence
    from midstream.model.codec import decode
    from midstream.model.events import Event

    if outcome.event is None:
        sent = f"is in the log; the job takes it with {next_step}"
        if not_running:
            sent = f"is in the log; the job takes it when you start it again. State of the job: {not_running}"
        taken = f"was taken: {under_way or 'under way'}"
        if not_running:
            taken += f"; the job goes on with it when you start it again. State of the job: {not_running}"
        became = {"sent": sent, "taken": taken}
        return f"command {number} ({command.kind}) {became.get(outcome.state, 'was done: it was so already')}"
    event = decode(Event, outcome.event)
    return f"command {number} ({command.kind}) was done in step {event.step}: {event_sentence(event)}"
