"""The modes by which queries share what they join, by name."""

from __future__ import annotations

from midstream.model.errors import QueryError

SHARING = ("auto", "mem_opt", "cpu_opt", "pull_up", "push_down", "off")
"""`off` gives every query states of its own; `auto` lets the statistics say."""


def check_sharing(mode: object, place: str) -> None:
    """Raise unless there is such a mode."""
    if mode not in SHARING:
        raise QueryError(f"unknown sharing {mode!r}", place=place, remedy=f"use one of: {', '.join(SHARING)}")
