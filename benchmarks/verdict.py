"""What a benchmark requires, and what it found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """One requirement: what it is of, what was found, what is required, and whether that is met."""

    what: str
    found: str
    required: str
    met: bool
