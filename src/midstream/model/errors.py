"""Errors a user can cause: each names the place and the remedy."""

from __future__ import annotations


class MidstreamError(Exception):
    """The base of every error a user can cause.

    `place` says where (a position in a text, a file, a column); `remedy` says what to do.

    >>> str(MidstreamError("unknown column 'x'", place="line 1, column 8", remedy="use one of: k, v"))
    "unknown column 'x' (at line 1, column 8). Remedy: use one of: k, v"
    """

    def __init__(self, message: str, *, place: str = "", remedy: str = "") -> None:
        self.message, self.place, self.remedy = message, place, remedy
        text = f"{message} (at {place})" if place else message
        super().__init__(f"{text}. Remedy: {remedy}" if remedy else text)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.place, self.remedy)


def _rebuild(kind: type[MidstreamError], message: str, place: str, remedy: str) -> MidstreamError:
    return kind(message, place=place, remedy=remedy)


class LanguageError(MidstreamError):
    """A query, a duration, a schema text or a job file is wrong."""


class PlanError(MidstreamError):
    """A plan is wrong in itself or does not fit its query."""


class InputError(MidstreamError):
    """A stream, or a table pushed into one, is wrong."""


class StrategyError(MidstreamError):
    """A migration cannot be done as asked; the query runs on unchanged."""


class QueryError(MidstreamError):
    """A query name is unknown or taken."""


class CheckpointError(MidstreamError):
    """A checkpoint is missing, damaged, of another job or of another format version."""


class SinkError(MidstreamError):
    """Results or state cannot be written where they should go."""
