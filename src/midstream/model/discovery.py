"""Open sets: the classes that fulfil a contract, found in a package of this house and by entry points of others."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Generic, TypeGuard, TypeVar

from midstream.model.errors import MidstreamError, QueryError

Contract = TypeVar("Contract")

Base = Callable[..., Contract]
"""The class that is a contract. It is abstract, and of abstract classes `type[Contract]` has none."""


def discover(package: ModuleType, base: Base[Contract], group: str) -> dict[str, Contract]:
    """Create an instance of every class that fulfils a contract, by its `name`, in order of name; see `kinds`."""
    return {name: kind() for name, kind in kinds(package, base, group).items()}


class OpenSet(Generic[Contract]):
    """An instance of every class that fulfils a contract, found at first use: `all` by name, or `named` one."""

    def __init__(
        self,
        package: ModuleType,
        base: Base[Contract],
        group: str,
        unknown: str,
        *,
        place: str,
        error: type[MidstreamError] = QueryError,
        also: tuple[str, ...] = (),
    ) -> None:
        """Declare the set; see `kinds`. A remedy lists the names `also` besides those of the set."""
        # Steps ask for it often: a call of a method would cost each of them.
        self.all = lru_cache(maxsize=1)(partial(discover, package, base, group))
        self._unknown, self._place, self._error, self._also = unknown, place, error, also

    def named(self, name: object, place: str = "") -> Contract:
        """Return the instance of a name; raises where there is none, naming the `place` where it is named."""
        found = self.all().get(name) if isinstance(name, str) else None
        if found is None:
            remedy = f"use one of: {', '.join((*self._also, *self.all()))}"
            raise self._error(f"{self._unknown} {name!r}", place=place or self._place, remedy=remedy)
        return found


def kinds(package: ModuleType, base: Base[Contract], group: str) -> dict[str, type[Contract]]:
    """Find every class that fulfils a contract, sorted by `name`.

    A class counts if it derives from `base`, has a `name` of its own, and has no abstract method. The search covers
    the modules of `package` and the entry points of `group` in installed distributions. An entry point in
    `pyproject.toml` has two lines, such as `[project.entry-points."midstream.schemes"]` and `hourly =
    "their_package.sharing:Hourly"`.

    Raises `MidstreamError` if an entry point does not load, does not fulfil the contract, or has the name of another
    class.
    """
    found: dict[str, type[Contract]] = {}
    for kind, place in (*_own(package, base), *_foreign(base, group)):
        name = vars(kind)["name"]
        if name in found:
            raise MidstreamError(
                f"two classes of {group} are called {name!r}",
                place=place,
                remedy="rename one of the classes, or uninstall its package",
            )
        found[name] = kind
    return dict(sorted(found.items()))


def load_modules(group: str) -> None:
    """Import the modules that installed distributions declare as entry points of a group."""
    for entry in entry_points(group=group):
        _loaded(entry, f"entry point {entry.name!r} of {group}")


def _own(package: ModuleType, base: Base[Contract]) -> Iterator[tuple[type[Contract], str]]:
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for kind in vars(importlib.import_module(module.name)).values():
            if _fulfils(kind, base) and kind.__module__ == module.name:
                yield kind, module.name


def _foreign(base: Base[Contract], group: str) -> Iterator[tuple[type[Contract], str]]:
    for entry in entry_points(group=group):
        place = f"entry point {entry.name!r} of {group}"
        kind = _loaded(entry, place)
        if not _fulfils(kind, base):
            raise MidstreamError(
                f"{entry.value} is not a valid {base.__name__}",
                place=place,
                remedy=f"name a class that derives from {base.__name__}, with a name and without abstract methods",
            )
        yield kind, place


def _loaded(entry: EntryPoint, place: str) -> object:
    try:
        return entry.load()
    except Exception as error:  # Importing another's module may raise anything.
        raise MidstreamError(
            f"{entry.value} cannot be loaded: {error}", place=place, remedy="repair or uninstall the package"
        ) from error


def _fulfils(kind: object, base: Base[Contract]) -> TypeGuard[type[Contract]]:
    assert isinstance(base, type)
    return inspect.isclass(kind) and issubclass(kind, base) and "name" in vars(kind) and not inspect.isabstract(kind)
