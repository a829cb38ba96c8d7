"""Every command that the pages name is there, with the options they give it."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer.main

from docs.command_reference import prose, reference
from midstream.cli.main import app
from tests.docs.pages import PAGES, ROOT, Page

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def unknown(line: str) -> str | None:
    """What of a command line is not there; None if all is, or if it is not a command of ours."""
    for part in re.split(r"&&|;|\|", line):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            words = part.split()
        if words[:1] == ["$"]:
            words = words[1:]
        problem = _unknown(words)
        if problem is not None:
            return problem
    return None


def _unknown(words: list[str]) -> str | None:
    match words:
        case ["midstream", "--version" | "--help" | "--install-completion", *_]:
            return None
        case ["midstream", name, *rest]:
            if name not in COMMANDS:
                return f"midstream {name}"
            known = {
                option for parameter in COMMANDS[name].params for option in (*parameter.opts, *parameter.secondary_opts)
            }
            given = {word.partition("=")[0] for word in rest if word.startswith("--")}
            return next((f"midstream {name} {option}" for option in sorted(given - known - {"--help"})), None)
        case ["make", target, *_]:
            return None if target in TARGETS else f"make {target}"
        case ["python", "-m", module, *_] if module.split(".")[0] in ("benchmarks", "docs", "midstream"):
            return None if find_spec(module) else f"python -m {module}"
        case ["python", script, *_] if script.endswith(".py"):
            return None if (ROOT / script).is_file() else f"python {script}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_commands_are_there(page: Page) -> None:
    assert [found for line in page.code() if (found := unknown(line)) is not None] == []


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("midstream status ckpt", None),
        ("midstream fly ckpt", "midstream fly"),
        ("midstream status ckpt --colour", "midstream status --colour"),
        ("midstream add ckpt q 'SELECT' && midstream land ckpt", "midstream land"),
        ("make demo    # flights", None),
        ("make tea", "make tea"),
        ("python -m benchmarks.sharing", None),
        ("python -m benchmarks.caring", "python -m benchmarks.caring"),
        ("python examples/quickstart.py", None),
        ("python examples/slowstart.py", "python examples/slowstart.py"),
        ("ls -l", None),
    ],
)
def test_a_command_that_is_not_there_is_found(line: str, missing: str | None) -> None:
    assert unknown(line) == missing


def test_pages_name_commands() -> None:
    readme = Page(Path(ROOT / "README.md"))
    assert sum(line.startswith("midstream ") for line in readme.code()) > 3


def test_the_reference_has_every_command_with_its_arguments_options_and_examples() -> None:
    sections = dict(re.findall(r"^### midstream (\S+)\n(.*?)(?=^##|\Z)", reference(), re.MULTILINE | re.DOTALL))
    assert sections.keys() == COMMANDS.keys()
    for name, command in COMMANDS.items():
        terms = re.findall(r"^\| `([^ `]+)", sections[name], re.MULTILINE)
        named = [one.metavar if one.param_type_name == "argument" else one.opts[0] for one in command.params]
        assert sorted(terms) == sorted(word.split()[0].replace("|", r"\|") for word in named if word), name
        assert (command.epilog or "").split("\n\n")[-1] in sections[name]


def test_the_reference_quotes_options_and_escapes_markup() -> None:
    assert prose("with --json, `a --b` and *") == "with `--json`, `a --b` and \\*"
