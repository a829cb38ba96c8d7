"""Every link of a page to a file or a heading leads somewhere."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, Page


@cache
def anchors(path: Path) -> set[str]:
    return Page(path).anchors()


def broken(page: Page) -> list[str]:
    """The targets of a page's links that are not there."""
    found = []
    for target in page.links():
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (page.path.parent / name).resolve() if name else page.path
        there = path.exists() and (not anchor or (path.suffix == ".md" and anchor in anchors(path)))
        if not there:
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_somewhere(page: Page) -> None:
    assert broken(page) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Here we are\n[a](page.md) [b](#here-we-are) [c](#nowhere) [d](other.md) ![e](e.png) `[f](g)`\n")
    assert broken(Page(page)) == ["#nowhere", "other.md", "e.png"]
