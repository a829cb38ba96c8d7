"""Users' predicates on their way into the Python workers: as Spark sends functions, never by way of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark import cloudpickle

from midstream.language.user_predicate import UserPredicate
from midstream.language.user_predicates import needed, take
from midstream.model.errors import QueryError

_TAKEN: dict[str, bytes] = {}
"""What this process took last of each name."""


@dataclass(frozen=True)
class ShippedPredicates:
    """The predicates that a step asks, by name, each as what Spark would make of its function.

    A function of a module that the workers have goes by its name, any other by its code.
    """

    pickled: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Iterable[str]) -> ShippedPredicates:
        """Those that are registered here under these names; raises a `QueryError` for one that cannot be sent."""
        return cls({name: _pickled(needed(name)) for name in names})

    def take_up(self) -> None:
        """Have them registered in this process, in the place of any others of their names."""
        for name, data in self.pickled.items():
            if _TAKEN.get(name) != data:
                take(_unpickled(name, data))
                _TAKEN[name] = data


def _pickled(one: UserPredicate) -> bytes:
    try:
        dumps: Any = cloudpickle.dumps
        made: bytes = dumps(one)
    except Exception as error:  # What a function refers to may raise anything.
        raise QueryError(
            f"the predicate cannot be sent to the workers: {error!r}",
            place=f"predicate {one.describe()}",
            remedy="let it use nothing that stays on the driver, such as a session, a lock or an open file",
        ) from error
    return made


def _unpickled(name: str, data: bytes) -> UserPredicate:
    try:
        loads: Any = cloudpickle.loads
        found = loads(data)  # It came from the driver of this very job, as the task itself did.
    except Exception as error:
        raise QueryError(
            f"the predicate cannot be made in a worker: {error!r}",
            place=f"predicate {name}",
            remedy="its module must be importable in every worker: PYTHONPATH, or SparkContext.addPyFile",
        ) from error
    assert isinstance(found, UserPredicate)
    return found
