"""Work done in the threads of an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from typing import Any

from midstream.model.errors import InputError


def workers(threads: int | None) -> int:
    """Return how many threads an engine has; raises unless that is a whole number, or None for one by core."""
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise InputError(
            f"{threads!r} threads are not possible", place="threads", remedy="use 1 or more, or leave it out"
        )
    return threads or os.cpu_count() or 1


def in_threads(pool: Executor, do: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
    """Call a function for each item, in threads where there are several; all have ended when it fails."""
    if len(items) < 2:
        return [do(item) for item in items]
    doing = [pool.submit(do, item) for item in items]
    wait(doing)
    return [one.result() for one in doing]
