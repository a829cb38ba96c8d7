"""The SQL text of names and nodes, as the parts of a query are written out."""

from __future__ import annotations

from sqlglot import exp

from midstream.language.dialect import Midstream


def sql_of(node: exp.Expr) -> str:
    """The text of a node, with functions under their own names."""
    return node.transform(_under_own_name).sql(Midstream)


def quoted(name: str) -> str:
    """A name in double quotes, those within it doubled."""
    return '"' + name.replace('"', '""') + '"'


def _under_own_name(node: exp.Expr) -> exp.Expr:
    """A function under its own name, where SQL text would show what stands for it, and without IGNORE NULLS."""
    if isinstance(node, exp.Initcap):
        return exp.Anonymous(this="INITCAP", expressions=[node.this])
    if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):
        found: exp.Expr = node.this
        return found
    return node
