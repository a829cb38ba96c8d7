"""Python's garbage collection, put off while much is made and dropped again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Put off garbage collections within this block, which must leave no cycles behind.

    What is dropped again meanwhile then never counts as made: so no full collection becomes due because of it, which
    takes as long as a hundred small steps in a process that holds much.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
