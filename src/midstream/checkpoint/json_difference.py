"""What one JSON value has that another had not, and the one made of the other again. Pure.

Parts that are the same object are equal: a writer that encodes each part once finds the difference of two large values
in the time that what changed takes. Objects keep the order of their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

Difference = dict[str, Any]
"""Of objects the names that are `set`, `gone`, and that differ `within`; of lists the `pieces`: a range [from, to] of
the old list, or an object with the items that are `new`.
"""

NEAR = 16
"""An item that is not the same object as before is looked for among so many old ones."""

_MISSING = object()


def difference(old: Any, new: Any) -> Difference | None:
    """Find what turns `old` into `new`; None if only writing `new` as a whole does.

    >>> old = {"step": 3, "lanes": {"a.0": {"rows": 5}, "a.1": {"rows": 7}}, "names": []}
    >>> difference(old, {**old, "step": 4, "lanes": {"a.0": {"rows": 6}, "a.1": {"rows": 7}}})
    {'set': {'step': 4}, 'within': {'lanes': {'within': {'a.0': {'set': {'rows': 6}}}}}}
    """
    if type(old) is not type(new):
        return None
    if type(new) is dict:
        return _of_objects(old, new)
    return _of_lists(old, new) if type(new) is list else None


def patched(old: Any, difference: Difference) -> Any:
    """Apply a difference and return the new value; `old` stays as it is.

    Raises `KeyError`, `TypeError`, `ValueError`, `AttributeError` or `IndexError` for what is no difference of `old`.

    >>> patched({"a": 1, "b": [{"n": 1}, {"n": 2}]}, {"gone": ["a"], "within": {"b": {"pieces": [[1, 2]]}}})
    {'b': [{'n': 2}]}
    """
    if "pieces" in difference:
        return [item for piece in difference["pieces"] for item in _items(old, piece)]
    made = dict(old)
    for name in difference.get("gone", ()):
        del made[name]
    for name, inner in difference.get("within", {}).items():
        made[name] = patched(old[name], inner)
    made.update(difference.get("set", {}))
    return made


def _of_objects(old: dict[str, Any], new: dict[str, Any]) -> Difference | None:
    own, gone = [name for name in old if name in new], list[str]()
    if len(own) < len(old):
        gone = [name for name in old if name not in new]
    if list(islice(new, len(own))) != own:
        return None
    told, within = dict[str, Any](), dict[str, Any]()
    for name, value in new.items():
        before = old.get(name, _MISSING)
        if before is value:
            continue
        inner = difference(before, value)
        if inner is None:
            if not _equal(before, value):
                told[name] = value
        elif inner:
            within[name] = inner
    parts = {"set": told, "gone": gone, "within": within}
    return {part: what for part, what in parts.items() if what}


def _of_lists(old: list[Any], new: list[Any]) -> Difference | None:
    pieces, at = list[Any](), 0
    for item in new:
        found = next((place for place in _places(old, at) if _equal(old[place], item)), None)
        if found is None:
            if not pieces or type(pieces[-1]) is list:
                pieces.append({"new": []})
            pieces[-1]["new"].append(item)
            continue
        if pieces and type(pieces[-1]) is list and pieces[-1][1] == found:
            pieces[-1][1] += 1
        else:
            pieces.append([found, found + 1])
        at = found + 1
    if pieces == [[0, len(old)]] or (not old and not new):
        return {}
    return {"pieces": pieces} if any(type(piece) is list for piece in pieces) else None


def _places(old: list[Any], at: int) -> Iterator[int]:
    yield from range(at, min(at + NEAR, len(old)))


def _items(old: Any, piece: Any) -> list[Any]:
    if type(piece) is dict:
        return list(piece["new"])
    begin, end = piece
    if not 0 <= begin < end <= len(old):
        raise IndexError(f"{begin} to {end} of {len(old)} items")
    return list(old[begin:end])


def _equal(old: Any, new: Any) -> bool:
    # `True` and 1 are written differently, and so are 0.0 and -0.0.
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if type(new) is dict:
        return len(old) == len(new) and all(
            one == other and _equal(old[one], new[other]) for one, other in zip(old, new, strict=True)
        )
    if type(new) is list:
        return len(old) == len(new) and all(map(_equal, old, new))
    return bool(repr(old) == repr(new) if type(new) is float else old == new)
