"""The conditions of a text that AND binds together."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def anded(node: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions of which all must hold, without brackets around them.

    >>> import sqlglot
    >>> [part.sql() for part in anded(sqlglot.parse_one("(a AND (b OR c)) AND d"))]
    ['a', 'b OR c', 'd']
    """
    inner = node.unnest()
    if isinstance(inner, exp.And):
        yield from anded(inner.this)
        yield from anded(inner.expression)
    else:
        yield inner
