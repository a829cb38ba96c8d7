"""The strategies, found by looking."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from typing import Any

import midstream.migration as room
from midstream.migration.base import Strategy
from midstream.model.errors import StrategyError


@lru_cache(maxsize=1)
def discovered() -> dict[str, Strategy]:
    """Every strategy of this room by its name, in order of name."""
    for module in pkgutil.iter_modules(room.__path__):
        importlib.import_module(f"{room.__name__}.{module.name}")
    return {kind.name: kind() for kind in sorted(_named(Strategy), key=lambda kind: kind.name)}


def strategies() -> tuple[str, ...]:
    """The names of all strategies, sorted.

    >>> "moving_state" in strategies()
    True
    """
    return tuple(discovered())


def strategy(name: str) -> Strategy:
    """The strategy of a name."""
    if name not in discovered():
        raise StrategyError(
            f"unknown strategy {name!r}", place="migrate", remedy=f"use one of: auto, {', '.join(strategies())}"
        )
    return discovered()[name]


def _named(kind: type[Any]) -> list[type[Strategy]]:
    kinds: list[type[Any]] = kind.__subclasses__()
    found = [one for below in kinds for one in _named(below)]
    return [*found, kind] if "name" in vars(kind) else found
