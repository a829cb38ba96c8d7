"""The linter of prose finds what the rules of style forbid, and nothing in what the repository has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

LINTER = ROOT / "scripts" / "lint_prose.py"


def lint(*arguments: str) -> list[str]:
    ran = subprocess.run([sys.executable, str(LINTER), *arguments], capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.returncode == (1 if ran.stdout else 0)
    return ran.stdout.splitlines()


def test_what_a_user_reads_has_no_finding() -> None:
    assert lint() == []


LONG = "You see " + "one more word and " * 12 + "an end."


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (f"# A page\n\n{LONG}\n", "length"),
        ("# A page\n\n- Whoever reads it need not ask.\n", "banned"),
        ("A row is read, is kept and is written by a job.\n", "passive"),
        ("| a | b |\n|---|---|\n| x | the reason stands in the log |\n", "banned"),
        ("A line that is no JSON object is refused.\n", "banned"),
        ("The sink is beside the table.\n", "banned"),
        ("What is late goes to a file.\n", "beginning"),
        ("An error that names the file that is damaged.\n", "chain"),
    ],
)
def test_a_fault_of_a_page_is_found(tmp_path: Path, text: str, rule: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    found = lint(str(page))
    assert found
    assert all(f": {rule}: " in one for one in found)


def test_code_links_and_short_sentences_are_no_faults(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long_code = "`" + "x " * 50 + "`"
    page.write_text(f"Write {long_code}. Read [this](whoever.md). midstream runs.\n\n```python\n# {LONG}\n```\n")
    assert lint(str(page)) == []


def test_a_fault_of_a_module_is_found_in_docstrings_help_and_errors(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "def public(x):\n"
        '    """Do what whoever calls wants."""\n'
        '    raise InputError(f"{x} stands in FROM", remedy="begin anew")\n\n\n'
        "def _private():\n"
        '    """Whoever begins beside it."""\n'
        '    raise error_at(text, node, f"{x} is told twice")\n\n\n'
        'kept = "the rows come anew from the file"\n'
        'query = "SELECT a FROM beside WHERE anew"\n'
        'option = Option(help="Whatever you like.")\n'
    )
    found = lint(str(module))
    expected = ["Whatever", "anew", "anew", "beside", "is told", "stands in", "whoever"]
    assert sorted(one.split("'")[1] for one in found) == expected
