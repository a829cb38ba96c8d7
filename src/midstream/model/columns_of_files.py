"""Which columns of a file are meant by names: case does not count, as it does not for Spark."""

from __future__ import annotations

from collections.abc import Sequence


class AlikeColumns(ValueError):
    """A file has columns whose names differ only by case, so that nobody knows which of them is meant."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"its columns {' and '.join(map(repr, names))} differ only by case")


def own_names(declared: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """By declared name that of the column of a file, which may differ by case; those that a file lacks are left out.

    Raises `AlikeColumns` where two could be meant.

    >>> own_names(["k", "v"], ["ts", "K"])
    {'k': 'K'}
    """
    meant, found = [name.lower() for name in declared], dict[str, str]()
    for name in declared:
        alike = [one for one in given if one.lower() == name.lower()]
        if meant.count(name.lower()) > 1:
            alike = [one for one in alike if one == name]  # Checkpoints may have both, of files that have.
        if len(alike) > 1:
            raise AlikeColumns(alike)
        if alike:
            found[name] = alike[0]
    return found
