"""The first n rows of each group: `ROW_NUMBER() OVER (PARTITION BY ... ORDER BY ...) <= n` in QUALIFY, also with RANK
and DENSE_RANK, which give rows that are equal in what they are ordered by one number.

As the other aggregates it is asked at instants, EVERY so often over the windows of the streams, or once for each window
to group by that stands in PARTITION BY.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from midstream.expr.coerce import name, plain
from midstream.expr.evaluate import can_fail
from midstream.expr.expression import TIME_COLUMN, Column, Expression
from midstream.expr.rules import is_nested
from midstream.expr.types import INT64, family
from midstream.logical.query import GROUPED, Aggregate, Output, TopN
from midstream.sql.bind import Binder
from midstream.sql.calendar_window import CalendarWindow
from midstream.sql.dialect import CqlText, Midstream
from midstream.sql.group_window import CumulativeWindow, GroupWindow, SessionWindow, is_window_bound
from midstream.sql.place import error_at, standing_at
from midstream.sql.scope import Scope
from midstream.sql.select_list import outputs_of
from midstream.sql.sql_tree import anded, sql_of

RANKS: dict[type[exp.Expr], str] = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}


@dataclass(frozen=True)
class RankAsked:
    """A rank, `count`, the greatest number of it that is asked for, and what else the condition says."""

    window: exp.Window
    count: int
    others: tuple[exp.Expr, ...]


def is_rank(node: exp.Expr | None) -> bool:
    """Whether an expression is the number of a row in its group: ROW_NUMBER, RANK or DENSE_RANK."""
    return isinstance(node, exp.Window) and type(node.this) in RANKS


def is_over(tree: exp.Select) -> bool:
    """Whether a SELECT computes over the rows near to each, as SUM(v) OVER (...) does, and ranks none."""
    parts = [*tree.expressions, *([tree.args["qualify"]] if tree.args.get("qualify") is not None else [])]
    windows = [node for part in parts for node in part.find_all(exp.Window)]
    return bool(windows) and not any(map(is_rank, windows))


def rank_asked(condition: exp.Expr, titles: Mapping[str, exp.Expr]) -> RankAsked | None:
    """What a condition asks of one rank; None where it asks of none, of several, or sets no bound above it.

    `titles` are the items of the select list by their names, by which it may call the rank.

    >>> import sqlglot
    >>> said = sqlglot.parse_one("3 >= ROW_NUMBER() OVER (ORDER BY k) AND v > 2")
    >>> asked = rank_asked(said, {})
    >>> asked.count, [one.sql() for one in asked.others]
    (3, ['v > 2'])
    """

    def written_out(node: exp.Expr) -> exp.Expr:
        named = titles.get(node.name) if isinstance(node, exp.Column) and not node.table else None
        return named.copy() if named is not None and is_rank(named) else node

    parts = list(anded(condition.transform(written_out)))
    windows = [node for part in parts for node in part.find_all(exp.Window)]
    bounds = [bound for part in parts if (bound := _bound(part)) is not None]
    if not bounds or not is_rank(windows[0]) or any(window != windows[0] for window in windows):
        return None
    count = min(bounds)
    others = tuple(part for part in parts if not _implied(part, count))
    return RankAsked(windows[0], count, others)


def _bound(part: exp.Expr) -> int | None:
    """Return the greatest rank for which a condition may hold; None if it limits no rank."""
    if isinstance(part, exp.Between) and is_rank(part.this):
        return _number(part.args["high"])
    if isinstance(part, exp.In) and is_rank(part.this) and part.expressions:
        numbers = [_number(one) for one in part.expressions]
        return None if None in numbers else max(number for number in numbers if number is not None)
    kind, left, right = type(part), part.this, part.args.get("expression")
    if isinstance(right, exp.Window):
        kind, left, right = _TURNED.get(kind, exp.NEQ), right, left
    if kind not in (exp.LTE, exp.LT, exp.EQ) or not is_rank(left):
        return None
    number = _number(right)
    return number - 1 if number is not None and kind is exp.LT else number


def _implied(part: exp.Expr, count: int) -> bool:
    """Return whether a condition holds of all ranks up to a number."""
    if _bound(part) != count:
        return False
    if isinstance(part, exp.Between):
        return _number(part.args["low"]) in (0, 1)
    return not isinstance(part, exp.In | exp.EQ) or count == 1


def _number(node: exp.Expr | None) -> int | None:
    return int(node.name) if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() else None


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
        raise error_at(found.text, clause.this, "QUALIFY can only select the first n rows", SHAPE)
    if tree.args.get("group") is not None or tree.args.get("having") is not None:
        raise error_at(
            found.text,
            clause.this,
            "QUALIFY cannot be in a query with GROUP BY",
            "move GROUP BY into a subquery, and rank the answers of the subquery",
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
        raise error_at(found.text, clause.window, f"ROW_NUMBER cannot rank within {what}", remedy)
    if window is not None:
        every, offset = window.slide, window.offset
    if not every:
        raise error_at(
            found.text,
            clause.window,
            "ROW_NUMBER over a stream needs EVERY",
            "write for example EVERY 10 SECONDS at the end of the query to say when to rank; or rank each "
            "window: over one stream write PARTITION BY TUMBLE(ts, INTERVAL 10 SECONDS), and over answers of windows "
            "write PARTITION BY window_end; for an as-of join, or the first row of each key, order only by the "
            "stream's timestamp; also give the stream a window such as A [RANGE 1 HOUR]",
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
        raise error_at(
            found.text,
            clause.window,
            f"the query cannot compute {failing!r}, which may fail for some row numbers",
            remedy,
        )
    order = clause.window.args.get("order")
    keys = tuple(order_key(found, inner, node) for node in (order.expressions if order is not None else ()))
    groups = tuple(partition_group(found, inner, node) for node in tree.args["group"].expressions)
    top = TopN(clause.count, keys, RANKS[type(clause.window.this)])
    return outputs, Aggregate(groups, (), every, having, offset, top)


def partition_group(found: CqlText, binder: Binder, node: exp.Expr) -> Expression:
    """Bind a value of PARTITION BY; raises LanguageError."""
    group = binder.bind(node)
    if family(group.type) == "other" and not is_nested(group.type):
        raise error_at(
            found.text,
            node,
            f"values of type {name(group.type)} cannot be grouped",
            "PARTITION BY numbers, strings or times",
        )
    return group


def order_key(found: CqlText, binder: Binder, node: exp.Expr) -> tuple[Expression, bool]:
    """Bind a key of ORDER BY, and say whether it descends; raises LanguageError."""
    value = plain(binder.bind(node.this))
    if family(value.type) in ("other", "null"):
        raise error_at(
            found.text, node, f"values of type {name(value.type)} have no order", "order by numbers, strings or times"
        )
    if node.args.get("nulls_first"):
        raise error_at(found.text, node, "ORDER BY cannot have NULLS FIRST", "leave NULLS FIRST out: NULL comes last")
    return value, bool(node.args.get("desc"))


def _with_rank(found: CqlText, item: exp.Expr, asked: exp.Window) -> exp.Expr:
    other = next((node for node in item.find_all(exp.Window) if node != asked), None)
    if other is not None:
        raise error_at(found.text, other, "the select list and QUALIFY must have the same window function", SHAPE)
    shown = _ranks_read(item)
    return exp.alias_(shown, RANKS[type(item.this)], quoted=True) if isinstance(item, exp.Window) else shown


def _ranks_read(node: exp.Expr) -> exp.Expr:
    """Return an expression that reads the column of ranks in the place of the window function."""
    return node.transform(lambda part: exp.column(RANK.name, RANK.alias) if isinstance(part, exp.Window) else part)


def _is_rank(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.table == GROUPED


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
    """Return whether a SELECT has a clause that nothing reads once it stands in another's place."""
    return any(value and key not in {*_PLAIN, "joins"} for key, value in select.args.items())


def _inner(items: dict[str, exp.Expr], starred: bool) -> Callable[[exp.Expr], exp.Expr]:
    def shown(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node.name.lower() in items:
            found = items[node.name.lower()]
            return found.copy() if isinstance(found, exp.Column | exp.Window) else exp.Paren(this=found.copy())
        return exp.column(node.this.copy()) if starred else node

    return shown


def with_groups_apart(text: str, tree: exp.Select) -> exp.Select:
    """Return a SELECT that numbers its groups over another that has the groups; any other as it is. Raises
    LanguageError for the place of a column in GROUP BY where no such column is.

    >>> from midstream.sql.dialect import Midstream, statement
    >>> text = "SELECT k, RANK() OVER (ORDER BY SUM(v)) AS r FROM A [NOW] GROUP BY 1 EVERY 1 SECOND"
    >>> print(with_groups_apart(text, statement(text)).sql(Midstream))
    SELECT "k", RANK() OVER (PARTITION BY "window_ts" ORDER BY "SUM(v)") AS "r" FROM (SELECT k AS "k", _ts AS
    "window_ts", SUM(v) AS "SUM(v)" FROM A [NOW] GROUP BY k EVERY 1 SECOND) AS grouped
    """
    if not _is_plain(tree):
        return tree
    inner = tree.copy()
    _name_columns(text, inner)
    groups = _Groups(inner)
    items = [groups.item(item) for item in inner.expressions]
    whole = exp.Select(expressions=items, with_=inner.args.pop("with_", None))
    if (clause := inner.args.pop("qualify", None)) is not None:
        whole.set("qualify", exp.Qualify(this=groups.condition(clause.this)))
    inner.set("expressions", [exp.alias_(node, title, quoted=True) for title, node in groups.shown.items()])
    whole.set("from_", exp.From(this=inner.subquery("grouped", copy=False)))
    return whole


def _is_plain(tree: exp.Select) -> bool:
    """Return whether a SELECT groups, its windows are ranks, and its items have names."""
    if tree.args.get("group") is None or tree.args.get("distinct") or tree.args.get("from_") is None:
        return False
    parts = [*tree.expressions, *([tree.args["qualify"]] if tree.args.get("qualify") else [])]
    windows = [node for part in parts for node in part.find_all(exp.Window)]
    starred = any(item.is_star for item in tree.expressions)
    return bool(windows) and all(map(is_rank, windows)) and not starred


def _name_columns(text: str, tree: exp.Select) -> None:
    """Write the items of the select list into GROUP BY where it has their numbers."""
    named, items = list[exp.Expr](), tree.expressions
    for node in tree.args["group"].expressions:
        if not isinstance(node, exp.Literal) or node.is_string:
            named.append(node)
            continue
        if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
            message = f"there is no column {node.name} in the select list"
            raise error_at(text, node, message, f"use a number from 1 to {len(items)}")
        item = items[int(node.name) - 1].unalias()
        if item.find(exp.Window):
            message = f"column {node.name} of the select list is a rank, which GROUP BY cannot use"
            raise error_at(text, node, message, "group by other columns")
        named.append(item.copy())
    tree.args["group"].set("expressions", named)


class _Groups:
    """What the groups show, by title, and what stands for it above them."""

    def __init__(self, tree: exp.Select) -> None:
        self.at_instants = tree.args.get("every") is not None
        self.shown: dict[str, exp.Expr] = {}
        grouped = {node.name.lower() for node in tree.args["group"].expressions if isinstance(node, exp.Column)}
        named = {item.alias.lower(): item.this for item in tree.expressions if item.alias}
        self.named = {name: node for name, node in named.items() if name not in grouped}

    def item(self, item: exp.Expr) -> exp.Expr:
        node = item.unalias()
        if is_rank(node):
            return exp.alias_(self._over(node), item.alias or RANKS[type(node.this)], quoted=True)
        if node.find(exp.Window):
            return exp.alias_(node.copy().transform(self._over), item.alias or sql_of(node), quoted=True)
        if item.name == TIME_COLUMN and not item.alias:
            return item.copy()  # That of the rank's groups is that of their answers.
        return self._title(node, item.alias)

    def condition(self, clause: exp.Expr) -> exp.Expr:
        """The condition of QUALIFY over the groups: what is not about ranks is one more column of theirs."""

        def is_about_rank(part: exp.Expr) -> bool:
            names = (self.named.get(column.name.lower()) for column in part.find_all(exp.Column))
            return part.find(exp.Window) is not None or any(map(is_rank, names))

        shown = (one.transform(self._over) if is_about_rank(one) else self._title(one) for one in anded(clause))
        return exp.and_(*(exp.Paren(this=one) for one in shown), copy=False)

    def _over(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Window):
            return node
        window = node.copy()
        by = [self._title(one) for one in window.args.get("partition_by") or []]
        window.set("partition_by", [*by, *([self._title(exp.column(TIME_COLUMN))] if self.at_instants else [])])
        order = window.args.get("order")
        for key in order.expressions if order is not None else ():
            key.set("this", self._title(key.this))
        return window

    def _title(self, written: exp.Expr, alias: str = "") -> exp.Expr:
        node = written.transform(self._written_out)
        known = next((title for title, one in self.shown.items() if one == node and alias in ("", title)), None)
        title = known or alias or _name_of(node)
        while known is None and title.lower() in (other.lower() for other in self.shown):
            title += "_"
        self.shown.setdefault(title, node)
        return standing_at(exp.column(title, quoted=True), written)

    def _written_out(self, node: exp.Expr) -> exp.Expr:
        """Return an item in the place of its name, where no group has that; and of Spark's name of a bound Flink's."""
        if isinstance(node, exp.Column) and not node.table:
            node = self.named.get(node.name.lower(), node).copy()
        spelt = isinstance(node, exp.Column) and node.table and is_window_bound(node)
        return standing_at(exp.column(_name_of(node)), node) if spelt else node


def _name_of(node: exp.Expr) -> str:
    if is_window_bound(node):
        return f"window_{node.name.lower().rpartition('_')[2]}"
    return node.name if isinstance(node, exp.Column) else sql_of(node)
