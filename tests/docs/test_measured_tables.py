"""The page of measurements and the README have the numbers of the pages that the benchmarks write."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT


def rows_of(text: str) -> list[list[str]]:
    """The cells of the tables in a text, by row; neither heads nor rules."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip().strip("*`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def part(page: str, heading: str) -> str:
    """What stands below a heading of a page, up to the next one of its depth."""
    text = (ROOT / page).read_text().partition(f"\n{heading}")[2]
    assert text, f"{page} has no {heading}"
    return text.partition("\n" + heading.split()[0] + " ")[0]


OPTIMIZED = rows_of(part("docs/measurements.md", "## What the optimizer saves"))[1:]


@pytest.mark.parametrize("row", OPTIMIZED, ids=[row[0] for row in OPTIMIZED])
def test_what_the_optimizer_saves_is_what_its_benchmark_found(row: list[str]) -> None:
    scenario, _, best, worst, adaptive, switches = row
    embedded = (ROOT / "benchmarks" / "OPTIMIZER.md").read_text().partition("\n## Embedded")[2]
    found = rows_of(embedded.partition(f"### {scenario}:")[2].partition("\n#")[0])[1:]
    kept = {name: regret for name, _, regret, *_ in found if name[0] in "([" or "best kept" in name}
    assert best == next(regret for name, regret in kept.items() if "best kept" in name)
    assert worst == max(kept.values(), key=float)
    assert [adaptive, switches] == next([one[2], one[4]] for one in found if one[0] == "adaptive")


def test_the_readme_has_the_rows_of_the_page_of_measurements() -> None:
    measured = rows_of(part("docs/measurements.md", "## Compared with Spark's own join"))
    shown = rows_of(part("README.md", "## How it compares"))
    assert len(shown) > 5
    assert [row for row in shown if row not in measured] == []


def test_rows_a_second_are_those_of_the_benchmark() -> None:
    results = rows_of((ROOT / "benchmarks" / "COMPARED.md").read_text())
    for row in rows_of(part("docs/measurements.md", "## Compared with Spark's own join"))[1:]:
        assert row in results
        ours, theirs = (float(row[place].replace(",", "")) for place in (1, 3))
        assert f"{ours / theirs:.1f}" == row[5]
