"""Users' predicates on their way into the Python workers: as Spark sends functions, never by way of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.serializers import CloudPickleSerializer

from midstream.expr.user_predicates import UserPredicate, needed, take
from midstream.model.errors import QueryError


@dataclass(frozen=True)
class ShippedPredicates:
    """The predicates that a step asks; Spark sends them with the task that holds them.

    A function of a module that the workers have goes by its name, any other by its code.
    """

    predicates: tuple[UserPredicate, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str]) -> ShippedPredicates:
        """Collect the predicates registered under these names; raises a `QueryError` for one that cannot be sent."""
        found = cls(tuple(needed(name) for name in names))
        for one in found.predicates:
            _check(one)
        return found

    def take_up(self) -> None:
        """Register the predicates in this process, in place of any others of their names."""
        for one in self.predicates:
            take(one)


def _check(one: UserPredicate) -> None:
    # Spark's own error does not say which predicate cannot be sent.
    serializer: Any = CloudPickleSerializer
    try:
        serializer().dumps(one)
    except Exception as error:  # What a function refers to may raise anything.
        raise QueryError(
            f"the predicate cannot be sent to the workers: {(error.__context__ or error)!r}",
            place=f"predicate {one.describe()}",
            remedy="do not use objects of the driver, such as a session, a lock or an open file",
        ) from error
