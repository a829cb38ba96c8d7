"""The first n rows of each group: `ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) <= n` in QUALIFY, also with RANK
and DENSE_RANK, which give rows that are equal in what they are ordered by one number.

As the other aggregates it is asked at instants, EVERY so often over the windows of the streams, or once for each window
to group by that stands in PARTITION BY.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from midstream.expr.coerce import name, plain
from midstream.expr.evaluate import can_fail
from midstream.expr.expression import Column, Expression
from midstream.expr.rules import is_nested
from midstream.expr.types import INT64, family
from midstream.logical.query import GROUPED, Aggregate, Output, TopN
from midstream.sql.bind import Binder
from midstream.sql.calendar_window import CalendarWindow
from midstream.sql.dialect import CqlText
from midstream.sql.error_at import error_at
from midstream.sql.group_window import CumulativeWindow, GroupWindow
from midstream.sql.rank_limit import RANKS, is_over, rank_asked
from midstream.sql.scope import Scope
from midstream.sql.select_list import outputs_of
from midstream.sql.session_window import SessionWindow

RANK = Column(INT64, GROUPED, "rank")
"""The number of a row in its group, from 1, as outputs read it."""

SHAPE = "write QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= n"


@dataclass(frozen=True)
class TopNClause:
    """What QUALIFY asks: the window function, and how many rows."""

    window: exp.Window
    count: int


def top_n_of(found: CqlText, tree: exp.Select) -> tuple[exp.Select, TopNClause | None]:
    """A query without its QUALIFY clause, its partition as GROUP BY and what else QUALIFY says as HAVING, and what that
    asks. Raises LanguageError.
    """
    clause = tree.args.get("qualify")
    if clause is None or is_over(tree):
        return tree, None
    asked = rank_asked(clause.this, {item.alias: item.unalias() for item in tree.expressions if item.alias})
    if asked is None or asked.count < 1:
        raise error_at(found.text, clause.this, "QUALIFY of anything but the first n rows is not possible", SHAPE)
    if tree.args.get("group") is not None or tree.args.get("having") is not None:
        raise error_at(
            found.text,
            clause.this,
            "QUALIFY together with GROUP BY is not possible",
            "rank the answers of a subquery that groups",
        )
    window = asked.window
    rewritten = tree.copy()
    rewritten.set("qualify", None)
    rewritten.set("expressions", [_with_rank(found, item, window) for item in tree.expressions])
    rewritten.set("group", exp.Group(expressions=[one.copy() for one in window.args.get("partition_by") or []]))
    if asked.others:
        others = exp.and_(*(_ranks_read(one) for one in asked.others), copy=False)
        rewritten.set("having", exp.Having(this=others))
    return rewritten, TopNClause(window, asked.count)


def ranked(
    found: CqlText,
    tree: exp.Select,
    scope: Scope,
    window: GroupWindow | SessionWindow | CalendarWindow | None,
    clause: TopNClause,
) -> tuple[tuple[Output, ...], Aggregate]:
    """The outputs and the groups of a query for the first n rows of each; raises LanguageError."""
    every, offset = (found.every[0], 0) if found.every is not None else (0, 0)
    if isinstance(window, SessionWindow | CalendarWindow | CumulativeWindow):
        whats = {SessionWindow: "sessions", CalendarWindow: "units of a calendar"}
        what = whats.get(type(window), "windows that cumulate")
        remedy = f"select the {what} in a subquery that groups by them, and rank what it answers"
        raise error_at(found.text, clause.window, f"ROW_NUMBER within {what} is not possible", remedy)
    if window is not None:
        every, offset = window.slide, window.offset
    if not every:
        raise error_at(
            found.text,
            clause.window,
            "ROW_NUMBER over a stream needs EVERY",
            "say at which instants to rank, such as EVERY 10 SECONDS at the end of the query; or, over one stream, "
            "PARTITION BY TUMBLE(ts, INTERVAL 10 SECONDS), or, over answers of windows, by their window_end; as-of "
            "joins and first rows of keys need a window, A [RANGE 1 HOUR], and ORDER BY the stream's timestamp alone",
        )
    inner = Binder(found.text, replace(scope, time=None))
    outer = Binder(found.text, scope, lambda node: RANK if _is_rank(node) else None)
    outputs = outputs_of(outer, tree)
    clause_after = tree.args.get("having")
    having = None if clause_after is None else outer.condition(clause_after.this)
    computed = [(o.name, o.expression) for o in outputs] + ([] if having is None else [("the condition", having)])
    failing = next((n for n, e in computed if RANK in e.columns() and can_fail(e)), None)
    if failing is not None:
        remedy = "select the number of the row itself, and compute with it in a query around this one"
        raise error_at(found.text, clause.window, f"{failing!r}, which may have no value for a row's number", remedy)
    order = clause.window.args.get("order")
    keys = tuple(order_key(found, inner, node) for node in (order.expressions if order is not None else ()))
    groups = tuple(partition_group(found, inner, node) for node in tree.args["group"].expressions)
    top = TopN(clause.count, keys, RANKS[type(clause.window.this)])
    return outputs, Aggregate(groups, (), every, having, offset, top)


def partition_group(found: CqlText, binder: Binder, node: exp.Expr) -> Expression:
    """Bind a value of PARTITION BY; raises LanguageError."""
    group = binder.bind(node)
    if family(group.type) == "other" and not is_nested(group.type):
        raise error_at(found.text, node, f"values of type {name(group.type)} do not group", "PARTITION BY plain values")
    return group


def order_key(found: CqlText, binder: Binder, node: exp.Expr) -> tuple[Expression, bool]:
    """Bind a key of ORDER BY, and say whether it descends; raises LanguageError."""
    value = plain(binder.bind(node.this))
    if family(value.type) in ("other", "null"):
        raise error_at(found.text, node, f"values of type {name(value.type)} have no order", "order by plain values")
    if node.args.get("nulls_first"):
        raise error_at(found.text, node, "NULLS FIRST is not possible", "leave it out: NULL comes last")
    return value, bool(node.args.get("desc"))


def _with_rank(found: CqlText, item: exp.Expr, asked: exp.Window) -> exp.Expr:
    """An item of the select list with the column of ranks in the place of the window function."""
    other = next((node for node in item.find_all(exp.Window) if node != asked), None)
    if other is not None:
        raise error_at(found.text, other, "a window function that QUALIFY does not ask", SHAPE)
    shown = _ranks_read(item)
    return exp.alias_(shown, RANKS[type(item.this)], quoted=True) if isinstance(item, exp.Window) else shown


def _ranks_read(node: exp.Expr) -> exp.Expr:
    """An expression that reads the column of ranks in the place of the window function."""
    return node.transform(lambda part: exp.column(RANK.name, RANK.alias) if isinstance(part, exp.Window) else part)


def _is_rank(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.table == GROUPED
