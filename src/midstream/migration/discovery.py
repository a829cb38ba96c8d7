"""The strategies, found by looking."""

from __future__ import annotations

from functools import lru_cache

import midstream.migration as room
from midstream.migration.base import Strategy
from midstream.model.discovery import discover
from midstream.model.errors import StrategyError


@lru_cache(maxsize=1)
def discovered() -> dict[str, Strategy]:
    """Load every strategy of this room and of other packages (entry points of `midstream.strategies`), by name."""
    return discover(room, Strategy, "midstream.strategies")


def strategies() -> tuple[str, ...]:
    """List the names of all strategies, sorted.

    >>> "moving_state" in strategies()
    True
    """
    return tuple(discovered())


def strategy(name: str) -> Strategy:
    """Return the strategy of a name; raises `StrategyError` where there is none."""
    if name not in discovered():
        raise StrategyError(
            f"unknown strategy {name!r}", place="migrate", remedy=f"use one of: auto, {', '.join(strategies())}"
        )
    return discovered()[name]
