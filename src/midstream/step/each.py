"""How what is done for each of several is done: one after the other, or at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

What = TypeVar("What")
Done = TypeVar("Done")


class Each(Protocol):
    """Does something for each of several, which share nothing that changes; what came of each, in their order."""

    def __call__(self, do: Callable[[What], Done], many: Sequence[What], /) -> Iterable[Done]:
        """Call `do` for each of `many`, and return the results in their order."""


def one_by_one(do: Callable[[What], Done], many: Sequence[What], /) -> Iterable[Done]:
    """Call `do` for each of `many`, one after the other.

    >>> one_by_one(abs, [-1, 2])
    [1, 2]
    """
    return list(map(do, many))
