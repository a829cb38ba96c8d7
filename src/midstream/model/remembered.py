"""What is remembered of values in a mapping of bounded size, which threads of a process may fill at the same time."""

from __future__ import annotations

from typing import Any


def make_room(remembered: dict[Any, Any], most: int) -> None:
    """Forget the oldest entries until there is room for one more; another thread may be forgetting the same.

    >>> found = {"a": 1, "b": 2, "c": 3}
    >>> make_room(found, most=2)
    >>> found
    {'c': 3}
    """
    if len(remembered) >= most:
        for oldest in [*remembered][: len(remembered) - most + 1]:
            remembered.pop(oldest, None)
