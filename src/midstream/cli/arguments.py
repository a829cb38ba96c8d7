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
    """Groups of commands, in the order of `midstream --help`."""

    RUN = "Run a job"
    LOOK = "Look at a job"
    CHANGE = "Change a running job"
    RECOVER = "Keep, recover and clean up"
    TOOLS = "Tools"


@dataclass(frozen=True)
class CommandPlace:
    """A command's group in `midstream --help`, and the examples at the end of the command's own help."""

    group: CommandGroup
    examples: tuple[str, ...]

    @property
    def epilog(self) -> str | None:
        """Format the examples for typer, or return None if there are none."""
        # typer breaks lines only at empty lines.
        return None if not self.examples else "\n\n".join(["Examples:", *self.examples])


def placed(group: CommandGroup, *examples: str) -> Callable[[F], F]:
    """Decorate a command's function with a help group and examples.

    Each example is a whole command line.
    """

    def place(function: F) -> F:
        function.__dict__["place"] = CommandPlace(group, examples)
        return function

    return place


def place_of(function: Callable[..., Any]) -> CommandPlace:
    """Return the `CommandPlace` that `placed` recorded for a command's function."""
    place: CommandPlace = function.__dict__["place"]
    return place


CheckpointPath = Annotated[
    str, typer.Argument(metavar="CKPT", help="The checkpoint of a job or of a saved engine, as a path or a URL.")
]
QueryName = Annotated[str, typer.Argument(metavar="QUERY", help="The name of a running query.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text, for programs.")]
WaitSeconds = Annotated[
    float | None,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        help="The longest time to wait for the outcome of the command. Default: no wait.",
    ),
]


class Host(Enum):
    """Engine that runs a job."""

    SPARK = "spark"
    EMBEDDED = "embedded"


Engine = Annotated[
    Host, typer.Option("--engine", help="The engine that runs the job: spark, or embedded (in this process).")
]
EngineIfGiven = Annotated[
    Host | None,
    typer.Option(
        "--engine", help="The engine that will run the job. Default: the engine of the checkpoint, or else Spark."
    ),
]
AllowOperator = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-operator", metavar="MODULE:CLASS", help="Allow this operator of your own to run; may be repeated."
    ),
]
AllowSource = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-source",
        metavar="FORMAT[:OPTION]",
        help="Allow the job file to use this format or option of Spark; may be repeated.",
    ),
]


def named_values(texts: Iterable[str] | None, option: str) -> dict[str, Any]:
    """Parse arguments of the form NAME=VALUE, and refuse a repeated name. A value is JSON or a string.


    >>> named_values(["window=5", "column=paid"], "--option")
    {'window': 5, 'column': 'paid'}
    """
    pairs = [_named(text, option) for text in texts or ()]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise WrongUse("two values have the same name", place=option, remedy="give each name one value")
    return found


def _named(text: str, option: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise WrongUse(f"{text!r} is not NAME=VALUE", place=option, remedy="write, for example, hold_new=true")
    return name, json_or_text(value)


def json_or_text(text: str) -> Any:
    """Parse a text as JSON, or return the text if it is not JSON.

    >>> json_or_text("6"), json_or_text("auto")
    (6, 'auto')
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
