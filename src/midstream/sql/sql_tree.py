"""Nodes of SQL trees that are made for others, and the text of a tree for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from midstream.sql.dialect import Midstream


def anded(node: exp.Expr, *, bare: bool = True) -> Iterator[exp.Expr]:
    """The conditions of which all must hold; `bare`, without the brackets that they need for AND between their texts.

    >>> import sqlglot
    >>> [part.sql() for part in anded(sqlglot.parse_one("(a AND (b OR c)) AND d"))]
    ['a', 'b OR c', 'd']
    """
    inner = node.unnest()
    if isinstance(inner, exp.And):
        yield from anded(inner.this, bare=bare)
        yield from anded(inner.expression, bare=bare)
    else:
        yield inner if bare else node


def sql_of(node: exp.Expr) -> str:
    """Write a tree as text."""
    return node.sql(Midstream)


def column_of(alias: str, name: str, fields: Sequence[str] = ()) -> exp.Expr:
    """Name a column of a source, or a field within it."""
    made: exp.Expr = exp.column(name, alias, quoted=True)
    for field in fields:
        made = exp.Dot(this=made, expression=exp.to_identifier(field, quoted=True))
    return made


def titled(alias: str, name: str, title: str) -> exp.Expr:
    """Select a column of a source under a title."""
    return exp.alias_(column_of(alias, name), title, quoted=True)


def source_of(node: exp.Expr, alias: str) -> exp.Expr:
    """Name a stream, or a subquery over one, under an alias in another FROM."""
    named = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    if isinstance(node, exp.Subquery):
        return exp.Subquery(this=node.this.copy(), alias=named)
    identifier = node.this.copy()
    identifier.set("quoted", True)
    return exp.Table(this=identifier, alias=named)


def join_of(kind: str, source: exp.Expr, on: Sequence[exp.Expr], method: str | None = None) -> exp.Expr:
    """Join a source: `inner`, `left`, `right`, `full`, `semi` or `anti`; or by a method such as ASOF."""
    word = None if kind == "inner" else kind.upper()
    condition = exp.and_(*on) if on else exp.true()
    if kind in ("semi", "anti"):
        return exp.Join(this=source, on=condition, kind=word, method=method)
    return exp.Join(this=source, on=condition, side=word, method=method)
