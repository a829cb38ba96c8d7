"""A rank in the SELECT that groups what it numbers, as Flink's documentation has it: a SELECT around another.

`SELECT k, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY COUNT(*) DESC) AS rn FROM A GROUP BY k,
TUMBLE(...)` numbers what `SELECT k, COUNT(*) AS n, window_end FROM A GROUP BY k, TUMBLE(...)` answers, which is a part:
see `midstream.sql.parts`. So does QUALIFY next to GROUP BY. Next to EVERY those of each instant are numbered.
"""

from __future__ import annotations

from sqlglot import exp

from midstream.expr.expression import TIME_COLUMN
from midstream.sql.anded import anded
from midstream.sql.error_at import error_at
from midstream.sql.place import standing_at
from midstream.sql.rank_limit import RANKS, is_rank
from midstream.sql.sql_tree import sql_of
from midstream.sql.window_words import is_window_bound


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
    """Whether a SELECT groups, its windows are ranks, and its items have names."""
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
            raise error_at(text, node, message, f"use 1 to {len(items)}")
        item = items[int(node.name) - 1].unalias()
        if item.find(exp.Window):
            message = f"column {node.name} of the select list, a rank, in GROUP BY"
            raise error_at(text, node, message, "group by what is ranked")
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
        """An item of the select list over the groups."""
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
        """A rank over the groups; any other node as it is."""
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
        """The column of the groups that shows an expression."""
        node = written.transform(self._written_out)
        known = next((title for title, one in self.shown.items() if one == node and alias in ("", title)), None)
        title = known or alias or _name_of(node)
        while known is None and title.lower() in (other.lower() for other in self.shown):
            title += "_"
        self.shown.setdefault(title, node)
        return standing_at(exp.column(title, quoted=True), written)

    def _written_out(self, node: exp.Expr) -> exp.Expr:
        """An item in the place of its name, where no group has that; and of Spark's name of a bound Flink's."""
        if isinstance(node, exp.Column) and not node.table:
            node = self.named.get(node.name.lower(), node).copy()
        spelt = isinstance(node, exp.Column) and node.table and is_window_bound(node)
        return standing_at(exp.column(_name_of(node)), node) if spelt else node


def _name_of(node: exp.Expr) -> str:
    """What an item of the select list without a name is called."""
    if is_window_bound(node):
        return f"window_{node.name.lower().rpartition('_')[2]}"
    return node.name if isinstance(node, exp.Column) else sql_of(node)
