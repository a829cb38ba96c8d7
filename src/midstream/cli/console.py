"""What the commands share: tables, JSON, progress, and errors in words."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from midstream.model.errors import (
    InputError,
    LanguageError,
    MidstreamError,
    PlanError,
    QueryError,
    StrategyError,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

WIDE = 200
"""How wide a table may be where there is no terminal."""

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]


class WrongUse(MidstreamError):
    """The command cannot mean anything here: exit code 2."""


class Failed(MidstreamError):
    """What was asked was understood and did not come about: exit code 1."""


_WRONG_USE = (WrongUse, LanguageError, PlanError, QueryError, StrategyError, InputError)


def failure_text(error: Exception) -> tuple[str, int]:
    """The message for stderr and the exit code.

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
    r"""The one line of an error that says most. Spark packs a worker's whole traceback into its message.

    >>> essence(RuntimeError("Thrown by the worker:\nTraceback\n  File x\nKeyError: 'k'\n\tat Java"))
    "KeyError: 'k'"
    >>> essence(ValueError("no"))
    'ValueError: no'
    """
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines[1:] if re.match(r"[A-Za-z_][\w.]*(Error|Exception): .", line)]
    line = told[-1] if told and "Traceback" in str(error) else ": ".join([type(error).__name__, *lines[:1]])
    return line.rstrip(".:")


@cache
def console() -> Console:
    """The one console on stdout: what is printed on it and a progress bar do not get into each other's way."""
    from rich.console import Console

    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = WIDE
    return out


def say(text: str, bold: bool = False) -> None:
    """Write a text, broken between words on a terminal and nowhere else."""
    console().print(text, style="bold" if bold else None, markup=False, soft_wrap=not console().is_terminal)


def print_json(value: Any) -> None:
    """Write one JSON value to stdout."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Write a table; columns that hold only numbers are set to the right. No rows, no table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(columns):
        numbers = all(row[i] is None or isinstance(row[i], int | float) for row in rows)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell_text(value)) for value in row))
    console().print(table)


def cell_text(value: Any) -> str:
    """A value as a table shows it.

    >>> cell_text(1234567), cell_text(None), cell_text(0.25)
    ('1,234,567', '-', '0.25')
    """
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[Progress]:
    """A progress display that stays silent when stdout is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    silent = quiet or not sys.stdout.isatty()
    text = TextColumn("{task.description}")
    columns = (SpinnerColumn(), text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(), transient=True, disable=silent) as progress:
        yield progress
