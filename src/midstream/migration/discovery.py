"""The strategies, found by looking."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from typing import Any

import midstream.migration as room
from midstream.migration.base import Strategy
from midstream.migration.under_way.lasting import Lasting
from midstream.model.errors import CheckpointError, StrategyError


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


def lasting(name: str) -> Lasting:
    """The strategy that a manifest names for a migration under way."""
    found = discovered().get(name)
    if not isinstance(found, Lasting):
        raise CheckpointError(
            f"a migration by {name!r} is under way, which this version does not know",
            place="manifest",
            remedy="use the version of midstream that began it, or go back to an older step of the checkpoint",
        )
    return found


def _named(kind: type[Any]) -> list[type[Strategy]]:
    kinds: list[type[Any]] = kind.__subclasses__()
    found = [one for below in kinds for one in _named(below)]
    return [*found, kind] if "name" in vars(kind) else found
