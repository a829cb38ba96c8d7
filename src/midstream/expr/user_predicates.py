"""The users' predicates that are known: those that this program registered, and those of installed packages.

A query, a checkpoint, a command and a job file hold the name alone. So what a name runs is code of this program, or of
a package that declares it as an entry point; a checkpoint or a job file that somebody else wrote brings none along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pyarrow as pa

from midstream.expr.coerce import cast, name, plain
from midstream.expr.expression import Expression, Literal
from midstream.expr.kernels.cast import cast as cast_datum
from midstream.expr.kernels.datum import Datum, column_of, is_scalar
from midstream.expr.rules import Arguments, wrong
from midstream.expr.types import BOOLEAN, common
from midstream.model.errors import QueryError

WIDEST = 60
"""Characters of a value that an error shows."""


@dataclass(frozen=True)
class UserPredicate:
    """A function of the user's that says for each of many rows whether something holds, under a name for queries.

    The function takes one Arrow array for each of `types`, all equally long, and gives as many booleans, as an Arrow
    array or a numpy array; NULL is not true. It must be deterministic, and what it says of a row must depend on that
    row alone, for the rows it is asked about at once differ from plan to plan.

    >>> import pyarrow.compute as pc
    >>> near = UserPredicate("near", lambda a, b: pc.less(pc.abs(pc.subtract(a, b)), 2.0), (pa.float64(),) * 2)
    >>> near.ask([pa.array([1.0, 1.0, None]), pa.array([2.5, 3.5, 1.0])]).to_pylist()
    [True, False, None]
    """

    name: str
    function: Callable[..., Any]
    types: tuple[pa.DataType, ...]

    def describe(self) -> str:
        """The predicate with the types of its arguments, as messages name it."""
        return f"{self.name}({', '.join(map(name, self.types))})"

    def rule(self, arguments: Arguments) -> tuple[pa.DataType, Arguments]:
        """Type a call of the predicate, and refuse an argument that may lose a value in its declared type.

        The cast itself happens when the predicate is asked. So the name of a state does not depend on the types that
        this program declares.
        """
        if len(arguments) != len(self.types):
            raise wrong(
                f"the predicate has {len(arguments)} arguments instead of {len(self.types)}", f"write {self.describe()}"
            )
        if not any(argument.columns() for argument in arguments):
            raise wrong("no argument of the predicate reads a column", "give the predicate a column of a stream")
        for argument, type in zip(arguments, self.types, strict=True):
            self._check(argument, type)
        return BOOLEAN, arguments

    def kernel(self, type: pa.DataType, *data: Datum) -> Datum:
        """What it says, as the functions of the catalogue are computed: an argument may stand for every row."""
        if len(data) != len(self.types):
            raise self._error(
                f"got {len(data)} arguments instead of {len(self.types)}",
                "register the predicate with its former types",
            )
        rows = next((len(datum) for datum in data if not is_scalar(datum)), None)
        count = 1 if rows is None else rows
        typed = [cast_datum(as_type, datum) for datum, as_type in zip(data, self.types, strict=True)]
        found = self.ask([column_of(datum, count) for datum in typed])
        return found[0] if rows is None else found

    def ask(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """What the function says of these rows; raises a `QueryError` that shows the row where it raises.

        About no rows it is not asked.
        """
        rows = len(arrays[0])
        if not rows:
            return pa.array([], BOOLEAN)
        try:
            found = self.function(*arrays)
        except MemoryError:
            raise
        except Exception as error:
            raise self._raised(arrays, error) from error
        return self._checked(found, rows)

    def _check(self, argument: Expression, type: pa.DataType) -> None:
        if isinstance(argument, Literal):
            cast(argument, type)
            return
        given = plain(argument).type
        if given != type and common(given, type) != type:
            said = f"a {name(given)} where it takes a {name(type)}"
            raise wrong(said, f"CAST the argument, or declare {self.describe()} with other types")

    def _checked(self, found: Any, rows: int) -> pa.Array:
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if isinstance(found, np.ndarray) and found.ndim == 1 and found.dtype == np.bool_:
            found = pa.array(found)
        if not isinstance(found, pa.Array):
            raise self._error(f"returned a {_kind(found)} instead of an array of booleans", "return a pyarrow array")
        if pa.types.is_null(found.type):
            found = pa.nulls(len(found), BOOLEAN)
        if found.type != BOOLEAN:
            raise self._error(f"returned values of type {found.type} instead of booleans", "return booleans")
        if len(found) != rows:
            raise self._error(f"returned {len(found)} values for {rows} rows", "return one boolean for each row")
        return found

    def _raised(self, arrays: Sequence[pa.Array], error: Exception) -> QueryError:
        """Describe an error: that of the first row that raises it alone, if there is one."""
        begin, end = 0, len(arrays[0])
        while end - begin > 1:
            middle = (begin + end) // 2
            for part in ((begin, middle), (middle, end)):
                found = self._error_of([array.slice(part[0], part[1] - part[0]) for array in arrays])
                if found is not None:
                    (begin, end), error = part, found
                    break
            else:
                return self._error(
                    f"raised {error!r} for {end - begin} rows together, but not for either half of them", _CORRECT
                )
        shown = ", ".join(_shown(array[begin]) for array in arrays)
        return self._error(f"raised {error!r} for {self.name}({shown})", _CORRECT)

    def _error_of(self, arrays: Sequence[pa.Array]) -> Exception | None:
        try:
            self.function(*arrays)
        except MemoryError:
            raise
        except Exception as error:
            return error
        return None

    def _error(self, message: str, remedy: str) -> QueryError:
        end = "register it again and repeat the step, which kept nothing; or drop the query first"
        return QueryError(f"the predicate {message}", place=f"predicate {self.describe()}", remedy=f"{remedy}, {end}")


_CORRECT = "correct the predicate: return NULL for rows that it cannot decide"


def _kind(value: Any) -> str:
    return f"{value.dtype} {type(value).__name__}" if isinstance(value, np.ndarray) else type(value).__name__


def _shown(value: pa.Scalar) -> str:
    text = repr(value.as_py()) if value.is_valid else "NULL"
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}..."


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
            f"the predicate {one.name!r} is already registered as {known.describe()}",
            place=f"predicate {one.describe()}",
            remedy="give the new predicate another name",
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
            f"the predicate {name!r} is not registered in this process",
            place=f"predicate {name}",
            remedy=f"register the predicate before the first step: {registering(name)}",
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
            remedy="set the entry point to the value that midstream.predicate returned",
        )
    return found
