"""The select list, and which SELECT statements the language takes."""

from __future__ import annotations

from collections.abc import Container

from sqlglot import exp

from midstream.expr.expression import Expression
from midstream.logical.query import Output
from midstream.model.errors import LanguageError
from midstream.sql.bind import Binder
from midstream.sql.dialect import SHAPE, CqlText
from midstream.sql.group_window import is_window_bound, is_window_call
from midstream.sql.place import error_at, place, place_of
from midstream.sql.scope import Scope, find_name
from midstream.sql.set_operations import operation_of
from midstream.sql.sql_tree import sql_of

_REFUSED = {
    "order": ("ORDER BY", "leave it out: results come in the order of their time"),
    "limit": ("LIMIT", "leave it out: a continuous query has no last row"),
    "offset": ("OFFSET", "leave it out: a continuous query has no first row"),
    "windows": ("WINDOW name AS", "write windows as [RANGE n unit] or [ROWS n] after a stream"),
    "into": ("INTO", "leave it out: results go where the job's sink says"),
    "sample": ("SAMPLE", "filter with WHERE"),
}
_KEPT = frozenset({"expressions", "from_", "joins", "where", "group", "having", "with_", "distinct", "qualify"})
_KEPT |= {"window", "every", "subtrahends", "laterals", "relation"}


def written_out(node: exp.Expr, tree: exp.Select, scope: Scope) -> exp.Expr:
    """Replace a name of an item of the select list by a copy of the item, unless a column has this name."""
    if not isinstance(node, exp.Column) or node.table:
        return node
    known = {column.name for alias, _ in scope.sources for column in scope.columns(alias)}
    titles = {item.alias: item.unalias() for item in tree.expressions if item.alias}
    chosen = find_name(node.name, titles)
    return node if len(chosen) != 1 or find_name(node.name, known) else titles[chosen[0]].copy()


def select_of(text: str, tree: exp.Expr) -> exp.Select:
    """The SELECT that a statement is; raises LanguageError if it is anything else, or has a clause we do not take."""
    if not isinstance(tree, exp.Select):
        raise error_at(text, tree, f"a query must be a SELECT, not {tree.key.upper()}", SHAPE)
    for key, value in tree.args.items():
        if value and key not in _KEPT:
            word, remedy = _REFUSED.get(key, (key.upper().strip("_"), SHAPE))
            part = value[0] if isinstance(value, list) else value
            spot = place_of(text, part) if isinstance(part, exp.Expr) else place_of(text, tree)
            raise LanguageError(f"{word} is not part of the language", place=spot, remedy=remedy)
    if not tree.expressions:
        raise LanguageError("the query selects nothing", place=place_of(text, tree), remedy=SHAPE)
    if tree.args.get("from_") is None:
        end = max((node.meta["end"] + 1 for node in tree.walk() if "end" in node.meta), default=len(text))
        raise LanguageError("the query reads no stream", place=place(text, end), remedy=SHAPE)
    return tree


def distinct_grouped(found: CqlText, tree: exp.Select, of_time: Container[str] = ()) -> exp.Select:
    """The query with GROUP BY its whole select list in the place of DISTINCT, next to a group window if there is one.

    Raises LanguageError where there is none, EVERY is missing, and no column is selected that says the time (one of
    `of_time`), or something else is grouped already.
    """
    distinct = tree.args.get("distinct")
    if distinct is None:
        return tree
    spot = place_of(found.text, tree)
    timed = any(isinstance(item.unalias(), exp.Column) and item.unalias().name in of_time for item in tree.expressions)
    operation = operation_of(tree.args["from_"].this.name)
    if operation is not None and not timed:
        instead = "write UNION ALL; or " if operation == "union" else ""
        remedy = f"{instead}select the window_end of windows to group by in each: equal rows are then known"
        raise LanguageError(
            f"{operation.upper()} needs a timestamp column: otherwise midstream cannot tell when all equal rows "
            "have arrived",
            place=spot,
            remedy=remedy,
        )
    if distinct.args.get("on") is not None or any(item.is_star for item in tree.expressions):
        raise LanguageError(
            "SELECT DISTINCT cannot have ON or *", place=spot, remedy="list the columns: SELECT DISTINCT a, b"
        )
    group = tree.args.get("group")
    windows = [] if group is None else [node for node in group.expressions if is_window_call(node)]
    grouped_otherwise = group is not None and len(windows) < len(group.expressions)
    if grouped_otherwise or any(item.find(exp.AggFunc) for item in tree.expressions):
        raise LanguageError(
            "DISTINCT cannot be in a query with GROUP BY or an aggregate",
            place=spot,
            remedy="leave DISTINCT out, or select DISTINCT from a subquery that has the GROUP BY and the aggregates",
        )
    if found.every is None and not windows and not found.windowed and not timed:
        raise LanguageError(
            "DISTINCT over a stream needs EVERY, a window in GROUP BY, or a timestamp in the select list",
            place=spot,
            remedy="add EVERY 10 SECONDS; or add GROUP BY TUMBLE(ts, INTERVAL '10' SECONDS); or select the timestamp "
            "of the stream, or the window_end of answers",
        )
    grouped = tree.copy()
    grouped.set("distinct", None)
    selected = (item.unalias() for item in grouped.expressions)
    items = [item.copy() for item in selected if not isinstance(item, exp.Literal)]  # A number would be a place.
    if windows:
        items = [*(node.copy() for node in windows), *(item for item in items if not is_window_bound(item))]
    elif found.windowed:
        bounds = [exp.column(name) for name in ("window_start", "window_end")]
        items = [*bounds, *(item for item in items if not is_window_bound(item))]
    grouped.set("group", exp.Group(expressions=items))
    return grouped


def outputs_of(binder: Binder, tree: exp.Select) -> tuple[Output, ...]:
    """The columns of the answer of a query without aggregates."""
    named: list[tuple[str, Expression]] = []
    for node in tree.expressions:
        starred = star(binder, node)
        named += starred if starred is not None else [named_item(binder, node)]
    return unique(named)


def star(binder: Binder, node: exp.Expr) -> list[tuple[str, Expression]] | None:
    """The columns that `*` or `source.*` stands for, with their names; None if the node is not a star."""
    inner = node.this if isinstance(node, exp.Column) else node
    if not isinstance(inner, exp.Star):
        return None
    scope: Scope = binder.scope
    try:
        if any(inner.args.values()):
            raise LanguageError("* cannot have EXCLUDE, REPLACE or RENAME", remedy="list the columns")
        names = [scope.alias(node.text("table"))] if isinstance(node, exp.Column) else [a for a, _ in scope.sources]
        columns = [column for alias in names for column in scope.starred(alias)]
        return [(c.name, scope.shown(c)) for c in columns]
    except LanguageError as error:
        raise LanguageError(error.message, place=place_of(binder.text, node), remedy=error.remedy) from error


def named_item(binder: Binder, node: exp.Expr) -> tuple[str, Expression]:
    """An item of the select list: its alias, else its column's name, else its text."""
    inner = node.this if isinstance(node, exp.Alias) else node
    expression = binder.bind(inner)
    if isinstance(node, exp.Alias):
        return node.alias, expression
    if isinstance(inner, exp.Column):
        return binder.title(inner), expression
    return sql_of(inner), expression


def unique(named: list[tuple[str, Expression]]) -> tuple[Output, ...]:
    """The outputs, the later ones of equal names numbered `_1`, `_2`; names that differ in case only count as equal.

    >>> from midstream.expr.coerce import literal
    >>> [o.name for o in unique([("k", literal(1)), ("K", literal(2)), ("k_1", literal(3))])]
    ['k', 'K_1', 'k_1_1']
    """
    outputs: list[Output] = []
    taken: set[str] = set()
    for name, expression in named:
        free, number = name, 0
        while free.lower() in taken:
            number += 1
            free = f"{name}_{number}"
        taken.add(free.lower())
        outputs.append(Output(free, expression))
    return tuple(outputs)
