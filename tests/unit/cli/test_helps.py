"""What `--help` shows of every command."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest
import typer.main

from midstream.cli.arguments import CommandGroup, place_of
from midstream.cli.main import FUNCTIONS, app, main

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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_of_a_command_are_understood(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").touch()
    (tmp_path / "rates.csv").touch()
    examples = place_of(FUNCTIONS[name]).examples
    assert examples
    for example in examples:
        program, shown, *given = shlex.split(example)
        assert (program, shown) == ("midstream", name)
        COMMANDS[name].make_context(name, given)


def test_help_shows_commands_by_group_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [shown.index(group.value) for group in CommandGroup] == sorted(
        shown.index(group.value) for group in CommandGroup
    )
    assert shown.index("Look at a job") < shown.index("status") < shown.index("Change a running job")
    assert "--json" in shown
    assert main(["stop", "--help"]) == 0
    assert "midstream stop ckpt --wait 300" in capsys.readouterr().out
