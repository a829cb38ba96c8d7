"""Queries within a query that need state of their own: subqueries that join or aggregate, and the SELECTs of UNION,
INTERSECT and EXCEPT.

Each becomes a query by itself, a *part*, whose answers the whole reads as a stream. A part is a tree, as the whole is;
it is named after what it is called in the text, and a digest of itself, so that equal parts of several queries are one.

`FROM (SELECT k, COUNT(*) AS n FROM A ... EVERY 10 SECONDS) AS x` becomes `FROM (SELECT * FROM "x-5f0c81b2") AS x`. What
is left knows where it stands in the text, and what was put in the place of a part where that stood.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Self

from sqlglot import exp
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.expr.expression import TIME_COLUMN
from midstream.model.errors import LanguageError
from midstream.sql.dialect import statement, tokenize
from midstream.sql.existence import with_alternatives_apart
from midstream.sql.latest_rows import with_latest_rows
from midstream.sql.place import place, standing_at
from midstream.sql.set_operations import operands, over, selects_of, stream_of
from midstream.sql.sql_tree import sql_of
from midstream.sql.top_n_clause import is_rank, with_groups_apart
from midstream.sql.unnested import LISTS
from midstream.sql.window_tables import with_window_columns


@dataclass(frozen=True)
class Parts:
    """A query without its parts, by name these, each before those that read it, and the names of the parts of each
    UNION, INTERSECT and EXCEPT by that of the stream of all their answers.
    """

    whole: exp.Expr
    queries: Mapping[str, Statement] = field(default_factory=dict)
    unions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Statement:
    """A query, or a part of one, as a `tree` of which each node knows its place in the `text` that the user wrote.

    >>> query = Statement.of("SELECT n FROM (SELECT COUNT(*) AS n FROM A [NOW] EVERY 5 SECONDS) AS x")
    >>> sql_of(query.parts.whole), [part.sql for part in query.parts.queries.values()]
    ('SELECT n FROM (SELECT * FROM "x-05fb540f") AS x', ['SELECT COUNT(*) AS n FROM A [NOW] EVERY 5 SECONDS'])
    """

    text: str
    tree: exp.Expr
    is_part: bool = False

    @classmethod
    def of(cls, text: str) -> Statement:
        """Parse a text; raises LanguageError, also where too much stands one in the other."""
        tokens = checked_words(text)
        with not_too_deep(text):
            return cls(text, with_window_columns(text, statement(text, tokens)))

    @cached_property
    def sql(self) -> str:
        """The text for people: what the user wrote, or of a part what SQL has for it."""
        return sql_of(self.tree) if self.is_part else self.text

    def name(self, called: str) -> str:
        """The name of a part, which equal parts share that are called alike."""
        # Parts are equal by text, not by the digest of what they mean: texts that mean the same today, one with a `*`,
        # mean different things once a stream is declared with more columns.
        return f"{called.lower()}-{_digest(self.sql)}"

    @cached_property
    def parts(self) -> Parts:
        """The parts, none where all of it runs as one; raises LanguageError for UNION next to UNION ALL."""
        return _Finder(self.text).parts(self.tree)


class QueryText:
    """The base of what asks a query by a text: frozen dataclasses with a field `sql`."""

    sql: str

    @cached_property
    def statement(self) -> Statement:
        """The query as a tree: parsed once, also for those that are `like` this one."""
        former: QueryText | None = self.__dict__.get("former")
        return Statement.of(self.sql) if former is None else former.statement

    def of_tree(self, former: QueryText) -> Self:
        """Return it, to have the tree of another of the same text."""
        assert former.sql == self.sql
        self.__dict__["former"] = former.__dict__.get("former", former)
        return self

    def like(self, **changes: Any) -> Self:
        """Return a copy with other values of fields, not of the text, and of the same tree."""
        return replace(self, **changes).of_tree(self)  # type: ignore[type-var]


def checked_words(sql: object) -> list[Token]:
    """The words of a query; raises LanguageError unless it is given as a text, in which not too much is nested."""
    if not isinstance(sql, str):
        raise LanguageError(
            f"a query must be a string, not {type(sql).__name__}",
            place="sql",
            remedy="write the query as a string: 'SELECT ...'",
        )
    tokens = tokenize(sql)
    # Each is a part, which has those below it in brackets: the last of them would be refused after a long time.
    if (outer := _outer_joins(tokens)) > _MOST_OUTER_JOINS:
        raise LanguageError(
            f"a query cannot nest {outer} outer joins, aggregates, EXISTS or subqueries: the limit is "
            f"{_MOST_OUTER_JOINS}",
            place="FROM and WHERE",
            remedy="let another query join some of the streams, and read the answers of that query",
        )
    nested, most, at = _frames(tokens)
    if nested > _MOST_FRAMES:
        raise too_deep(sql, tokens[at].start, most)
    return tokens


def too_deep(text: str, at: int, levels: int) -> LanguageError:
    """The error of a text in which too much stands one in the other, as it does at a position."""
    return LanguageError(
        f"the query is nested too deeply: it has {levels} brackets and CASEs inside each other",
        place=place(text, at),
        remedy="replace nested IFs by a CASE with several WHENs, or let another query compute a part, and "
        "read the answers of that query",
    )


_MOST_FRAMES = 640
"""How many calls, of the 1,000 that Python allows, the parser may need for a text, wherever it is read again."""

_MOST_OUTER_JOINS = 29
"""More in one FROM are refused at once: as parts they would have more brackets than `_MOST_FRAMES` lets be."""

_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_CALLS_OF_PREFIX = {TokenType.NOT: 11, TokenType.DASH: 2, TokenType.PLUS: 2, TokenType.TILDE: 2}
_CALLS_OF_BRACKET = 23


def _outer_joins(tokens: Sequence[Token]) -> int:
    counts, most = [0], 0
    for token, after in pairwise(tokens):
        kind, follows = token.token_type, after.token_type
        if kind == TokenType.L_PAREN:
            counts.append(0)
        elif kind == TokenType.R_PAREN:
            counts = counts[:-1] or [0]
        elif kind == TokenType.SELECT:
            counts[-1] = 0
        elif kind in _OUTER and follows in (TokenType.JOIN, TokenType.OUTER):
            counts[-1] += 1
            most = max(most, counts[-1])
    return most


_OUTER = {TokenType.LEFT, TokenType.RIGHT, TokenType.FULL}


def _frames(tokens: Sequence[Token]) -> tuple[int, int, int]:
    """About how many calls the parser stacks where most stands one in the other, how many levels these are, and at
    which token.
    """
    opened, prefixes, found = [0], 0, (0, 0, 0)
    for at, token in enumerate(tokens):
        kind = token.token_type
        prefixes += _CALLS_OF_PREFIX.get(kind, 0)
        if kind in _OPEN:
            opened.append(opened[-1] + prefixes + _CALLS_OF_BRACKET)
            prefixes = 0
        elif kind in _CLOSE:
            opened = opened[:-1] or [0]
        found = max(found, (opened[-1] + prefixes, len(opened) - 1, at), key=lambda one: one[0])
        if kind not in _CALLS_OF_PREFIX:
            prefixes = 0
    return found


@contextmanager
def not_too_deep(text: str) -> Iterator[None]:
    """Raise LanguageError where Python's limit of calls is reached for what is made of a text."""
    try:
        yield
    except RecursionError:
        depths = [*accumulate((character == "(") - (character == ")") for character in text)]
        raise too_deep(text, depths.index(max(depths)), max(depths)) from None


class _Finder:
    """Goes through the sources of a query; what stands in brackets there, or in WITH, is a query of its own."""

    def __init__(self, text: str, common: Mapping[str, exp.Expr] | None = None) -> None:
        self.text, self.common = text, dict(common or {})
        self.queries: dict[str, Statement] = {}
        self.unions: dict[str, tuple[str, ...]] = {}

    def parts(self, tree: exp.Expr) -> Parts:
        whole = self._rewritten(tree.copy())
        for table in clause.expressions if (clause := whole.args.get("with_")) is not None else ():
            if isinstance(table.this, exp.Query):
                table.set("this", self._inner(table.this, table.alias))
                self.common[table.alias] = table.this
        for select in operands(whole)[0]:
            self._sources(select)
        operation = selects_of(self.text, whole)
        if operation is None:
            return Parts(whole, self.queries, self.unions)
        names = tuple(self._part(whole.key, select) for select in operation)
        name = stream_of(whole, _digest(" ".join(names)))
        self.unions[name] = names
        return Parts(standing_at(over(whole, name), operands(whole)[0][0]), self.queries, self.unions)

    def _rewritten(self, tree: exp.Expr) -> exp.Expr:
        if not isinstance(tree, exp.Select):
            return tree
        return with_alternatives_apart(with_latest_rows(self.text, with_groups_apart(self.text, tree)))

    def _sources(self, select: exp.Expr) -> None:
        """Put what is left in the place of the queries that stand in FROM, where those are parts."""
        joins = select.args.get("joins") or []
        for source in [select.args.get("from_"), *joins]:
            below = None if source is None else source.this
            if isinstance(below, exp.Subquery) and isinstance(below.this, exp.Query):
                below.set("this", self._inner(below.this, below.alias or "part"))
        where = select.args.get("where")
        for asked in where.find_all(exp.Exists, exp.In) if where is not None else ():
            inner = asked.this if isinstance(asked, exp.Exists) else asked.args.get("query")
            if inner is not None and isinstance(inner.unnest(), exp.Select):
                self._sources(inner.unnest())

    def _inner(self, tree: exp.Expr, name: str) -> exp.Expr:
        inner = _Finder(self.text, self.common).parts(tree)
        new, whole = inner.whole, inner.whole
        if isinstance(tree, exp.SetOperation) and _needs_own(new):
            whole = tree  # Its SELECTs are its own parts.
        else:
            self.queries |= inner.queries
            self.unions |= inner.unions
        if _ranks(new) or not (_needs_own(new) or self._takes_ranked(new)):
            return new
        table = exp.Table(this=exp.to_identifier(self._part(name, whole), quoted=True))
        left = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table))
        return standing_at(left, whole)

    def _takes_ranked(self, tree: exp.Expr) -> bool:
        """Return whether a SELECT takes rows of one below it, in brackets or in WITH, that numbers them."""
        ranking = {name.lower() for name, inner in self.common.items() if _ranks(inner)}
        return tree.find(exp.Window) is not None or any(one.name.lower() in ranking for one in tree.find_all(exp.Table))

    def _part(self, name: str, tree: exp.Expr) -> str:
        """Return the name of a part, which has what WITH says before it, as far as it names it; equal parts are one."""
        tree = tree.copy()
        if {one.name.lower() for one in tree.find_all(exp.Table)} & {one.lower() for one in self.common}:
            tables = [
                exp.CTE(this=inner.copy(), alias=exp.TableAlias(this=exp.to_identifier(called, quoted=True)))
                for called, inner in self.common.items()
            ]
            tree.set("with_", exp.With(expressions=tables))
        part = Statement(self.text, tree, is_part=True)
        known = next((one for one, other in self.queries.items() if other.sql == part.sql), None)
        found = known or part.name(name)
        self.queries.setdefault(found, part)
        return found


def _ranks(tree: exp.Expr) -> bool:
    """Return whether a SELECT in brackets numbers rows, of which the one around it takes the first."""
    windows = [window for item in tree.expressions for window in item.find_all(exp.Window)]
    return tree.args.get("qualify") is None and any(map(is_rank, windows))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _needs_own(tree: exp.Expr) -> bool:
    """Return whether a SELECT in brackets is more than columns and a condition over one source."""
    if any(tree.args.get(key) for key in _OWN_STATE):
        return True
    if any(item.find(exp.Window, *LISTS) for item in tree.expressions):
        return True
    source = tree.args.get("from_")
    if source is not None and (source.this.args.get("window") or source.this.args.get("windowed")):
        return True
    items = (item.unalias() for item in tree.expressions)
    timed = any(isinstance(one, exp.Column) and one.name.lower() == TIME_COLUMN for one in items)
    return timed or any(item.alias.lower() == TIME_COLUMN for item in tree.expressions)


_OWN_STATE = (
    "joins",
    "group",
    "having",
    "qualify",
    "every",
    "distinct",
    "window",
    "subtrahends",
    "laterals",
    "relation",
)
