"""What a user's own operator offers, and how one is made and fed (HybMig §4: plans as black boxes).

Nothing else is required of it, so its state is opaque: it can be kept, put back and run, never taken apart.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from midstream.model.allowed import METHODS, is_allowed
from midstream.model.codec import written_as
from midstream.model.errors import QueryError

LIFETIME = ("_ts", "_until")
"""Two columns of a row in addition to the query's: the first and the last instant at which it holds."""

ROW = pa.schema([("json", pa.string()), ("bytes", pa.binary())])
"""The table that a snapshot is kept in: one row."""


@runtime_checkable
class UserOperator(Protocol):
    """An operator that a user writes, to run on top of a query. midstream makes the operator as `Class(**options)`.

    The operator must be deterministic, and depend only on its options and its rows. The operator may remember a row
    until the time in the row's `_until`. The class attribute `remembers` can extend this time to a number of
    microseconds after the row's `_ts`. A migration can replace an operator only if it forgets each row at this
    time. The new operator sees only the rows that are not yet forgotten.
    """

    def feed(self, rows: pa.Table, watermark: int | None) -> pa.Table:
        """Return the results of one step, with the same columns in every step.

        `rows` has the query's answers of the step, ordered by time, with `_ts` and `_until`; it may be empty. No later
        row has a time before `watermark`, an event time in microseconds. `watermark` is None until every stream has
        had a row. Rows of equal time come in order of arrival, under every plan of the query.
        """
        ...

    def snapshot(self) -> Any:
        """Return everything that the operator remembers, as JSON values or bytes."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Restore the state that `snapshot` returned.

        midstream calls `restore` on a new operator, which has the options of the old one. Tuples in a JSON state come
        back as lists.
        """
        ...


@dataclass(frozen=True)
class OperatorSpec:
    """A user's operator by name: `package.module:Class`, and the options it is made with, as JSON values."""

    path: str = field(metadata=written_as("class"))
    options: Mapping[str, Any] = field(default_factory=dict)

    def describe(self) -> str:
        """The operator in a line.

        >>> OperatorSpec("shop.operators:Median", {"window": 5}).describe()
        'shop.operators:Median(window=5)'
        """
        return f"{self.path}({', '.join(f'{k}={json.dumps(v)}' for k, v in self.options.items())})"

    def make(self, snapshot: pa.RecordBatch | None = None) -> UserOperator:
        """The operator, remembering what a snapshot holds."""
        kind = self._kind()
        try:
            made = kind(**self.options)
        except Exception as error:
            raise self._error(f"cannot be made: {error!r}", "correct its options") from error
        for name in METHODS:
            if not callable(getattr(made, name, None)):
                raise self._error(f"has no method {name}", "write the method: see midstream.UserOperator")
        if snapshot is not None:
            self._guarded("restore", lambda: made.restore(_unpacked(snapshot)))
        assert isinstance(made, UserOperator)
        return made

    def remembers(self) -> int:
        """How many microseconds after its time a row may still matter to it, though it holds no more."""
        found = getattr(self._kind(), "remembers", 0)
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            raise self._error(f"has {found!r} as `remembers`", "set `remembers` to a number of microseconds")
        return found

    def schema(self, columns: pa.Schema) -> pa.Schema:
        """The columns of its results: what it gives for no rows of these columns."""
        given = columns.empty_table()
        made = self.make()
        found = self._guarded("feed", lambda: made.feed(given, None))
        if not isinstance(found, pa.Table):
            raise self._error(
                f"returns a {type(found).__name__} for an empty table", "return an empty pyarrow table from feed"
            )
        self.snapshot(made)
        return found.schema

    def feed(self, made: UserOperator, rows: pa.Table, watermark: int | None, schema: pa.Schema) -> pa.Table:
        """Return the operator's results for these rows."""
        found = self._guarded("feed", lambda: made.feed(rows, watermark))
        if not isinstance(found, pa.Table):
            raise self._error(f"returned a {type(found).__name__}", "return a pyarrow table from feed")
        if not found.schema.equals(schema):
            said = f"{_shown(found.schema)} instead of {_shown(schema)}"
            raise self._error(f"returned {said}", "let `feed` return the columns that it returns for an empty table")
        return found

    def snapshot(self, made: UserOperator) -> pa.RecordBatch:
        """What it remembers, as a table of one row."""
        value = self._guarded("snapshot", made.snapshot)
        text = None if isinstance(value, bytes) else self._guarded("snapshot", lambda: json.dumps(value))
        whole = value if isinstance(value, bytes) else None
        return pa.RecordBatch.from_arrays([pa.array([text], pa.string()), pa.array([whole], pa.binary())], schema=ROW)

    def check_allowed(self) -> None:
        """Raise unless its class may be made here: a checkpoint or a job file that names it does not suffice."""
        if not is_allowed(self.path):
            raise self._error(
                "comes from a checkpoint, a command or a job file, and this program does not allow it",
                f"if you trust the operator, allow it: midstream.allow_operators({self.path!r}) in code, or "
                f"midstream run "
                f"--allow-operator {self.path}",
            )

    def _kind(self) -> Any:
        module, separator, name = self.path.partition(":")
        if not module or not separator or not name:
            raise self._error("names no class", "write package.module:Class")
        self.check_allowed()
        try:
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        except Exception as error:
            remedy = "check the name; its module must be importable here and, on Spark, in every worker"
            raise self._error(f"cannot be imported: {error!r}", remedy) from error
        if not callable(found):
            raise self._error("is not a class", "write package.module:Class")
        return found

    def _guarded(self, what: str, call: Any) -> Any:
        try:
            return call()
        except Exception as error:
            remedy = "correct the operator and repeat the step; the failed step changed nothing"
            raise self._error(f"failed in {what}: {error!r}", remedy) from error

    def _error(self, message: str, remedy: str) -> QueryError:
        return QueryError(f"the operator {message}", place=f"operator {self.describe()}", remedy=remedy)


def _unpacked(snapshot: pa.RecordBatch) -> Any:
    text, whole = (column[0].as_py() for column in snapshot.columns)
    return whole if text is None else json.loads(text)


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema) or "no columns"
