"""A rank in the SELECT that groups what it numbers, as Flink's documentation has it: a SELECT around another.

`SELECT k, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY COUNT(*) DESC) AS rn FROM A GROUP BY k,
TUMBLE(...)` numbers what `SELECT k, COUNT(*) AS n, window_end FROM A GROUP BY k, TUMBLE(...)` answers, which is a part:
see `midstream.language.parts`. So does QUALIFY beside GROUP BY. Beside EVERY those of each instant are numbered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.language.anded import anded
from midstream.language.dialect import statement
from midstream.language.expression import TIME_COLUMN
from midstream.language.rank_limit import RANKS, is_rank
from midstream.language.set_operations import OPERATIONS
from midstream.language.tokens import DIALECT, outside_brackets, select_list_end, tokens_of
from midstream.language.traced import Traced
from midstream.language.window_words import is_window_bound
from midstream.language.written import quoted, sql_of
from midstream.model.errors import LanguageError


def with_groups_apart(text: Traced) -> Traced:
    """The text of a SELECT that numbers its groups, with the groups in brackets; any other text as it is. Raises
    LanguageError for the place of a column in GROUP BY where no such column is.

    >>> text = "SELECT k, RANK() OVER (ORDER BY SUM(v)) AS r FROM A [NOW] GROUP BY 1 EVERY 1 DAY"
    >>> print(with_groups_apart(Traced.of(text)).text)
    SELECT "k", RANK() OVER (PARTITION BY "window_ts" ORDER BY "SUM(v)") AS "r" FROM (SELECT k AS "k", _ts AS
    "window_ts", SUM(v) AS "SUM(v)" FROM A [NOW] GROUP BY k EVERY 1 DAY) AS grouped
    """
    tokens = [token for token, _ in outside_brackets(tokens_of(text.text))]
    kinds = {token.token_type for token in tokens}
    asked = {TokenType.SELECT, TokenType.FROM, TokenType.GROUP_BY, TokenType.OVER}
    if not asked <= kinds or kinds & OPERATIONS.keys():
        return text
    try:
        tree = statement(text.text)
    except LanguageError:
        return text  # Whoever reads it says what is wrong.
    source = select_list_end(tokens)
    if not isinstance(tree, exp.Select) or source is None or not _is_plain(tree):
        return text
    written = _columns_named(text, tokens, tree)
    groups = _Groups(text, tree, at_instants=tree.args.get("every") is not None)
    rest, qualify = text.replaced(source, len(text), written), text.new("")
    if (clause := tree.args.get("qualify")) is not None:
        start = _first(tokens, TokenType.QUALIFY)
        ends = (token.start for token in tokens if token.start > start and token.text.upper() in ("EVERY", "WINDOW"))
        rest = text.joined([text.replaced(source, start, written), text[next(ends, len(text)) :]])
        qualify = text.joined([" QUALIFY ", groups.condition(clause.this)])
    below = text.listed(
        text.joined([text.rewritten(sql_of(n), n), f" AS {quoted(t)}"]) for t, n in groups.shown.items()
    )
    inner = text.joined([" FROM (SELECT ", below, " ", rest.stripped(), ") AS grouped"])
    before = text[: _first(tokens, TokenType.SELECT)]
    return text.joined([before, "SELECT ", text.listed(groups.items), inner, qualify])


def _first(tokens: Iterable[Token], kind: TokenType) -> int:
    return next(token.start for token in tokens if token.token_type == kind)


def _is_plain(tree: exp.Select) -> bool:
    """Whether a SELECT groups, its windows are ranks, and its items have names."""
    parts = [*tree.expressions, *([tree.args["qualify"]] if tree.args.get("qualify") else [])]
    windows = [node for part in parts for node in part.find_all(exp.Window)]
    starred = any(item.is_star for item in tree.expressions)
    grouped = tree.args.get("group") is not None and not tree.args.get("distinct")
    return bool(windows) and all(map(is_rank, windows)) and grouped and not starred


def _columns_named(text: Traced, tokens: Sequence[Token], tree: exp.Select) -> list[tuple[int, int, Traced]]:
    """Write the items of the select list into GROUP BY of the tree where it has their numbers; and what is to be
    replaced by what in the text.
    """
    begin, group, items = _first(tokens, TokenType.GROUP_BY), tree.args["group"], tree.expressions
    behind = (TokenType.GROUP_BY, TokenType.COMMA)
    firsts = [two for one, two in pairwise(tokens) if one.start >= begin and one.token_type in behind]
    replaced, named = list[tuple[int, int, Traced]](), list[exp.Expr]()
    for token, node in zip(firsts, group.expressions, strict=False):
        named.append(node)
        if not isinstance(node, exp.Literal) or node.is_string:
            continue
        place = text.place(token.start)
        if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
            message = f"there is no column {node.name} in the select list"
            raise LanguageError(message, place=place, remedy=f"use 1 to {len(items)}")
        item = items[int(node.name) - 1].unalias()
        if item.find(exp.Window):
            message = f"column {node.name} of the select list, a rank, in GROUP BY"
            raise LanguageError(message, place=place, remedy="group by what is ranked")
        named[-1] = item.copy()
        replaced.append((token.start, token.end + 1, text.rewritten(sql_of(item), item)))
    group.set("expressions", [*named, *group.expressions[len(named) :]])
    return replaced


class _Groups:
    """What the groups show, by title, and what stands for it above them."""

    def __init__(self, text: Traced, tree: exp.Select, at_instants: bool) -> None:
        self.text, self.at_instants = text, at_instants
        self.shown: dict[str, exp.Expr] = {}
        grouped = {node.name.lower() for node in tree.args["group"].expressions if isinstance(node, exp.Column)}
        named = {item.alias.lower(): item.this for item in tree.expressions if item.alias}
        self.named = {name: node for name, node in named.items() if name not in grouped}
        self.items = [self._item(item) for item in tree.expressions]

    def _item(self, item: exp.Expr) -> Traced:
        """An item of the select list over the groups."""
        node = item.unalias()
        if is_rank(node):
            return self._titled(item, self._over(node), item.alias or RANKS[type(node.this)])
        if node.find(exp.Window):
            return self._titled(item, node.transform(self._over), item.alias or sql_of(node))
        if item.name == TIME_COLUMN and not item.alias:
            return self.text.rewritten(TIME_COLUMN, item)  # That of the rank's groups is that of their answers.
        return self.text.rewritten(self._title(node, item.alias).sql(DIALECT), item)

    def _titled(self, item: exp.Expr, node: exp.Expr, title: str) -> Traced:
        return self.text.joined([self.text.rewritten(sql_of(node), item), f" AS {quoted(title)}"])

    def condition(self, clause: exp.Expr) -> Traced:
        """The condition of QUALIFY over the groups: what is not about ranks is one more column of theirs."""

        def is_about_rank(part: exp.Expr) -> bool:
            names = (self.named.get(column.name.lower()) for column in part.find_all(exp.Column))
            return part.find(exp.Window) is not None or any(map(is_rank, names))

        shown = ((one, one.transform(self._over) if is_about_rank(one) else self._title(one)) for one in anded(clause))
        parts = [self.text.joined(["(", self.text.rewritten(sql_of(new), one), ")"]) for one, new in shown]
        return self.text.listed(parts, " AND ")

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
    return node.name if isinstance(node, exp.Column) else sql_of(node)
