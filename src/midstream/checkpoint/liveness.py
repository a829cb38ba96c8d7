"""Whether a job runs, judged from its checkpoint by any reader: for people; no driver ever asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from midstream.checkpoint.epochs import EpochClaim
from midstream.model.errors import MidstreamError
from midstream.model.step_time import StepTime
from midstream.model.words import rough_span_text

State = Literal["running", "unknown", "stopped", "failed", "saved"]

SILENT, SILENT_INTERVALS = 60.0, 10.0
"""A job of another machine that has ended no step for so many seconds, and so many intervals of its trigger, may be
dead.
"""

KILLED = "it was killed, or its machine was"
"""The reason of a job whose process is gone and has recorded no end."""

LONGEST = 1_000
"""Characters of a reason that are kept."""


@dataclass(frozen=True)
class Liveness:
    """How a job is, `since` when (seconds since 1970, if that is known), and who runs it or ran it last.

    `running`: its process is there, or of a machine that cannot be looked at, and ended a step lately. `unknown`: it is
    of another machine, and has ended no step for long. `stopped`: it ended in order. `failed`: it ended by an error or
    was killed; `reason` says which. `saved`: no process ever ran it; an engine was saved, or a job forked.
    """

    state: State
    since: float | None = None
    reason: str = ""
    holder: str = ""

    @property
    def takes_commands(self) -> bool:
        """Whether somebody is, or may be, there to take a command from the log."""
        return self.state in ("running", "unknown")

    @property
    def word(self) -> str:
        """Name the state for a reader: `killed` where the process left no reason, else `state`.

        >>> Liveness("failed", reason=KILLED).word, Liveness("failed", reason="no space").word
        ('killed', 'failed')
        """
        return "killed" if self.state == "failed" and self.reason == KILLED else self.state

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {"state": self.state, "since": self.since, "reason": self.reason, "process": self.holder}

    def sentence(self, now: float) -> str:
        """Write a sentence for a reader at the time `now`, in seconds since 1970.

        >>> Liveness("failed", 100.0, "WriteError: no space", "process 7 on db1").sentence(220.0)
        'failed 2 min ago: WriteError: no space (process 7 on db1)'
        >>> Liveness("running", 100.0, holder="process 7 on db1").sentence(7300.0)
        'running for 2 h (process 7 on db1)'
        """
        span = "" if self.since is None else rough_span_text(max(now - self.since, 0.0))
        by = f" ({self.holder})" if self.holder else ""
        if self.state == "saved":
            return "not started: a saved engine, or a fork"
        if self.state == "running":
            return f"running{f' for {span}' if span else ''}{by}"
        if self.state == "unknown":
            silent = f"no step has ended for {span}" if span else "it has reported no step"
            return f"may be running on another machine, but {silent}{by}"
        reason = f": {self.reason}" if self.reason else ""
        # Of a process that was killed only the last sign is known.
        most = "less than " if self.word == "killed" else ""
        return f"{self.state}{f' {most}{span} ago' if span else ''}{reason}{by}"


def liveness(claim: EpochClaim | None, newest: StepTime | None, now: float) -> Liveness:
    """Judge how a job is by the newest claim on its checkpoint and the newest step whose times it has written."""
    if claim is None:
        return Liveness("saved")
    holder, begun = str(claim.holder), claim.claimed
    if claim.released:
        return Liveness("failed" if claim.failure else "stopped", claim.ended, claim.failure, holder)
    # What was noted before the claim is of another driver.
    ended = [newest.ended] if newest is not None and (begun is None or newest.ended >= begun) else []
    seen = max([*([] if begun is None else [begun]), *ended], default=None)
    if claim.holder.is_gone:
        return Liveness("failed", seen, KILLED, holder)
    every = 0.0 if newest is None or newest.interval is None else newest.interval
    lately = seen is not None and now - seen <= max(SILENT, SILENT_INTERVALS * every)
    if claim.holder.is_of_this_machine or lately:
        return Liveness("running", begun, holder=holder)
    return Liveness("unknown", seen, holder=holder)


def failure_text(error: BaseException | None) -> str:
    """Return why a job ended, as its claim keeps it: empty if it ended in order or was interrupted.

    >>> failure_text(ValueError("no such column")), failure_text(KeyboardInterrupt()), failure_text(None)
    ('ValueError: no such column', '', '')
    """
    if isinstance(error, MidstreamError):
        return (error.message + (f" (at {error.place})" if error.place else ""))[:LONGEST]
    if not isinstance(error, Exception):
        return ""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}".rstrip(": ")[:LONGEST]
