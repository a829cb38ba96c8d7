"""What a benchmark requires, and what it found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.table import table


@dataclass(frozen=True)
class Verdict:
    """One requirement: what it is of, what was found, what is required, and whether that is met."""

    what: str
    found: str
    required: str
    met: bool


def verdict_table(found: Iterable[Verdict]) -> str:
    """The requirements as a table of a page.

    >>> print(verdict_table([Verdict("speed", "3", "at least 2", True)]), end="")
    | requirement | found | required |  |
    |---|--:|---|---|
    | speed | **3** | at least 2 | met |
    """
    rows = ((one.what, f"**{one.found}**", one.required, "met" if one.met else "**MISSED**") for one in found)
    return table(("requirement", "found", "required", ""), "lrll", rows)
