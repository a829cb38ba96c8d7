"""Scalar functions as an open set: each is one file with its typing rule, its evaluation and its documentation.

A file of `expr/kernels` that defines a `ScalarFunction` is found there, one of another package by its entry point.
The functions that midstream has had from the beginning are rows of `functions.CATALOGUE`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import ClassVar

import pyarrow as pa

import midstream.expr.kernels as package
from midstream.expr.kernels.datum import Datum, column_of, is_scalar
from midstream.expr.rules import Arguments
from midstream.model.discovery import discover
from midstream.model.errors import QueryError

ENTRY_POINTS = "midstream.functions"


class ScalarFunction(ABC):
    """A function that queries call by its `name`, in small letters; the docstring documents it for users.

    It must be deterministic, and its value for a row must depend on that row alone: rows are evaluated together in
    other groups from plan to plan. Where it `can_fail`, NULL for arguments that are not NULL makes a row a dead letter.
    """

    name: ClassVar[str]
    can_fail: ClassVar[bool] = False

    @abstractmethod
    def rule(self, arguments: Arguments) -> tuple[pa.DataType, Arguments]:
        """Return the type of the value, and the arguments with the casts that the function needs.

        `rules.counted` and `shaped_rules.shaped` make rules. Raises LanguageError, by `rules.wrong`, without a place.
        """

    @abstractmethod
    def evaluate(self, type: pa.DataType, *columns: pa.Array) -> pa.Array:
        """Return as many values of `type` as the columns have, which are of the types that the rule gave."""

    def documentation(self) -> str:
        """Return what users read of it."""
        return inspect.getdoc(type(self)) or ""

    def kernel(self, type: pa.DataType, *data: Datum) -> Datum:
        """Evaluate as the functions of the catalogue are: an argument may be one value for all rows."""
        rows = next((len(datum) for datum in data if not is_scalar(datum)), None)
        columns = [column_of(datum, 1 if rows is None else rows) for datum in data]
        try:
            found = self.evaluate(type, *columns)
        except MemoryError:
            raise
        except Exception as error:  # Another package's function may raise anything.
            raise self._error(f"raised {error!r}") from error
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if not isinstance(found, pa.Array) or found.type != type:
            given = f"values of type {found.type}" if isinstance(found, pa.Array) else f"a {found.__class__.__name__}"
            raise self._error(f"returned {given} instead of an array of type {type}")
        if len(found) != (1 if rows is None else rows):
            raise self._error(f"returned {len(found)} values for {rows or 1} rows")
        return found[0] if rows is None else found

    def _error(self, message: str) -> QueryError:
        return QueryError(
            f"the function {self.name!r} {message}",
            place=f"function {self.name}, {type(self).__module__}.{type(self).__qualname__}",
            remedy="correct the function's package and repeat the step, or drop the query; the failed step changed "
            "nothing",
        )


@lru_cache(maxsize=1)
def brought() -> dict[str, ScalarFunction]:
    """Find every scalar function with a file of its own, by name."""
    return discover(package, ScalarFunction, ENTRY_POINTS)
