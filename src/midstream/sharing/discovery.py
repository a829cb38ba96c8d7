"""The schemes, found by looking."""

from __future__ import annotations

from functools import lru_cache

import midstream.sharing.schemes as room
from midstream.model.discovery import discover
from midstream.model.errors import QueryError
from midstream.sharing.schemes.base import Scheme


@lru_cache(maxsize=1)
def schemes() -> dict[str, Scheme]:
    """Load every scheme of the room and of other packages (entry points of `midstream.schemes`), in order of name.

    >>> sorted(schemes())
    ['auto', 'cpu_opt', 'mem_opt', 'off', 'pull_up', 'push_down']
    """
    return discover(room, Scheme, "midstream.schemes")


def scheme(name: object, place: str = "sharing") -> Scheme:
    """Return the scheme of a name; raises where there is none, naming the `place` where it is named.

    >>> scheme("mem_opt").delivery
    'prefix'
    """
    found = schemes().get(name) if isinstance(name, str) else None
    if found is None:
        raise QueryError(f"unknown sharing {name!r}", place=place, remedy=f"use one of: {', '.join(schemes())}")
    return found
