"""Errors of the command line: the message on stderr and the exit code of each."""

from __future__ import annotations

from pathlib import Path

from midstream.model.errors import (
    InputError,
    LanguageError,
    MidstreamError,
    NoCheckpointError,
    PlanError,
    QueryError,
    StrategyError,
)
from midstream.model.spark_cause import spark_cause


class WrongUse(MidstreamError):
    """Error for a wrong command or a wrong argument; the exit code is 2."""


def folder_made(path: Path) -> Path:
    """Make a folder and its parents, or raise `WriteError`."""
    from midstream.storage.disk import Writing

    with Writing(str(path)):
        path.mkdir(parents=True, exist_ok=True)
    return path


class Failed(MidstreamError):
    """Error for a valid command that failed; the exit code is 1."""


_WRONG_USE = (WrongUse, LanguageError, PlanError, QueryError, StrategyError, InputError, NoCheckpointError)


def failure_text(error: Exception) -> tuple[str, int]:
    """Format an error as the message for stderr, and choose the exit code.

    >>> failure_text(QueryError("no query 'x'", remedy="use one of: pairs"))
    ("midstream: no query 'x'. Remedy: use one of: pairs", 2)
    """
    if isinstance(error, MidstreamError):
        return f"midstream: {error}", 2 if isinstance(error, _WRONG_USE) else 1
    format_message = getattr(error, "format_message", None)  # typer's own errors, whichever version
    if callable(format_message):
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "midstream"
        return f"midstream: {format_message().rstrip('.')}. Remedy: see {path} --help", getattr(error, "exit_code", 1)
    remedy = "set MIDSTREAM_TRACEBACK=1 to see where it happened"
    return f"midstream: {essence(error)}. Remedy: {remedy}", 1


def essence(error: Exception) -> str:
    r"""Extract the most useful line of an error, even from a worker's traceback in a message of Spark.


    >>> essence(RuntimeError("Thrown by it:\nTraceback (most recent call last)\n  File x\nKeyError: 'k'\n\tat Java"))
    "KeyError: 'k'"
    >>> essence(ValueError("no"))
    'ValueError: no'
    """
    text = str(error)
    if "Traceback (most recent call last)" in text or text.startswith("An error occurred while calling"):
        return spark_cause(text).rstrip(".:")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return ": ".join([type(error).__name__, *lines[:1]]).rstrip(".:")
