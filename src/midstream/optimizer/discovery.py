"""The policies, found by looking."""

from __future__ import annotations

from functools import lru_cache

import midstream.optimizer.policies as room
from midstream.model.discovery import discover
from midstream.model.errors import QueryError
from midstream.optimizer.policies.base import Policy


@lru_cache(maxsize=1)
def policies() -> dict[str, Policy]:
    """Load every policy of the room and of other packages (entry points of `midstream.policies`), in order of name.

    >>> "adaptive" in policies()
    True
    """
    return discover(room, Policy, "midstream.policies")


def policy(name: object, place: str = "optimize") -> Policy:
    """Return the policy of a name; raises where there is none, naming the `place` where it is named."""
    found = policies().get(name) if isinstance(name, str) else None
    if found is None:
        raise QueryError(f"unknown policy {name!r}", place=place, remedy=f"use one of: {', '.join(policies())}")
    return found
