"""Errors a user can cause: each names the place and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Self


class MidstreamError(Exception):
    """The base class of midstream's errors.

    `place` is a position in a text, a file or a column; `remedy` says what to do.

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
    """A plan is invalid, or does not fit its query."""


class InputError(MidstreamError):
    """A stream, or a table that a program pushes into a stream, is wrong."""


class StrategyError(MidstreamError):
    """midstream cannot do a migration as requested. The query continues without a change."""


class QueryError(MidstreamError):
    """A name is unknown, taken or not allowed."""


class CheckpointError(MidstreamError):
    """A checkpoint is missing or damaged, belongs to another job, or has another format version."""


class NoCheckpointError(CheckpointError):
    """There is no checkpoint where one was looked for."""


class NoStepError(CheckpointError):
    """The job of a checkpoint has not finished a step yet, and nothing is wrong with it."""


class OtherFormatError(CheckpointError):
    """The checkpoint has a format that this version of midstream does not read; the remedy names one that does."""


class HeldCheckpointError(CheckpointError):
    """Another process writes the checkpoint, or may still write it."""


class LostCheckpointError(CheckpointError):
    """Another driver has taken the checkpoint over. This driver has stopped, and changes nothing more."""


class SinkError(MidstreamError):
    """A sink or a checkpoint cannot take results or state."""


class ReadError(CheckpointError):
    """midstream could not read a part of a checkpoint, although the part may exist. A later attempt may succeed."""


class WriteError(SinkError):
    """midstream could not write results or state, for a reason outside the job.

    For example, the disk is full, a permission is missing, or a server does not answer. A later attempt may succeed.
    """


class UndeliveredError(WriteError):
    """A sink did not take the results of a committed step. The next step delivers these results first."""


PASSING = (ReadError, WriteError, OSError, MemoryError)
"""What a step may fail by though nothing that it was given is at fault."""


class SparkError(MidstreamError):
    """Spark has failed: a worker, the JVM or a source. `__cause__` is the original exception."""


class InternalError(MidstreamError):
    """A step failed because of an internal fault, and midstream has undone all changes of the step.

    `__cause__` is the original exception. Report the error with its `place`.
    """

    @classmethod
    def of(cls, fault: Exception, place: str) -> Self:
        """Build the error for an unexpected exception at a place."""
        frames = extract_tb(fault.__traceback__)
        code = f"{Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
        remedy = (
            "report it with the traceback; you can push the rows again, and if that fails repeatedly, drop the query "
            "and add it again"
        )
        said = f"the step changed nothing, because of a fault: {type(fault).__name__}: {fault}"
        return cls(said, place=", ".join(filter(None, (place, code))), remedy=remedy)

    def within(self, place: str) -> Self:
        """Return a copy of the error, with `place` put before the error's own place."""
        return type(self)(self.message, place=f"{place}, {self.place}", remedy=self.remedy)


def located(error: Exception, place: Callable[[], str]) -> Exception:
    """Return the error to raise for one that happened at a place, from its `cause_of`.

    A fault becomes an `InternalError` that names the place.
    """
    if isinstance(error, InternalError):
        return error.within(place())
    return error if isinstance(error, MidstreamError | MemoryError) else InternalError.of(error, place())


def cause_of(error: Exception) -> BaseException | None:
    """Return the cause of the error that `located` returns."""
    return error.__cause__ if isinstance(error, MidstreamError | MemoryError) else error


@contextmanager
def fault_located(place: Callable[[], str]) -> Iterator[None]:
    r"""Raise any exception that is no `MidstreamError` as an `InternalError` that names this place.

    A `MemoryError` stays what it is.

    >>> try:
    ...     with fault_located(lambda: "step 7"), fault_located(lambda: "query 'q'"):
    ...         [][0]
    ... except InternalError as error:
    ...     print(error.message, error.place.partition(", <")[0], sep="\n")
    the step changed nothing, because of a fault: IndexError: list index out of range
    step 7, query 'q'
    """
    try:
        yield
    except Exception as error:
        raise located(error, place) from cause_of(error)
