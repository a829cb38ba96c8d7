"""The users' predicates that are known: those that this program registered, and those of installed packages.

A query, a checkpoint, a command and a job file hold the name alone. So what a name runs is code of this program, or of
a package that declares it as an entry point; a checkpoint or a job file that somebody else wrote brings none along.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from midstream.expr.user_predicate import UserPredicate
from midstream.model.errors import QueryError

ENTRY_POINTS = "midstream.predicates"
"""The group of entry points by which a package offers predicates: by name what `midstream.predicate` gave."""

_KNOWN: dict[str, UserPredicate] = {}


def register(one: UserPredicate) -> None:
    """Have a predicate known by its name; a name keeps its types, for running queries were typed by them.

    Under the same types another function may take the place of one that failed.
    """
    known = _KNOWN.get(one.name)
    if known is not None and known.types != one.types:
        raise QueryError(
            f"the predicate {one.name!r} is registered as {known.describe()} already",
            place=f"predicate {one.describe()}",
            remedy="give the new one another name",
        )
    _KNOWN[one.name] = one


def user_predicate(name: str) -> UserPredicate | None:
    """The predicate of this name, in small letters; None if there is none."""
    if name not in _KNOWN:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            register(_loaded(name, entry.value, entry.load))
    return _KNOWN.get(name)


def is_declared(name: str) -> bool:
    """Whether there is a predicate of this name, in small letters; loads no package to find out.

    >>> is_declared("nowhere_to_be_found")
    False
    """
    return name in _KNOWN or any(entry_points(group=ENTRY_POINTS, name=name))


def needed(name: str) -> UserPredicate:
    """The predicate of a name that is to be asked now; raises a `QueryError` where there is none."""
    found = user_predicate(name)
    if found is None:
        raise QueryError(
            f"the predicate {name!r} is not registered here",
            place=f"predicate {name}",
            remedy=f"register it before the first step: {registering(name)}",
        )
    return found


def take(one: UserPredicate) -> None:
    """Have a predicate known in the place of any other of its name: a worker asks what its driver sent last."""
    _KNOWN[one.name] = one


def registering(name: str) -> str:
    """How the predicate of a name is registered, for messages."""
    made = f"midstream.predicate({name!r}, function, types of its arguments)"
    return f"{made}, or install the package that brings it by an entry point of {ENTRY_POINTS} or midstream.functions"


def _loaded(name: str, value: str, load: object) -> UserPredicate:
    place = f"entry point {name!r} of {ENTRY_POINTS}"
    try:
        assert callable(load)
        found = load()
    except Exception as error:  # Importing another's module may raise anything.
        raise QueryError(
            f"{value} cannot be loaded: {error!r}", place=place, remedy="repair or uninstall the package"
        ) from error
    if not isinstance(found, UserPredicate) or found.name != name:
        raise QueryError(
            f"{value} is not a predicate called {name!r}",
            place=place,
            remedy="name the value that midstream.predicate returned",
        )
    return found
