"""The spreadings, found by looking."""

from __future__ import annotations

from functools import lru_cache

import midstream.ring.spreadings as room
from midstream.model.discovery import discover
from midstream.model.errors import PlanError
from midstream.ring.spreading import Spreading


@lru_cache(maxsize=1)
def spreadings() -> dict[str, Spreading]:
    """Load every spreading of the room and of other packages (entry points of `midstream.spreadings`), in order of
    name.

    >>> list(spreadings())
    ['atr', 'ctr', 'hash_hops', 'lanes', 'one_lane', 'psp', 'psp_d', 'psp_i']
    """
    return discover(room, Spreading, "midstream.spreadings")


def spreading(name: object, place: str = "spread") -> Spreading:
    """Return the spreading of a name; raises where there is none, naming the `place` where it is named.

    >>> spreading("psp").ages
    True
    """
    found = spreadings().get(name) if isinstance(name, str) else None
    if found is None:
        raise PlanError(f"unknown spread {name!r}", place=place, remedy=f"use one of: auto, {', '.join(spreadings())}")
    return found
