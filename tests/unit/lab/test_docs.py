"""The page in docs/ says what the data beside it say: every figure is there, with its files and all its verdicts."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pytest

from midstream.lab.figure import Scale, figures
from midstream.lab.report import report
from midstream.lab.run import FigureOutcome
from midstream.migration.base import strategies

DOCS = Path(__file__).parents[3] / "docs"
MOST_BYTES = 60_000
AGAIN = "make the page again: midstream lab --quick --out docs/lab --report docs/lab.md"


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
    found_text = report([FigureOutcome(found, data, verdicts, csv, png)], Scale.QUICK, DOCS / "lab.md").splitlines()
    about = [line for line in found_text if line.startswith(("| ", "- **", "  *Measured", "  *Why", "!["))]
    assert not set(about) - set(page), AGAIN


def test_every_strategy_has_a_figure() -> None:
    drawn = frozenset[str]().union(*(figure.strategies for figure in figures().values()))
    assert not set(strategies()) - drawn
