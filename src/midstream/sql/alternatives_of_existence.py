"""EXISTS and IN next to OR, written as UNION ALL of SELECTs that each ask one of them.

`WHERE A.v > 3 OR EXISTS (...)` is `WHERE A.v > 3`, and `WHERE NOT (A.v > 3) IS TRUE AND EXISTS (...)`: a row is in one
of the two at most. Each SELECT is a part, in which EXISTS is a semi join.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

_MORE = ("group", "having", "qualify", "distinct", "with_", "every", "subtrahends")


def with_alternatives_apart(tree: exp.Select) -> exp.Query:
    """Return a SELECT of rows that asks for existence next to OR as a UNION ALL; any other as it is.

    >>> import sqlglot
    >>> print(with_alternatives_apart(sqlglot.parse_one("SELECT k FROM A WHERE v > 3 OR EXISTS (SELECT 1 FROM B)")))
    SELECT k FROM A WHERE (v > 3) UNION ALL SELECT k FROM A WHERE NOT (v > 3) IS TRUE AND (EXISTS(SELECT 1 FROM B))
    """
    where = tree.args.get("where")
    if where is None or any(tree.args.get(key) for key in _MORE) or not _asks(where):
        return tree
    parts = list(where.this.flatten(unnest=False)) if isinstance(where.this, exp.And) else [where.this]
    for at, part in enumerate(parts):
        inner = part.this if isinstance(part, exp.Paren) else part
        found = _alternatives(list(inner.flatten(unnest=False))) if isinstance(inner, exp.Or) else None
        if found is None:
            continue
        selects = list[exp.Query]()
        for condition in found:
            select = tree.copy()
            conditions = [*parts[:at], condition, *parts[at + 1 :]]
            select.set("where", exp.Where(this=exp.and_(*conditions, wrap=False)))
            selects.append(select)
        return exp.union(*selects, distinct=False, copy=False)
    return tree


def _asks(node: exp.Expr) -> bool:
    """Whether a condition asks for existence: EXISTS, or IN of a SELECT."""
    return any(isinstance(one, exp.Exists) or one.args.get("query") for one in node.find_all(exp.Exists, exp.In))


def _alternatives(groups: Sequence[exp.Expr]) -> list[exp.Expr] | None:
    """The conditions of which a row satisfies one at most, and one if it satisfies any of those that OR binds together;
    None where no EXISTS is among these, or more than one that may be unknown.
    """
    plain = [group for group in groups if not _asks(group)]
    certain = [group for group in groups if _asks(group) and _is_exists(group)]
    unknown = [group for group in groups if _asks(group) and not _is_exists(group)]
    if len(unknown) > 1 or not certain + unknown:
        return None
    found, before = list[exp.Expr](), list[exp.Expr]()
    if plain:
        either = exp.Paren(this=exp.or_(*plain))
        found.append(either)
        before.append(exp.Not(this=exp.Is(this=either.copy(), expression=exp.true())))
    for group in (*certain, *unknown):
        found.append(exp.and_(*before, exp.Paren(this=group.copy()), wrap=False))
        before.append(exp.Not(this=exp.Paren(this=group.copy())))
    return found


def _is_exists(group: exp.Expr) -> bool:
    """Whether a condition is EXISTS or NOT EXISTS and its subquery, and nothing else."""
    return isinstance(group.this if isinstance(group, exp.Not) else group, exp.Exists)
