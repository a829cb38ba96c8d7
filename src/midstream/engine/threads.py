"""Work done in the threads of an engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from typing import Any


def in_threads(pool: Executor, do: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
    """Do something for each, in threads where there are several; all have ended when it fails."""
    if len(items) < 2:
        return [do(item) for item in items]
    doing = [pool.submit(do, item) for item in items]
    wait(doing)
    return [one.result() for one in doing]
