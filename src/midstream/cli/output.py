"""What the commands print: sentences, tables, JSON and a progress bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

WIDE = 200
"""How wide a table may be where there is no terminal."""


@cache
def terminal() -> Console:
    """Return the `rich` console on stdout. All output shares the console, so text does not break a progress bar."""
    from rich.console import Console

    out = Console(highlight=False)
    if not out.is_terminal:
        out.width = WIDE
    return out


def say(text: str, bold: bool = False) -> None:
    """Print a text. On a terminal, lines break between words."""
    terminal().print(text, style="bold" if bold else None, markup=False, soft_wrap=not terminal().is_terminal)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print one JSON value to stdout, as ASCII if the encoding of stdout is not Unicode."""
    takes_all = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    sys.stdout.write(json.dumps(value, indent=indent, ensure_ascii=not takes_all, default=str) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table with right-aligned columns of numbers, if there are rows."""
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
    terminal().print(table)


def cell_text(value: Any) -> str:
    """Format a value for a table.

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


def fields_text(value: dict[str, Any], *without: str) -> str:
    """Format the fields that are not empty, as one line.

    >>> fields_text({"query": "q", "plan": None, "options": {}, "together": False, "lanes": 0}, "id")
    'query q, lanes 0'
    """
    empty: tuple[Any, ...] = (None, {}, [], (), "")
    shown = {k: v for k, v in value.items() if k not in without and v is not False and v not in empty}
    return ", ".join(f"{k} {v}" for k, v in shown.items())


def progress_line(quiet: bool = False, *more: ProgressColumn) -> Progress:
    """Make a progress line for work of unknown length. Only a terminal shows this line."""
    from rich.progress import Progress, SpinnerColumn, TextColumn

    silent = quiet or not sys.stdout.isatty()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *more)
    return Progress(*columns, console=terminal(), transient=True, disable=silent)


@contextmanager
def busy(doing: str, quiet: bool = False) -> Iterator[None]:
    """Show the elapsed time while the `with` block runs, if stdout is a terminal."""
    from rich.progress import TimeElapsedColumn

    with progress_line(quiet, TimeElapsedColumn()) as progress:
        progress.add_task(doing, total=None)
        yield


def progress_bar(quiet: bool = False) -> Progress:
    """Make a progress bar. Only a terminal shows this bar."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn

    return progress_line(quiet, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
