"""Arguments and options that several commands take."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any

import typer

from midstream.cli.errors import WrongUse

CheckpointPath = Annotated[
    str, typer.Argument(metavar="CKPT", help="The checkpoint of a job, or of a saved engine: a path or a URL.")
]
QueryName = Annotated[str, typer.Argument(metavar="QUERY", help="The name of a running query.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]
WaitSeconds = Annotated[
    float | None,
    typer.Option("--wait", metavar="SECONDS", min=0, help="Wait for the job to carry it out, and show the outcome."),
]


class Host(Enum):
    """What runs a job."""

    SPARK = "spark"
    EMBEDDED = "embedded"


Engine = Annotated[Host, typer.Option("--engine", help="Spark, or embedded: this one process, for folders of files.")]
AllowOperator = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-operator", metavar="MODULE:CLASS", help="An operator of yours that may run; may be repeated."
    ),
]
AllowSource = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-source",
        metavar="FORMAT[:OPTION]",
        help="A format or option of Spark that the job file may use; repeatable.",
    ),
]


def named_values(texts: Iterable[str] | None, option: str) -> dict[str, Any]:
    """Parse values given as NAME=VALUE, JSON where they are JSON; a name that is given twice is refused.

    >>> named_values(["window=5", "column=paid"], "--option")
    {'window': 5, 'column': 'paid'}
    """
    pairs = [_named(text, option) for text in texts or ()]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise WrongUse("a name is given more than once", place=option, remedy="give each name one value")
    return found


def _named(text: str, option: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise WrongUse(f"{text!r} is not NAME=VALUE", place=option, remedy="write it as in hold_new=true")
    return name, json_or_text(value)


def json_or_text(text: str) -> Any:
    """Parse a value that is JSON, or return it as the text that it is.

    >>> json_or_text("6"), json_or_text("auto")
    (6, 'auto')
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
