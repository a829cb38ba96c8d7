"""What happens, told through Python's `logging`: records of the logger `midstream`, with fields for programs.

The library configures nothing: who wants to read it sets a level and a handler. The fold tells nothing; hosts do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from midstream.model.codec import encode
from midstream.model.command import Command
from midstream.model.errors import MidstreamError
from midstream.model.events import (
    ChainChanged,
    ChunksFetched,
    CommandRefused,
    Event,
    LanesReviewed,
    MigrationProgressed,
    PlanReviewed,
    ReviewFailed,
    RowsLate,
    RowsRejected,
    StateRebuilt,
    StepDelayed,
    StepDone,
    TimesDoubtful,
)
from midstream.model.step_time import StepTime

LOGGER = logging.getLogger("midstream")
LOGGER.addHandler(logging.NullHandler())

_WARNINGS = (RowsLate, RowsRejected, StepDelayed, CommandRefused, StateRebuilt, ReviewFailed, TimesDoubtful)
_DETAILS = (StepDone, ChunksFetched, MigrationProgressed, ChainChanged)


def log_step(time: StepTime, events: Iterable[Event], job: str = "") -> None:
    """Log a step that is done, at DEBUG, and what happened in it: changes at INFO, lost rows at WARNING.

    Each record has `extra` fields: `event` (its kind), `step`, `job`, and `fields`, the event as JSON values.
    """
    for event in events:
        level = _level(event)
        if not isinstance(event, StepDone) and LOGGER.isEnabledFor(level):
            _tell(level, event.kind, event.step, job, encode(event))
    if LOGGER.isEnabledFor(logging.DEBUG):
        _tell(logging.DEBUG, StepDone.kind, time.step, job, encode(time))


def log_command(command: Command, step: int, number: int | None = None, job: str = "") -> None:
    """Log a command that was given, at INFO.

    Args:
        command: The command.
        step: The newest step.
        number: The number of the command in the command log, if it is there.
        job: The id of the job.
    """
    if LOGGER.isEnabledFor(logging.INFO):
        value = encode(command)
        _tell(logging.INFO, "command", step, job, value if number is None else {"id": number, **value})


def log_failure(error: BaseException, step: int, job: str = "") -> None:
    """Log a step that failed, at ERROR, with the traceback."""
    place = {"place": error.place, "remedy": error.remedy} if isinstance(error, MidstreamError) else {}
    fields = {"error": type(error).__name__, "message": str(error), **place}
    extra = {"event": "step_failed", "step": step, "job": job, "fields": fields}
    LOGGER.error("step %d failed: %s", step, error, exc_info=error, extra=extra)


def _tell(level: int, kind: str, step: int, job: str, fields: dict[str, object]) -> None:
    shown = ", ".join(
        f"{name} {value}" for name, value in fields.items() if name not in ("event", "step") and value not in (None, "")
    )
    extra = {"event": kind, "step": step, "job": job, "fields": fields}
    LOGGER.log(level, "step %d: %s: %s", step, kind, shown, extra=extra)


def is_news(event: Event) -> bool:
    """Return whether an event is news by itself to somebody who watches a job; lost rows are counted instead.

    >>> is_news(StepDone(1, {}, {}, 0, 0, {})), is_news(CommandRefused(1, {}, "why not"))
    (False, True)
    """
    return _level(event) >= logging.INFO and not isinstance(event, RowsLate | RowsRejected)


def _level(event: Event) -> int:
    if isinstance(event, _WARNINGS):
        return logging.WARNING
    stays = isinstance(event, PlanReviewed | LanesReviewed) and event.decision == "stay"
    return logging.DEBUG if stays or isinstance(event, _DETAILS) else logging.INFO
