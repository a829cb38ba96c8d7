"""Frozen values: replace fields where every step does it, and remember what was derived from them.

What is remembered stays with a value for as long as it lives, or in a mapping of bounded size, which threads of a
process may fill at the same time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


def revised(value: Value, **changes: Any) -> Value:
    """Replace fields of a value that checks nothing; `dataclasses.replace` makes calls for every field.

    >>> from midstream.model.counters import Counters
    >>> revised(Counters(rows_in=2), purged=1).purged
    1
    """
    made = object.__new__(type(value))
    fields: dict[str, Any] = type(value).__dataclass_fields__  # type: ignore[attr-defined]
    own = {**value.__dict__, **changes}
    # What a value remembers beside its fields is of the value as it was.
    if len(own) > len(fields):
        for name in own.keys() - fields.keys():
            del own[name]
    object.__setattr__(made, "__dict__", own)
    return made


Found = TypeVar("Found")


def kept_with(value: Value, name: str, find: Callable[[Value], Found]) -> Found:
    """Return a value derived from a frozen value, and keep it with the fields of that value.

    Copies and pickles of the value must leave it out.
    """
    beside = value.__dict__
    if name not in beside:
        beside[name] = find(value)
    found: Found = beside[name]
    return found


def make_room(remembered: dict[Any, Any], most: int) -> None:
    """Forget the oldest entries until there is room for one more; other threads may do so at the same time.

    >>> found = {"a": 1, "b": 2, "c": 3}
    >>> make_room(found, most=2)
    >>> found
    {'c': 3}
    """
    if len(remembered) >= most:
        for oldest in [*remembered][: len(remembered) - most + 1]:
            remembered.pop(oldest, None)
