"""What names mean in a query: its sources and their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from midstream.expr.expression import TIME_COLUMN, Call, Column, Expression
from midstream.expr.types import INT64, TIMESTAMP
from midstream.model.errors import LanguageError
from midstream.model.schema import is_uuid
from midstream.model.words import suggest


def find_name(name: str, names: Iterable[str]) -> list[str]:
    """The names equal to `name`; if there is none, those equal except for case.

    >>> find_name("k", ["K", "k"]), find_name("V", ["v", "w"])
    (['k'], ['v'])
    """
    known = list(names)
    return [n for n in known if n == name] or [n for n in known if n.lower() == name.lower()]


NOT_STARRED = {"midstream": "not starred"}
"""What a field says of itself that `*` does not stand for, so that it is there only where it is named."""


def starred(columns: pa.Schema) -> list[str]:
    """The names of the columns that `*` stands for.

    >>> starred(pa.schema([("k", pa.int64()), pa.field("_version", pa.int64(), metadata=NOT_STARRED)]))
    ['k']
    """
    return [field.name for field in columns if (field.metadata or {}).get(b"midstream") != b"not starred"]


def event_time(alias: str) -> Column:
    """The event time of a source's row, in microseconds since 1970: rows are kept with it."""
    return Column(INT64, alias, TIME_COLUMN)


@dataclass(frozen=True)
class Scope:
    """The sources of a query in FROM order: alias and columns.

    `time` is the type of `_ts`, None where it may not be read; that of a source, `A._ts`, is the event time of its row,
    of the type `moment`, but sources that are `timeless` have none. `registered` says whether predicates of users must
    be registered in this program. A column that a subquery shows stands for an expression: `views`, by alias and name.
    """

    sources: tuple[tuple[str, pa.Schema], ...]
    time: pa.DataType | None = None
    moment: pa.DataType = TIMESTAMP
    registered: bool = True
    views: Mapping[tuple[str, str], Expression] = field(default_factory=dict)
    timeless: frozenset[str] = frozenset()

    def alias(self, name: str) -> str:
        """The alias a name means; raises LanguageError, without a place."""
        found = find_name(name, (alias for alias, _ in self.sources))
        if len(found) != 1:
            what = "ambiguous" if found else "unknown"
            raise LanguageError(f"{what} source {name!r}", remedy=suggest(name, (a for a, _ in self.sources)))
        return found[0]

    def is_source(self, name: str) -> bool:
        """Whether a name before a dot is that of a source, and not of a column that has fields."""
        if find_name(name, (alias for alias, _ in self.sources)):
            return True
        return not any(
            c.name.lower() == name.lower() and pa.types.is_struct(c.type)
            for a, _ in self.sources
            for c in self.columns(a)
        )

    def columns(self, alias: str) -> tuple[Column, ...]:
        """Every column of a source."""
        schema = next(columns for a, columns in self.sources if a == alias)
        return tuple(Column(field.type, alias, field.name) for field in schema)

    def is_uuid(self, expression: Expression) -> bool:
        """Whether an expression is a column of UUIDs."""
        return isinstance(expression, Column) and any(
            alias == expression.alias and any(one.name == expression.name and is_uuid(one) for one in columns)
            for alias, columns in self.sources
        )

    def starred(self, alias: str) -> tuple[Column, ...]:
        """The columns of a source that `*` stands for."""
        schema = next(columns for a, columns in self.sources if a == alias)
        named = starred(schema)
        return tuple(column for column in self.columns(alias) if column.name in named)

    def shown(self, column: Column) -> Expression:
        """What a column stands for: itself, or what a subquery has under its name."""
        known = self.views.get((column.alias, column.name))
        if known is None and column.alias and column.name == TIME_COLUMN:
            return Call(self.moment, "moment", (event_time(column.alias),))
        return known or column

    def column(self, name: str, source: str = "") -> Column:
        """The column a name means, of one source or of whichever has it; raises LanguageError, without a place."""
        if not source and name == TIME_COLUMN:
            if self.time is None:
                raise LanguageError(
                    f"only the select list can use {TIME_COLUMN}, the time of a result",
                    remedy="use the timestamp columns of the streams here",
                )
            return Column(self.time, "", TIME_COLUMN)
        if source and name == TIME_COLUMN and self.alias(source) not in self.timeless:
            return Column(self.moment, self.alias(source), TIME_COLUMN)
        aliases = [self.alias(source)] if source else [alias for alias, _ in self.sources]
        columns = [c for alias in aliases for c in self.columns(alias)]
        found = [c for c in columns if c.name == name] or [c for c in columns if c.name.lower() == name.lower()]
        if len(found) > 1:
            choices = ", ".join(f"{c.alias}.{c.name}" for c in found)
            raise LanguageError(f"column {name!r} is ambiguous", remedy=f"write one of: {choices}")
        if not found:
            shown = f"{source}.{name}" if source else name
            raise LanguageError(
                f"unknown column {shown!r}",
                remedy=suggest(shown, dict.fromkeys(f"{c.alias}.{c.name}" if source else c.name for c in columns)),
            )
        return found[0]
