"""The first n rows of each group: `ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) <= n`, in QUALIFY, or in WHERE
around a subquery.

As the other aggregates it is asked at instants, EVERY so often over the windows of the streams, or once for each window
to group by that stands in PARTITION BY.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from midstream.language.bind import Binder
from midstream.language.coerce import name, plain
from midstream.language.cql_tokens import CqlText
from midstream.language.evaluate import can_fail
from midstream.language.expression import Column, Expression
from midstream.language.group_window import GroupWindow
from midstream.language.place import place_of
from midstream.language.query import GROUPED, Aggregate, Output, TopN
from midstream.language.scope import Scope
from midstream.language.select_list import outputs_of
from midstream.language.session_window import SessionWindow
from midstream.language.tokens import DIALECT
from midstream.language.types import INT64, family
from midstream.model.errors import LanguageError

RANK = Column(INT64, GROUPED, "rank")
"""The number of a row in its group, from 1, as outputs read it."""

SHAPE = "write QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= n"
_PLAIN = frozenset({"expressions", "from_", "where", "with_"})
_LIMITS: dict[type[exp.Expr], int] = {exp.LTE: 0, exp.LT: -1, exp.EQ: 0}


@dataclass(frozen=True)
class TopNClause:
    """What QUALIFY asks: the window function, and how many rows."""

    window: exp.Window
    count: int


def with_qualify(tree: exp.Select) -> exp.Select:
    """`SELECT ... FROM (SELECT ..., ROW_NUMBER() OVER (...) AS rn FROM s) WHERE rn <= n` as one SELECT with QUALIFY.

    Anything else stays as it is.
    """
    below = tree.args["from_"].this if tree.args.get("from_") is not None else None
    inner = below.this if isinstance(below, exp.Subquery) else None
    where = tree.args.get("where")
    if below is None or not isinstance(inner, exp.Select) or where is None:
        return tree
    if any(value and key not in _PLAIN for key, value in tree.args.items()) or _has_more(inner):
        return tree
    read = (column for part in (*tree.expressions, where) for column in part.find_all(exp.Column))
    if any(column.table not in ("", below.alias) for column in read):
        return tree
    items = {item.alias_or_name: item.unalias() for item in inner.expressions if not item.is_star}
    numbered = [title for title, item in items.items() if _is_row_number(item)]
    asked: exp.Expr = where.this
    if len(numbered) != 1 or type(asked) not in _LIMITS or asked.this.name != numbered[0]:
        return tree
    whole = inner.copy()
    stars = [item for item in inner.expressions if item.is_star]
    selected: list[exp.Expr] = []
    for item in tree.expressions:
        if item.is_star:
            selected += [one.copy() for one in inner.expressions]
        else:
            shown = item.unalias().transform(_inner(items, bool(stars)))
            selected.append(exp.alias_(shown, item.alias_or_name or item.sql(DIALECT), quoted=True))
    whole.set("expressions", selected)
    condition = asked.copy()
    condition.set("this", items[numbered[0]].copy())
    whole.set("qualify", exp.Qualify(this=condition))
    whole.set("with_", tree.args.get("with_"))
    return whole


def _has_more(select: exp.Select) -> bool:
    """Whether a SELECT has a clause that nothing reads once it stands in another's place."""
    return any(value and key not in {*_PLAIN, "joins"} for key, value in select.args.items())


def _inner(items: dict[str, exp.Expr], starred: bool) -> Callable[[exp.Expr], exp.Expr]:
    """What a column of the query around a subquery stands for."""

    def shown(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node.name in items:
            return items[node.name].copy()
        return exp.column(node.this.copy()) if starred else node

    return shown


def top_n_of(found: CqlText, tree: exp.Select) -> tuple[exp.Select, TopNClause | None]:
    """A query without its QUALIFY clause, its partition as GROUP BY, and what it asks; raises LanguageError."""
    clause = tree.args.get("qualify")
    if clause is None:
        return tree, None
    condition: exp.Expr = clause.this
    titles = {item.alias: item.unalias() for item in tree.expressions if item.alias}
    asked = condition.this if type(condition) in _LIMITS else None
    asked = titles.get(asked.name, asked) if isinstance(asked, exp.Column) else asked
    limit = condition.expression if asked is not None else None
    number = int(limit.name) if isinstance(limit, exp.Literal) and limit.name.isdigit() else 0
    count = number + _LIMITS.get(type(condition), 0)
    if not _is_row_number(asked) or count < 1 or (isinstance(condition, exp.EQ) and number != 1):
        raise _error(found, condition, "QUALIFY of anything but the first n rows", SHAPE)
    if tree.args.get("group") is not None or tree.args.get("having") is not None:
        raise _error(found, condition, "QUALIFY beside GROUP BY", "rank the answers of a subquery that groups")
    assert isinstance(asked, exp.Window)
    rewritten = tree.copy()
    rewritten.set("qualify", None)
    rewritten.set("expressions", [_with_rank(found, item, asked) for item in tree.expressions])
    rewritten.set("group", exp.Group(expressions=[one.copy() for one in asked.args.get("partition_by") or []]))
    return rewritten, TopNClause(asked, count)


def ranked(
    found: CqlText, tree: exp.Select, scope: Scope, window: GroupWindow | SessionWindow | None, clause: TopNClause
) -> tuple[tuple[Output, ...], Aggregate]:
    """The outputs and the groups of a query for the first n rows of each; raises LanguageError."""
    every, offset = (found.every[0], 0) if found.every is not None else (0, 0)
    if isinstance(window, SessionWindow):
        remedy = "select the sessions in a subquery that groups by them, and rank what it answers"
        raise _error(found, clause.window, "ROW_NUMBER within sessions", remedy)
    if window is not None:
        every, offset = window.slide, window.offset
    if not every:
        raise _error(
            found,
            clause.window,
            "ROW_NUMBER over a stream needs EVERY",
            "say at which instants to rank, such as EVERY 10 SECONDS at the end of the query; or, over one stream, "
            "PARTITION BY TUMBLE(ts, INTERVAL 10 SECONDS)",
        )
    inner = Binder(found.text, replace(scope, time=None))
    outer = Binder(found.text, scope, lambda node: RANK if _is_rank(node) else None)
    outputs = outputs_of(outer, tree)
    failing = next((o for o in outputs if RANK in o.expression.columns() and can_fail(o.expression)), None)
    if failing is not None:
        remedy = "select the number of the row itself, and compute with it in a query around this one"
        raise _error(found, clause.window, f"{failing.name!r}, which may have no value for a row's number", remedy)
    order = clause.window.args.get("order")
    keys = tuple(_key(found, inner, node) for node in (order.expressions if order is not None else ()))
    groups = tuple(inner.bind(node) for node in tree.args["group"].expressions)
    return outputs, Aggregate(groups, (), every, None, offset, TopN(clause.count, keys))


def _key(found: CqlText, binder: Binder, node: exp.Expr) -> tuple[Expression, bool]:
    value = plain(binder.bind(node.this))
    if family(value.type) in ("other", "null"):
        raise _error(found, node, f"values of type {name(value.type)} have no order", "order by plain values")
    if node.args.get("nulls_first"):
        raise _error(found, node, "NULLS FIRST", "leave it out: NULL comes last")
    return value, bool(node.args.get("desc"))


def _with_rank(found: CqlText, item: exp.Expr, asked: exp.Window) -> exp.Expr:
    """An item of the select list with the column of ranks in the place of the window function."""
    other = next((node for node in item.find_all(exp.Window) if node != asked), None)
    if other is not None:
        raise _error(found, other, "a window function that QUALIFY does not ask", SHAPE)
    bare = isinstance(item, exp.Window)
    shown = item.transform(lambda node: exp.column(RANK.name, RANK.alias) if isinstance(node, exp.Window) else node)
    return exp.alias_(shown, "row_number", quoted=True) if bare else shown


def _is_rank(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.table == GROUPED


def _is_row_number(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Window) and isinstance(node.this, exp.RowNumber)


def _error(found: CqlText, node: exp.Expr, message: str, remedy: str) -> LanguageError:
    return LanguageError(message, place=place_of(found.text, node), remedy=remedy)
