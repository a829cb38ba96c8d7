"""Windows over a join: of the time of its results, as in `TUMBLE(_ts, ...)` and `OVER (ORDER BY _ts ...)`, or that of
the rows of a source.
"""

from __future__ import annotations

from math import inf

from sqlglot import exp

from midstream.expr.expression import TIME_COLUMN, Call, Column, Expression
from midstream.sql.bind import Binder
from midstream.sql.calendar_window import calendar_units
from midstream.sql.dialect import CqlText
from midstream.sql.error_at import error_at
from midstream.sql.join_order import JoinOrder
from midstream.sql.rank_limit import is_over
from midstream.sql.window_words import is_window_call, is_window_function


def by_answers(found: CqlText, tree: exp.Select, order: JoinOrder) -> tuple[exp.Select, str | None]:
    """The query with its window to group by over the time of the join's answers, `_ts`, and the source whose rows give
    them that, None where it is that of the results. Raises LanguageError for any other time.
    """
    clause = tree.args.get("group")
    node = next((node for node in clause.expressions if is_window_call(node)), None) if clause is not None else None
    over = tree.find(exp.Window) if is_over(tree) else None
    units = calendar_units(tree) if node is None and over is None and found.every is None else []
    times = node.expressions[:1] if node is not None else [c for unit in units for c in unit.find_all(exp.Column)][:1]
    if over is not None:
        times = [key.this for key in (over.args["order"].expressions if over.args.get("order") is not None else ())][:1]
    if not times:
        return tree, None
    asked = times[0]
    what = "a window to group by" if over is None else "a window in order"
    if is_result_time(asked):
        return tree, None
    alias = _source_of(Binder(found.text, order.within(len(order.blocks))).bind(asked), order)
    if alias is None:
        sources = ", ".join(
            f"{one}.{order.streams[_stream(order, one)].timestamp}" for one in sorted(order.times.always)
        )
        remedy = f"write {TIME_COLUMN}, the time of a result{f'; or one of {sources}' if sources else ''}"
        raise error_at(found.text, asked, f"{what} of what is not an event time", remedy)
    if alias not in order.times.always:
        remedy = f"group by {TIME_COLUMN}, the time of a result"
        raise error_at(found.text, asked, f"{what} of the time of {alias!r}, which the join may pad", remedy)
    if order.times.late[alias] == inf:
        remedy = f"write [RANGE n unit], or group by {TIME_COLUMN}, the time of a result"
        raise error_at(found.text, asked, f"{what} of the time of {alias!r}, whose rows stay forever", remedy)

    unit_kinds = (exp.TimestampTrunc, exp.DateTrunc)

    def timed(part: exp.Expr) -> exp.Expr:
        if is_window_function(part) and part.expressions and part.expressions[0] == asked:
            part.set("expressions", [exp.column(TIME_COLUMN), *part.expressions[1:]])
        if isinstance(part, exp.Ordered) and part.this == asked and part.find_ancestor(exp.Window) is not None:
            part.set("this", exp.column(TIME_COLUMN))
        return exp.column(TIME_COLUMN) if part == asked and part.find_ancestor(*unit_kinds) in units else part

    rewritten = tree.copy()
    for key in ("group", "having", "qualify"):
        if rewritten.args.get(key) is not None:
            rewritten.set(key, rewritten.args[key].transform(timed))
    rewritten.set("expressions", [item.transform(timed) for item in rewritten.expressions])
    return rewritten, alias


def is_result_time(node: exp.Expr) -> bool:
    """Whether a node is `_ts`, the time of a result."""
    return isinstance(node, exp.Column) and not node.table and node.name == TIME_COLUMN


def _source_of(time: Expression, order: JoinOrder) -> str | None:
    """The source whose rows' event time an expression is."""
    if isinstance(time, Call) and time.function == "moment":
        time = time.arguments[0]
    if not isinstance(time, Column) or time.alias not in order.times.present:
        return None
    event_time = order.streams[_stream(order, time.alias)].timestamp
    return time.alias if time.name in (TIME_COLUMN, event_time) else None


def _stream(order: JoinOrder, alias: str) -> str:
    return next(source.stream for source in order.sources if source.alias == alias)
