"""What a suite needs of any open set: the class under test among those that are found, and failures that say where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

Contract = TypeVar("Contract")


@contextmanager
def installed(found: dict[str, Contract], name: str, one: Contract) -> Iterator[None]:
    """Within this block `one` is among those found, as if its package were installed."""
    before = dict(found)
    found[name] = one
    try:
        yield
    finally:
        found.clear()
        found.update(before)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Whatever fails within this block becomes an `AssertionError` that begins with the place."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{where}: {error}") from error
