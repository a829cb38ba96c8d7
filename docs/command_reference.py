"""Write the reference of the command line as Markdown, from the definitions of the commands.

`docs/conf.py` puts the text into `docs/command_line.md` when Sphinx reads the page, so the page always fits the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

from typer import Context
from typer.main import get_command

from midstream.cli.main import app

MARK = "<!--commands-->"
"""The line of the page that the reference replaces."""

# An option outside of code: Sphinx would print its two hyphens as a dash.
OPTION = re.compile(r"(?<![\w`-])(--[a-z][\w-]*)")


def reference() -> str:
    """Write a section for each group of commands, in the order of `midstream --help`."""
    lines: list[str] = []
    group = None
    program = get_command(app)
    for name, command in program.commands.items():  # type: ignore[attr-defined]
        if command.rich_help_panel != group:
            group = command.rich_help_panel
            lines += [f"## {group}", ""]
        lines += section(name, command, Context(command, info_name=name))
    return "\n".join(lines)


def section(name: str, command: Any, context: Any) -> Iterator[str]:
    """Yield the lines about one command: its usage, help, arguments, options and examples."""
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    options = [one for one in shown if one.param_type_name != "argument"]
    words = [word if one.required else f"[{word}]" for one in arguments if (word := term(one, context))]
    yield from (f"### midstream {name}", "", "```console")
    yield from (" ".join(["midstream", name, *words, *(["[OPTIONS]"] if options else [])]), "```", "")
    yield from (prose(command.help), "")
    for title, parameters in (("argument", arguments), ("option", options)):
        if parameters:
            yield from (f"| {title} | meaning |", "|---|---|")
            yield from (f"| {code(term(one, context))} | {cell(one)} |" for one in parameters)
            yield ""
    _, *examples = (command.epilog or "").split("\n\n")
    if examples:
        yield from (f"Example{'s' if len(examples) > 1 else ''}:", "", "```console", *examples, "```", "")


def term(parameter: Any, context: Any) -> str:
    """Return the name of an argument, or an option with the name of its value."""
    value = parameter.metavar or parameter.display_type(context).replace(" range", "")
    if parameter.param_type_name == "argument":
        return str(value)
    flags = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return flags if parameter.is_flag else f"{flags} {value}"


def cell(parameter: Any) -> str:
    """Return the help of a parameter, with its environment variable and its default."""
    text = prose(parameter.help or "").replace("|", r"\|")
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    if variable := getattr(parameter, "envvar", None):
        text += f" Environment variable: {code(variable)}."
    if default not in (None, False, "") and not parameter.required:
        text += f" Default: {code(default)}."
    return text


def code(value: object) -> str:
    """Quote a value as code of Markdown, within a table."""
    return "`" + str(value).replace("|", r"\|") + "`"


def prose(text: str) -> str:
    """Escape what Markdown would read as markup, and quote options as code."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [OPTION.sub(r"`\1`", re.sub(r"([*<\[\]])", r"\\\1", piece)) for piece in pieces[::2]]
    return "".join(pieces)
