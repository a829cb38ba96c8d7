"""The commands to a running job, through its log: one of the command line for each kind, made of its fields."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, getdoc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from midstream.cli.arguments import (
    AsJson,
    CheckpointPath,
    CommandGroup,
    WaitSeconds,
    json_or_text,
    named_values,
    place_of,
    placed,
)
from midstream.cli.exit_codes import WrongUse
from midstream.cli.send import send
from midstream.commands.base import StepCommand, offered
from midstream.model.command import COMMANDS, Input, Part, inputs_of
from midstream.model.discovery import load_modules
from midstream.storage.places import located


def verbs() -> dict[str, Callable[..., None]]:
    """Return a mapping from the names of commands to functions that send these commands to a job."""
    return {verb: _function_of(verb, kind, inputs) for verb, (kind, inputs) in offered().items()}


class Commands(TyperGroup):
    """Group of all commands, which loads the commands of other packages only on demand."""

    def get_command(self, ctx: Any, name: str) -> Any:
        """Return the command with this name, or None if there is none."""
        if name not in self.commands:
            self._take_in_others()
        return super().get_command(ctx, name)

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of all commands."""
        self._take_in_others()
        return super().list_commands(ctx)

    def _take_in_others(self) -> None:
        load_modules(COMMANDS)
        for name, function in verbs().items():
            if name not in self.commands:
                alone = typer.Typer(add_completion=False)
                add_to(alone, name, function)
                self.commands[name] = typer.main.get_command(alone)


def add_to(app: typer.Typer, name: str, function: Callable[..., Any]) -> None:
    """Add a command to its help group.

    Each paragraph of the help becomes one line, so that any terminal can wrap the paragraph.
    """
    place, text = place_of(function), getdoc(function) or ""
    paragraphs = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    app.command(name, help=paragraphs, rich_help_panel=place.group.value, epilog=place.epilog)(function)


def _function_of(verb: str, kind: type[StepCommand], inputs: tuple[Input, ...]) -> Callable[..., None]:
    kinds = [one for one, _ in offered().values() if one.option_of is not None and one.option_of[0] == verb]
    others = {one.option_of[1].strip("-"): one for one in kinds if one.option_of}

    def give(path: str, wait: float | None, as_json: bool, **given: Any) -> None:
        meant = [one for flag, one in others.items() if given[flag]]
        if len(meant) > 1:
            raise typer.BadParameter(
                f"only one of these options is allowed: {', '.join(f'--{flag}' for flag in others)}"
            )
        read = {one.name: _read(one, given) for one in inputs}
        values = {name: value for name, value in read.items() if value is not None}
        command = meant[0](*values.values()) if meant else kind(**values)
        send(path, command.allowed(), wait, as_json)

    asked = sorted(inputs, key=lambda one: not one.is_argument)
    parameters = {
        "path": (CheckpointPath, Parameter.empty),
        **{one.name: (_annotation(one), _default(one)) for one in asked},
        **{_word(part): (_own_option(part), None) for one in asked for part in one.prompt.parts},
        **{flag: (_other_kind(flag, one), False) for flag, one in others.items()},
        "wait": (WaitSeconds, None),
        "as_json": (AsJson, False),
    }
    give.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    each = [(name, hint, default) for name, (hint, default) in parameters.items()]
    give.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=default) for name, hint, default in each]
    )
    give.__name__, give.__doc__ = verb, getdoc(kind)
    return placed(CommandGroup.CHANGE, *(f"midstream {give.__name__} {one}" for one in kind.examples))(give)


_TYPES: Mapping[str, Any] = {"number": int, "flag": bool, "named": list[str], "list": list[str]}


def _annotation(one: Input) -> Any:
    base: Any = _TYPES.get(one.kind, str)
    optional = base if one.required or one.kind == "flag" else base | None
    metavar = one.prompt.metavar or {"named": "NAME=VALUE"}.get(one.kind) or one.name.upper()
    text = one.prompt.help or f"The {one.name.replace('_', ' ')}."
    limits: dict[str, Any] = {} if one.kind != "number" else {"min": one.prompt.least, "max": one.prompt.most}
    if one.is_argument:
        return Annotated[optional, typer.Argument(metavar=metavar, help=text, **limits)]
    shown: dict[str, Any] = {} if one.kind == "flag" else {"metavar": metavar}
    return Annotated[optional, typer.Option(one.option, help=text, **shown, **limits)]


def _word(part: Part) -> str:
    return part.option.strip("-")


def _own_option(part: Part) -> Any:
    return Annotated[str | None, typer.Option(part.option, metavar=part.metavar, help=part.help)]


def _other_kind(flag: str, kind: type[StepCommand]) -> Any:
    (asked,) = inputs_of(kind)
    return Annotated[
        bool, typer.Option(f"--{flag}", help=f"NAME is {asked.prompt.help[:1].lower()}{asked.prompt.help[1:]}")
    ]


def _default(one: Input) -> Any:
    if one.required:
        return Parameter.empty
    return False if one.kind == "flag" else None


def _read(one: Input, options: Mapping[str, Any]) -> Any:
    # None where nothing is given.
    given = options[one.name]
    if one.kind == "flag":
        return one.default is not True if given else None
    if one.kind == "named":
        own = {part.name: text for part in one.prompt.parts if (text := options[_word(part)]) is not None}
        values = named_values(given, one.option) if given else {}
        if twice := [name for name in own if name in values]:
            raise WrongUse(f"{twice[0]} has more than one value", place=one.option, remedy="give each name one value")
        values |= own
        if isinstance(values.get("path"), str):  # A job may run in another folder than this one.
            values["path"] = located(values["path"])
        return values or None
    if given is None or one.kind != "value":
        return sys.stdin.read() if one.prompt.long and given == "-" else given or None
    return json_or_text(given)
