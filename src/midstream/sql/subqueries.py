"""Subqueries and common table expressions over one stream: what they select is put in the place of their columns.

`FROM (SELECT k, v * 2 AS w FROM A WHERE v > 0) AS x` is the stream A under the alias x, of which `x.w` stands for
`v * 2`, under the further condition `v > 0`. So it runs, migrates and shares as any stream with a filter does. Windows
stand outside, after the alias.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from midstream.expr.expression import Column, Expression
from midstream.model.schema import StreamSchema, TableSchema
from midstream.sql.bind import Binder
from midstream.sql.place import not_in_language
from midstream.sql.scope import NOT_STARRED, Scope, find_name, starred
from midstream.sql.select_list import outputs_of

_KEPT = frozenset({"expressions", "from_", "where"})
REMEDY = (
    "a subquery selects and filters rows, joins streams with windows, or aggregates EVERY so often or by TUMBLE(...)"
)


@dataclass(frozen=True)
class Selected:
    """A stream as FROM names it, and the SELECTs around it, the innermost first; none where it is named itself."""

    table: exp.Expr
    selects: tuple[exp.Select, ...]


@dataclass(frozen=True)
class Shown:
    """What a subquery under an alias shows: by name the expressions over the stream's columns, and its conditions.

    Columns that `*` does not stand for, the time of answers and the version of a table, are shown whatever it selects,
    as such columns, `unstarred`.
    """

    columns: tuple[tuple[str, Expression], ...]
    conditions: tuple[Expression, ...]
    unstarred: frozenset[str] = frozenset()

    @property
    def schema(self) -> pa.Schema:
        """The columns that it shows."""
        return _schema(self.columns, self.unstarred)


def _schema(columns: tuple[tuple[str, Expression], ...], unstarred: Container[str]) -> pa.Schema:
    fields = ((name, e.type, NOT_STARRED if name in unstarred else None) for name, e in columns)
    return pa.schema([pa.field(name, kind, metadata=told) for name, kind, told in fields])


def common_tables(text: str, tree: exp.Select) -> dict[str, exp.Select]:
    """The SELECTs of a WITH clause, by name in lower case; raises LanguageError for one that calls itself."""
    clause = tree.args.get("with_")
    if clause is None:
        return {}
    found: dict[str, exp.Select] = {}
    for table in clause.expressions:
        named = table.args.get("alias")
        if clause.args.get("recursive") or (named is not None and named.args.get("columns")):
            raise not_in_language(
                text, table, "a recursive WITH, or one that names its columns", "name them in the SELECT"
            )
        if not isinstance(table.this, exp.Select):
            raise not_in_language(text, table, f"{table.this.key.upper()} in WITH", REMEDY)
        select = table.this.copy()
        for inner in list(select.find_all(exp.Table)):
            if (other := found.get(inner.name.lower())) is not None:
                inner.replace(as_subquery(other, inner))
        found[table.alias.lower()] = select
    return found


def names_shown(
    node: exp.Expr,
    tables: Mapping[str, exp.Select],
    streams: Mapping[str, StreamSchema | TableSchema],
    *,
    starred_only: bool = False,
) -> tuple[str, ...]:
    """The names of the columns that a source of FROM shows: a stream's, or those of a subquery's select list; or only
    those that `*` stands for.
    """
    select = node.this if isinstance(node, exp.Subquery) else tables.get(node.name.lower())
    if not isinstance(select, exp.Select):
        known = find_name(node.name, streams)
        if not known:
            return ()
        columns = streams[known[0]].columns
        return tuple(starred(columns) if starred_only else columns.names)
    if select.args.get("from_") is None:
        return ()
    below = names_shown(select.args["from_"].this, {}, streams, starred_only=starred_only)
    names = (below if item.is_star else (item.alias_or_name,) for item in select.expressions)
    return tuple(name for some in names for name in some)


def as_subquery(select: exp.Select, table: exp.Expr) -> exp.Subquery:
    """A SELECT of WITH as a subquery in the place of the source that names it."""
    return exp.Subquery(this=select.copy(), alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name)))


def selected(text: str, node: exp.Expr, tables: Mapping[str, exp.Select]) -> Selected:
    """The stream that a source of FROM is over, and what is selected of it; raises LanguageError."""
    select = node.this if isinstance(node, exp.Subquery) else tables.get(node.name.lower())
    if not isinstance(select, exp.Select):
        return Selected(node, ())
    extra = next((key for key, value in select.args.items() if value and key not in _KEPT), None)
    if extra is not None or select.args.get("from_") is None:
        word = (extra or "no stream").upper().strip("_")
        raise not_in_language(text, select, f"{'JOIN' if word == 'JOINS' else word} in a subquery", REMEDY)
    if any(select.find_all(exp.Window)):
        remedy = "take the first n rows by WHERE around it, and nothing else; group or join that in a query around both"
        raise not_in_language(text, select, "a window function in a subquery of which more is asked", remedy)
    if any(select.find_all(exp.AggFunc)):
        raise not_in_language(text, select, "an aggregate in a subquery", REMEDY)
    inner = selected(text, select.args["from_"].this, {})
    return Selected(inner.table, (*inner.selects, select))


def shown_of(text: str, alias: str, schema: pa.Schema, selects: tuple[exp.Select, ...], scope: Scope) -> Shown:
    """What the SELECTs around a stream show under an alias; `scope` says how expressions are bound."""
    columns: tuple[tuple[str, Expression], ...] = tuple((f.name, Column(f.type, alias, f.name)) for f in schema)
    conditions: tuple[Expression, ...] = ()
    seen = frozenset(starred(schema))
    passed = tuple((name, column) for name, column in columns if name not in seen)
    unstarred = frozenset(name for name, _ in passed)
    for select in selects:
        source = select.args["from_"].this.alias_or_name or alias
        inside = replace(
            scope,
            sources=((source, _schema(columns, unstarred)),),
            views={(source, name): expression for name, expression in columns},
            time=None,
        )
        binder = Binder(text, inside)
        where = select.args.get("where")
        conditions += () if where is None else (binder.condition(where.this),)
        columns = tuple((output.name, output.expression) for output in outputs_of(binder, select))
        names = {name.lower() for name, _ in columns}
        unstarred = frozenset(name for name, _ in passed if name.lower() not in names)
        columns += tuple((name, column) for name, column in passed if name in unstarred)
    return Shown(columns, conditions, unstarred)
