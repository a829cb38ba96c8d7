"""The ways of sharing, found by looking."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

import midstream.sharing.schemes as room
from midstream.model.errors import QueryError
from midstream.sharing.schemes.base import Scheme


@lru_cache(maxsize=1)
def schemes() -> dict[str, Scheme]:
    """Every scheme of the room by its name, in order of name.

    >>> sorted(schemes())
    ['auto', 'cpu_opt', 'mem_opt', 'off', 'pull_up', 'push_down']
    """
    for module in pkgutil.iter_modules(room.__path__):
        importlib.import_module(f"{room.__name__}.{module.name}")
    return {kind.name: kind() for kind in sorted(Scheme.__subclasses__(), key=lambda kind: kind.name)}


def scheme(name: str) -> Scheme:
    """The scheme of a name."""
    if name not in schemes():
        raise QueryError(f"unknown sharing {name!r}", place="sharing", remedy=f"use one of: {', '.join(schemes())}")
    return schemes()[name]
