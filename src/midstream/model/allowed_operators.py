"""Which users' operators may be made: a name in a checkpoint, a command log or a job file runs no code by itself.

A checkpoint may have been written by anybody. So a class that it names is only made if this program has named it too,
in code or on its command line; if an installed package declares it as an entry point; or if it is an operator whose
module the program has imported already.
"""

from __future__ import annotations

import inspect
import sys
from importlib.metadata import entry_points
from typing import Any

ENTRY_POINTS = "midstream.user_operators"
"""The group of entry points by which a package says that its operators may be named anywhere."""

METHODS = ("feed", "snapshot", "restore")
"""What every operator has."""

_ALLOWED: set[str] = set()


def allow_operators(*names: str) -> None:
    """Allow operators, as `package.module:Class`, to be created wherever they are named.

    >>> allow_operators("shop.operators:Median")
    >>> is_allowed("shop.operators:Median"), is_allowed("os:system")
    (True, False)
    """
    _ALLOWED.update(names)


def allowed_operators() -> frozenset[str]:
    """Return the operators that this program has allowed so far."""
    return frozenset(_ALLOWED)


def is_allowed(name: str) -> bool:
    """Return whether an operator of this name may be created; imports nothing to find out."""
    if name in _ALLOWED:
        return True
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    if inspect.isclass(found) and all(callable(getattr(found, method, None)) for method in METHODS):
        return True
    return any(entry.value == name for entry in entry_points(group=ENTRY_POINTS))
