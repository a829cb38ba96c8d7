"""A rank that is asked around the subquery that gives it, as Flink and Spark have it, written as QUALIFY.

`SELECT ... FROM (SELECT ..., ROW_NUMBER() OVER (...) AS rn FROM s) WHERE rn <= n AND more` is one SELECT whose QUALIFY
has all the conditions, for they hold of rows that have been ranked.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from midstream.sql.dialect import Midstream
from midstream.sql.rank_limit import is_rank

_PLAIN = frozenset({"expressions", "from_", "where", "with_"})
_AROUND = frozenset({"window", "every", "subtrahends"})


def with_qualify(tree: exp.Select) -> exp.Select:
    """The query as one SELECT with QUALIFY, where it asks for a rank that its source, in brackets or in WITH, gives.

    Anything else stays as it is.
    """
    below = tree.args["from_"].this if tree.args.get("from_") is not None else None
    inner = select_of(below, tree)
    where = tree.args.get("where")
    if below is None or inner is None or where is None:
        return tree
    if any(value and key not in _PLAIN | _AROUND for key, value in tree.args.items()) or _has_more(inner):
        return tree
    read = [column for part in (*tree.expressions, where) for column in part.find_all(exp.Column)]
    if any(column.table not in ("", below.alias_or_name) for column in read):
        return tree
    items = {item.alias_or_name.lower(): item.unalias() for item in inner.expressions if not item.is_star}
    numbered = [title for title, item in items.items() if is_rank(item)]
    if len(numbered) != 1 or all(column.name.lower() != numbered[0] for column in where.find_all(exp.Column)):
        return tree
    whole = inner.copy()
    starred = any(item.is_star for item in inner.expressions)
    selected: list[exp.Expr] = []
    for item in tree.expressions:
        if item.is_star:
            selected += [one.copy() for one in inner.expressions]
        else:
            shown = item.unalias().transform(_inner(items, starred))
            selected.append(exp.alias_(shown, item.alias_or_name or item.sql(Midstream), quoted=True))
    whole.set("expressions", selected)
    whole.set("qualify", exp.Qualify(this=where.this.transform(_inner(items, starred))))
    for key in ("with_", *_AROUND):
        whole.set(key, tree.args.get(key))
    if below.args.get("window") is not None:
        whole.args["from_"].this.set("window", below.args["window"])
    return whole


def select_of(source: exp.Expr | None, tree: exp.Select) -> exp.Select | None:
    """The SELECT that a source of FROM is, in brackets or by a name of WITH; None where it is a stream."""
    if isinstance(source, exp.Subquery):
        return source.this if isinstance(source.this, exp.Select) else None
    clause = tree.args.get("with_")
    if not isinstance(source, exp.Table) or clause is None:
        return None
    named = [table.this for table in clause.expressions if table.alias.lower() == source.name.lower()]
    return named[0] if named and isinstance(named[0], exp.Select) and not named[0].args.get("with_") else None


def _has_more(select: exp.Select) -> bool:
    """Whether a SELECT has a clause that nothing reads once it stands in another's place."""
    return any(value and key not in {*_PLAIN, "joins"} for key, value in select.args.items())


def _inner(items: dict[str, exp.Expr], starred: bool) -> Callable[[exp.Expr], exp.Expr]:
    """What a column of the query around a subquery stands for."""

    def shown(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node.name.lower() in items:
            found = items[node.name.lower()]
            return found.copy() if isinstance(found, exp.Column | exp.Window) else exp.Paren(this=found.copy())
        return exp.column(node.this.copy()) if starred else node

    return shown
