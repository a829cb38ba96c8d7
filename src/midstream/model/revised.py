"""Frozen values made anew with other fields, where every step does it."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar

Value = TypeVar("Value")


def revised(value: Value, **changes: Any) -> Value:
    """What `dataclasses.replace` gives of a value that checks nothing; `replace` makes calls for every field.

    >>> from midstream.model.counters import Counters
    >>> revised(Counters(rows_in=2), purged=1).purged
    1
    """
    made = object.__new__(type(value))
    fields: dict[str, Any] = type(value).__dataclass_fields__  # type: ignore[attr-defined]
    own = {**value.__dict__, **changes}
    # What a value remembers beside its fields is of the value as it was.
    for name in own.keys() - fields.keys():
        del own[name]
    object.__setattr__(made, "__dict__", own)
    return made


def quickly_made(kind: type[Value]) -> type[Value]:
    """A frozen dataclass whose values are made in half the time: their fields are set all at once, where the `__init__`
    of `dataclasses` makes a call for each. For classes of which a step makes many values, and which have nothing to do
    after that: there is no `__post_init__`.

    >>> from dataclasses import dataclass
    >>> @quickly_made
    ... @dataclass(frozen=True)
    ... class Pair:
    ...     one: int
    ...     other: int = 2
    >>> Pair(1), Pair(other=4, one=3)
    (Pair(one=1, other=2), Pair(one=3, other=4))
    """
    assert not hasattr(kind, "__post_init__"), kind
    scope: dict[str, Any] = {"set_all": object.__setattr__}
    given, values = ["self"], []
    for one in fields(kind):  # type: ignore[arg-type]
        name, value, made = one.name, one.name, one.default_factory is not MISSING
        has_default = made or one.default is not MISSING
        if has_default:
            scope[f"_{name}"] = one.default_factory if made else one.default
        if not one.init:
            value = f"_{name}()" if made else f"_{name}"
        else:
            given.append(f"{name}=_{name}" if has_default else name)
            if made:  # The function that makes the default stands for a value that is not given.
                value = f"_{name}() if {name} is _{name} else {name}"
        values.append(f"{name!r}: {value}")
    exec(f"def init({', '.join(given)}): set_all(self, '__dict__', {{{', '.join(values)}}})", scope)
    kind.__init__ = wraps(kind.__init__)(scope["init"])  # type: ignore[method-assign]
    return kind
