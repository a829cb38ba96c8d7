"""The lab's list against what the five papers have, as `papers_contents.txt` keeps it: captions, without sections."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from midstream.cli.main import main
from midstream.lab.contents import CONTENTS
from midstream.lab.figure import figures

ROOT = Path(__file__).parents[3]
PAPERS = (Path(__file__).parent / "papers_contents.txt").read_text().split("\n")[:-1]

DRAWN = re.compile(r"(zhu|hybmig|jisc|om|wang)_\w+(, (zhu|hybmig|jisc|om|wang)_\w+)*")
SOURCE = re.compile(r"(Fig\.|Table|Theorem|Lemma|Algorithm|Procedure|Proposition) (\d+(\.\d+)?)")


def names(item: str) -> list[str]:
    """The figures of the lab that an entry names."""
    return CONTENTS[item].split(", ") if DRAWN.fullmatch(CONTENTS[item]) else []


def test_all_that_the_papers_have_is_in_the_list_and_nothing_else() -> None:
    assert sorted(CONTENTS) == sorted(PAPERS)
    assert len(PAPERS) == len(set(PAPERS)) > 150


@pytest.mark.parametrize("item", CONTENTS)
def test_it_has_a_figure_or_says_in_a_line_why_not(item: str) -> None:
    found = names(item)
    assert set(found) <= figures().keys(), "there is no such figure"
    assert found or len(CONTENTS[item]) > len("no claim")
    assert not any(figures()[name].paper != item.split()[0] for name in found), "that is another paper's"
    for path in re.findall(r"tests/\S+\.py", CONTENTS[item]):
        assert (ROOT / path).exists(), f"{path} is gone"


@pytest.mark.parametrize("name", figures())
def test_what_a_figure_says_that_it_draws_is_listed_by_its_name(name: str) -> None:
    one = figures()[name]
    for kind, number, _ in SOURCE.findall(one.source):
        assert name in names(f"{one.paper} {kind} {number}")


def test_the_command_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(item in shown for item in PAPERS if not names(item))
