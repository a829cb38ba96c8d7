"""What `--help` shows of every command."""

from __future__ import annotations

import click
import pytest
import typer.main

from midstream.cli.main import app

COMMANDS: dict[str, click.Command] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_paragraph_is_one_line_which_the_terminal_wraps(name: str) -> None:
    text = COMMANDS[name].help or ""
    assert text and "\n" not in text.replace("\n\n", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_option_says_what_it_is(name: str) -> None:
    assert [one.name for one in COMMANDS[name].params if not getattr(one, "help", None)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_optional_is_bracketed_once(name: str) -> None:
    usage = COMMANDS[name].get_usage(click.Context(COMMANDS[name], info_name=name))
    assert "[[" not in usage
