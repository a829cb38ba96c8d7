"""The page in docs/ says what the data beside it say: every figure is there, with its files and all its verdicts."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.csv
import pytest

from midstream.lab.figure import Judgement, Scale, figures
from midstream.lab.lab_report import FigureOutcome, report
from midstream.migration.strategy_contract import strategies

DOCS = Path(__file__).parents[3] / "docs"
MOST_BYTES = 60_000
AGAIN = "make the page again: midstream lab --out docs/lab --report docs/lab.md"


@pytest.mark.parametrize("name", sorted(figures()))
def test_the_page_has_the_verdicts_of_the_data(name: str) -> None:
    found = figures()[name]
    csv, png = (DOCS / "lab" / f"{name}.{kind}" for kind in ("csv", "png"))
    assert csv.exists() and png.exists() and png.with_suffix(".svg").exists(), AGAIN
    assert csv.stat().st_size <= MOST_BYTES
    data = pyarrow.csv.read_csv(csv)
    verdicts = found.judge(data)
    assert verdicts
    page = (DOCS / "lab.md").read_text(encoding="utf-8").splitlines()
    text = report([FigureOutcome(found, data, verdicts, csv, png)], Scale.FULL, DOCS / "lab.md")
    _, _, appendix = text.partition("\n## Appendix\n")
    about = [line for line in appendix.splitlines() if line.startswith(("| ", "- **", "  *Measured", "  *Why", "!["))]
    assert not set(about) - set(page), AGAIN


def test_the_table_of_papers_counts_the_claims_of_the_page_and_readers_have_1500_words_before_the_appendix() -> None:
    head, _, appendix = (DOCS / "lab.md").read_text(encoding="utf-8").partition("\n## Appendix\n")
    assert len(head.split()) <= 1500
    rows = re.findall(r"^\| \[\w+\]\(#\w+\) \| (.*) \|$", head, re.MULTILINE)
    counted = [sum(column) for column in zip(*(map(int, row.split(" | ")) for row in rows), strict=True)]
    verdicts = [re.findall(rf"^\| .* \| \**{one.value}\** \| ", appendix, re.MULTILINE) for one in Judgement]
    assert counted == [appendix.count('<a id="'), *map(len, verdicts)]


def test_every_strategy_has_a_figure() -> None:
    drawn = frozenset[str]().union(*(figure.strategies for figure in figures().values()))
    assert not set(strategies()) - drawn
