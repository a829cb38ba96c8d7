"""A rank in the SELECT that groups what it numbers, as Flink's documentation has it: a SELECT around another.

`SELECT k, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY COUNT(*) DESC) AS rn FROM A GROUP BY k,
TUMBLE(...)` numbers what `SELECT k, COUNT(*) AS n, window_end FROM A GROUP BY k, TUMBLE(...)` answers, which is a part:
see `midstream.language.parts`. So does QUALIFY beside GROUP BY. Beside EVERY those of each instant are numbered.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.language.anded import anded
from midstream.language.cql_tokens import split_cql
from midstream.language.expression import TIME_COLUMN
from midstream.language.rank_limit import RANKS, is_rank
from midstream.language.select_list import as_written
from midstream.language.tokens import DIALECT, outside_brackets, tokens_of
from midstream.language.window_words import is_window_bound

_UNITED = {TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT}


def with_groups_apart(text: str) -> str:
    """The text of a SELECT that numbers its groups, with the groups in brackets; any other text as it is.

    >>> print(with_groups_apart("SELECT k, RANK() OVER (ORDER BY SUM(v)) AS r FROM A [NOW] GROUP BY k EVERY 1 DAY"))
    SELECT "k", RANK() OVER (PARTITION BY "window_ts" ORDER BY "SUM(v)") AS "r" FROM (SELECT k AS "k", _ts AS
    "window_ts", SUM(v) AS "SUM(v)" FROM A [NOW] GROUP BY k EVERY 1 DAY) AS grouped
    """
    tokens = [token for token, _ in outside_brackets(tokens_of(text))]
    kinds = {token.token_type for token in tokens}
    if not {TokenType.SELECT, TokenType.FROM, TokenType.GROUP_BY, TokenType.OVER} <= kinds or kinds & _UNITED:
        return text
    found = split_cql(text)
    try:
        tree = sqlglot.parse_one(found.sql, read=DIALECT)
    except ParseError:
        return text  # Whoever reads it says what is wrong.
    if not isinstance(tree, exp.Select) or not _is_plain(tree):
        return text
    groups, source = _Groups(tree, at_instants=found.every is not None), _first(tokens, TokenType.FROM)
    rest, qualify = text[source:], ""
    if (clause := tree.args.get("qualify")) is not None:
        start = _first(tokens, TokenType.QUALIFY)
        ends = (token.start for token in tokens if token.start > start and token.text.upper() in ("EVERY", "WINDOW"))
        rest = text[source:start] + text[next(ends, len(text)) :]
        qualify = f" QUALIFY {groups.condition(clause.this)}"
    below = ", ".join(f"{_sql(node)} AS {_quoted(title)}" for title, node in groups.shown.items())
    inner = f"(SELECT {below} {rest.rstrip()}) AS grouped"
    return f"{text[: _first(tokens, TokenType.SELECT)]}SELECT {', '.join(groups.items)} FROM {inner}{qualify}"


def _first(tokens: Iterable[Token], kind: TokenType) -> int:
    return next(token.start for token in tokens if token.token_type == kind)


def _is_plain(tree: exp.Select) -> bool:
    """Whether the windows of a SELECT are ranks, and its items and groups have names."""
    parts = [*tree.expressions, *([tree.args["qualify"]] if tree.args.get("qualify") else [])]
    windows = [node for part in parts for node in part.find_all(exp.Window)]
    starred = any(item.is_star for item in tree.expressions)
    placed = any(isinstance(node, exp.Literal) for node in tree.args["group"].expressions)
    return bool(windows) and all(map(is_rank, windows)) and not (starred or placed or tree.args.get("distinct"))


class _Groups:
    """What the groups show, by title, and what stands for it above them."""

    def __init__(self, tree: exp.Select, at_instants: bool) -> None:
        self.at_instants = at_instants
        self.shown: dict[str, exp.Expr] = {}
        grouped = {node.name.lower() for node in tree.args["group"].expressions if isinstance(node, exp.Column)}
        named = {item.alias.lower(): item.this for item in tree.expressions if item.alias}
        self.named = {name: node for name, node in named.items() if name not in grouped}
        self.items = [self._item(item) for item in tree.expressions]

    def _item(self, item: exp.Expr) -> str:
        """An item of the select list over the groups."""
        node = item.unalias()
        if is_rank(node):
            return f"{_sql(self._over(node))} AS {_quoted(item.alias or RANKS[type(node.this)])}"
        if node.find(exp.Window):
            return f"{_sql(node.transform(self._over))} AS {_quoted(item.alias or _sql(node))}"
        if item.name == TIME_COLUMN and not item.alias:
            return TIME_COLUMN  # That of the rank's groups is that of their answers.
        return self._title(node, item.alias).sql(DIALECT)

    def condition(self, clause: exp.Expr) -> str:
        """The condition of QUALIFY over the groups: what is not about ranks is one more column of theirs."""

        def is_about_rank(part: exp.Expr) -> bool:
            names = (self.named.get(column.name.lower()) for column in part.find_all(exp.Column))
            return part.find(exp.Window) is not None or any(map(is_rank, names))

        parts = (part.transform(self._over) if is_about_rank(part) else self._title(part) for part in anded(clause))
        return " AND ".join(f"({_sql(part)})" for part in parts)

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

    def _title(self, node: exp.Expr, alias: str = "") -> exp.Expr:
        """The column of the groups that shows an expression."""
        node = node.transform(self._written_out)
        known = next((title for title, one in self.shown.items() if one == node and alias in ("", title)), None)
        title = known or alias or _name_of(node)
        while known is None and title.lower() in (other.lower() for other in self.shown):
            title += "_"
        self.shown[title] = node
        return exp.column(title, quoted=True)

    def _written_out(self, node: exp.Expr) -> exp.Expr:
        """An item in the place of its name, where no group has that; and of Spark's name of a bound Flink's."""
        if isinstance(node, exp.Column) and not node.table:
            node = self.named.get(node.name.lower(), node).copy()
        spelt = isinstance(node, exp.Column) and node.table and is_window_bound(node)
        return exp.column(_name_of(node)) if spelt else node


def _name_of(node: exp.Expr) -> str:
    """What an item of the select list without a name is called."""
    if is_window_bound(node):
        return f"window_{node.name.lower().rpartition('_')[2]}"
    return node.name if isinstance(node, exp.Column) else _sql(node)


def _sql(node: exp.Expr) -> str:
    return node.transform(as_written).sql(DIALECT)


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(DIALECT)
