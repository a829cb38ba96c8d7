"""The Python that the pages show runs, and does what they say."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import PAGES, ROOT, Page


def needs_spark(page: Page) -> bool:
    return any("spark." in program for _, program in page.programs())


def run(page: Page, names: dict[str, Any]) -> None:
    """A page's pieces in order, in one namespace; one with prompts is a doctest."""
    for line, program in page.programs():
        if ">>>" in program:
            example = doctest.DocTestParser().get_doctest(program, names, page.name, page.name, line)
            runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
            runner.run(example, clear_globs=False)
            names.update(example.globs)
            assert runner.failures == 0, f"{page.name}:{line}"
        else:
            # Padding makes a traceback name the line of the page.
            exec(compile("\n" * (line - 1) + program, str(page.path), "exec"), names)


WITHOUT_SPARK = [page for page in PAGES if page.programs() and not needs_spark(page)]


@pytest.mark.parametrize("page", WITHOUT_SPARK, ids=[page.name for page in WITHOUT_SPARK])
def test_the_python_of_a_page_runs(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    run(page, {"__name__": "page"})


def test_python_that_fails_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    page = Page(tmp_path / "page.md")
    page.path.write_text("<!--python\nx = 1\n-->\n\n```python\n>>> x + 1\n2\n```\n\n```python\nassert x == 1\n```\n")
    run(page, {})
    page = Page(tmp_path / "wrong.md")
    page.path.write_text("```python\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(AssertionError, match=r"wrong.md:2"):
        run(page, {})


def test_code_that_a_page_says_is_of_a_file_is_in_that_file() -> None:
    quoted = 0
    for page in PAGES:
        for _, program in page.programs():
            first, *lines = program.splitlines()
            if first.startswith("# src/"):
                source = [line.strip() for line in (ROOT / first.removeprefix("# ")).read_text().splitlines()]
                assert [line for line in lines if line.strip() and line.strip() not in source] == [], first
                quoted += 1
    assert quoted
