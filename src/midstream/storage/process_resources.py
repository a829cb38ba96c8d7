"""Resources that stores and sinks of a process share: threads, clients of buckets, caches on disk, opened chunks."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Made = TypeVar("Made")


class ProcessResources:
    """Make each resource once for a process, however many engines it runs, and end it.

    >>> resources = ProcessResources()
    >>> resources.once("a number", lambda: 1, close=lambda one: print("closed", one))
    1
    >>> resources.once("a number", lambda: 2)
    1
    >>> resources.close()
    closed 1
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._made: dict[Hashable, tuple[Any, Callable[[Any], object] | None]] = {}

    def once(self, what: Hashable, make: Callable[[], Made], close: Callable[[Made], object] | None = None) -> Made:
        """Return what `make` has made under this name; `close` ends it when it is forgotten."""
        known = self._made.get(what)
        if known is None:
            with self._lock:
                known = self._made.get(what) or self._made.setdefault(what, (make(), close))
        found: Made = known[0]
        return found

    def forget(self, what: Hashable) -> None:
        """End what was made under a name, if anything was; it is made again when it is asked for."""
        made, close = self._made.pop(what, (None, None))
        if close is not None:
            close(made)

    def close(self) -> None:
        """End everything that was made."""
        for what in list(self._made):
            self.forget(what)


RESOURCES = ProcessResources()
atexit.register(RESOURCES.close)
