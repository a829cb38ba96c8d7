"""The figures, found by looking."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from functools import lru_cache

import midstream.lab.figures as room
from midstream.lab.figure import Figure
from midstream.model.errors import QueryError


@lru_cache(maxsize=1)
def figures() -> dict[str, Figure]:
    """Every figure of the room by its name, paper by paper, in the paper's order.

    >>> figures()["zhu_10"].source
    'Zhu §6.2, Fig. 10'
    """
    for module in pkgutil.iter_modules(room.__path__):
        importlib.import_module(f"{room.__name__}.{module.name}")
    here = [kind for kind in _below(Figure.__subclasses__()) if kind.__module__.startswith(f"{room.__name__}.")]
    # An abstract figure is a family of figures, not one.
    kinds = [kind for kind in here if not kind.__abstractmethods__]
    return {kind.name: kind() for kind in sorted(kinds, key=lambda kind: kind.name)}


def figure(name: str) -> Figure:
    """The figure of a name."""
    if name not in figures():
        raise QueryError(f"unknown figure {name!r}", place="lab", remedy=f"use one of: {', '.join(figures())}")
    return figures()[name]


def _below(kinds: Sequence[type[Figure]]) -> Iterator[type[Figure]]:
    for kind in kinds:
        yield kind
        yield from _below(kind.__subclasses__())
