"""The figures, found by looking."""

from __future__ import annotations

from functools import lru_cache

import midstream.lab.figures as room
from midstream.lab.figure import Figure
from midstream.model.discovery import discover
from midstream.model.errors import QueryError


@lru_cache(maxsize=1)
def figures() -> dict[str, Figure]:
    """Load every figure of the room and of other packages (entry points of `midstream.figures`), paper by paper, in
    order.

    >>> figures()["zhu_10"].source
    'Zhu §6.2, Fig. 10'
    """
    return discover(room, Figure, "midstream.figures")


def figure(name: str) -> Figure:
    """Return the figure of a name; raises `QueryError` where there is none."""
    if name not in figures():
        raise QueryError(f"unknown figure {name!r}", place="lab", remedy=f"use one of: {', '.join(figures())}")
    return figures()[name]
