"""Arguments and options that several commands take."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, TypeVar

import typer

from midstream.cli.exit_codes import WrongUse

F = TypeVar("F", bound=Callable[..., Any])


class CommandGroup(Enum):
    """The parts of `midstream --help`, in the order in which it prints them."""

    RUN = "Run a job"
    LOOK = "Look at a job"
    CHANGE = "Change a running job"
    RECOVER = "Keep, recover and clean up"
    TOOLS = "Tools"


@dataclass(frozen=True)
class CommandPlace:
    """Group in which `midstream --help` shows a command, and the `examples` at the end of its own help."""

    group: CommandGroup
    examples: tuple[str, ...]

    @property
    def epilog(self) -> str | None:
        """Format the examples for typer, which starts a new line at each empty line; None without examples."""
        return None if not self.examples else "\n\n".join(["Examples:", *self.examples])


def placed(group: CommandGroup, *examples: str) -> Callable[[F], F]:
    """Record the help group of a command's function, and examples that are whole command lines."""

    def place(function: F) -> F:
        function.__dict__["place"] = CommandPlace(group, examples)
        return function

    return place


def place_of(function: Callable[..., Any]) -> CommandPlace:
    """Return the place that `placed` gave to a command's function."""
    place: CommandPlace = function.__dict__["place"]
    return place


CheckpointPath = Annotated[
    str, typer.Argument(metavar="CKPT", help="The checkpoint of a job, or of a saved engine: a path or a URL.")
]
QueryName = Annotated[str, typer.Argument(metavar="QUERY", help="The name of a running query.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value, for programs, instead of text.")]
WaitSeconds = Annotated[
    float | None,
    typer.Option("--wait", metavar="SECONDS", min=0, help="Wait for the job to carry it out, and show the outcome."),
]


class Host(Enum):
    """Engine that runs a job."""

    SPARK = "spark"
    EMBEDDED = "embedded"


Engine = Annotated[Host, typer.Option("--engine", help="Spark, or embedded: this one process, for folders of files.")]
EngineIfGiven = Annotated[
    Host | None,
    typer.Option("--engine", help="Engine that is to run the job; without it that of the checkpoint, else Spark."),
]
AllowOperator = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-operator", metavar="MODULE:CLASS", help="An operator of your own that may run; may be repeated."
    ),
]
AllowSource = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-source",
        metavar="FORMAT[:OPTION]",
        help="A format or option of Spark that the job file may use; may be repeated.",
    ),
]


def named_values(texts: Iterable[str] | None, option: str) -> dict[str, Any]:
    """Parse arguments of the form NAME=VALUE, with JSON values or strings; refuse a name that is given twice.

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
        raise WrongUse(f"{text!r} is not NAME=VALUE", place=option, remedy="write, for example, hold_new=true")
    return name, json_or_text(value)


def json_or_text(text: str) -> Any:
    """Parse a value as JSON, or return the text if it is not JSON.

    >>> json_or_text("6"), json_or_text("auto")
    (6, 'auto')
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
