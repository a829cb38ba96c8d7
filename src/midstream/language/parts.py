"""Queries within a query that need state of their own: subqueries that join or aggregate, and the SELECTs of UNION,
INTERSECT and EXCEPT.

Each becomes a query by itself, a *part*, whose answers the whole reads as a stream. A part is named after what it is
called in the text, and a digest of its own text, so that equal parts of several queries are one.

`FROM (SELECT k, COUNT(*) AS n FROM A ... EVERY 10 SECONDS) AS x` becomes `FROM (SELECT * FROM "x-5f0c81b2") AS x`, with
blanks for what is missing: so errors in the rest of the text still name its places.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.language.alternatives_of_existence import with_alternatives_apart
from midstream.language.expression import TIME_COLUMN
from midstream.language.latest_rows import with_latest_rows
from midstream.language.place import place
from midstream.language.ranked_groups import with_groups_apart
from midstream.language.set_operations import OPERATIONS, SetOperation, set_operation
from midstream.language.tokens import closing, outside_brackets, tokens_of
from midstream.language.traced import Traced
from midstream.model.errors import LanguageError

_CLAUSES = {
    TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.WITH,
    TokenType.QUALIFY, TokenType.ON, TokenType.USING,
}  # fmt: skip
_PERHAPS = re.compile(
    r"\(\s*(select|with)\b|\b(union|intersect|except|over|asof|exists|system_time|distinct\s+on)\b", re.IGNORECASE
)
"""What stands in every text that has parts, and in few others: most texts need no second look."""
_OWN_STATE = {TokenType.JOIN, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, *OPERATIONS}
_KEPT_BLANKS = re.compile(r"""['"`]|--|/\*""")
"""Where these stand, blanks may mean something, and the ends of lines."""
_BEFORE_SOURCE = {TokenType.FROM, TokenType.JOIN, TokenType.COMMA}


@dataclass(frozen=True)
class Parts:
    """A text without its parts, by name the texts of these, each before those that read it, and the names of the parts
    of each UNION, INTERSECT and EXCEPT by that of the stream of all their answers; `together` says whether it is one.
    """

    whole: Traced
    parts: Mapping[str, Traced] = field(default_factory=dict)
    unions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    together: bool = False

    @property
    def text(self) -> str:
        """The text without its parts."""
        return self.whole.text

    @property
    def queries(self) -> Mapping[str, str]:
        """The texts of the parts by name."""
        return {name: part.text for name, part in self.parts.items()}


def check_text(sql: object, *, part: bool = False) -> None:
    """Raise LanguageError unless a query, or a part of one, is given as a text, in which not too much is nested."""
    if not isinstance(sql, str):
        raise LanguageError(f"a {type(sql).__name__} is no query", place="sql", remedy="write it as a text: SELECT ...")
    try:
        tokens = tokens_of(sql)
    except TokenError:
        return  # The parser says what is wrong.
    # Each is a part, which has those below it in brackets: the last of them would be refused after a long time.
    outer = _outer_joins(tokens)
    nested, most, at = _frames(tokens)
    if outer > _MOST_OUTER_JOINS or (nested > _MOST_FRAMES and part):
        raise LanguageError(
            f"{max(outer, most)} outer joins, aggregates, EXISTS or subqueries of the query stand one on the other",
            place="FROM and WHERE",
            remedy="let a query join some of the streams, and read its answers",
        )
    if nested > _MOST_FRAMES:
        raise too_deep(sql, tokens[at].start, most)


def too_deep(text: str, at: int, levels: int) -> LanguageError:
    """The error of a text in which too much stands one in the other, as it does at a position."""
    return LanguageError(
        f"the query is nested too deeply: {levels} brackets and CASEs stand one in the other",
        place=place(text, at),
        remedy="write a CASE with several WHENs for IFs in IFs, or let a query compute a part, and read its answers",
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
    """The most outer joins that one FROM has."""
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


@lru_cache(maxsize=1 << 10)
def parts_of(text: str) -> Parts:
    """The parts of a query's text; none where all of it runs as one. Raises LanguageError for UNION
    beside UNION ALL and the like.

    >>> found = parts_of("SELECT n FROM (SELECT COUNT(*) AS n FROM A [NOW] EVERY 5 SECONDS) AS x")
    >>> " ".join(found.text.split()), list(found.queries.values())
    ('SELECT n FROM (SELECT * FROM "x-05fb540f" ) AS x', ['SELECT COUNT(*) AS n FROM A [NOW] EVERY 5 SECONDS'])
    """
    written = Traced.of(text)
    if not _PERHAPS.search(text):
        return Parts(written)
    try:
        return _Finder(written).run()
    except TokenError:
        return Parts(written)  # Whoever reads it says what is wrong.


@contextmanager
def not_too_deep(text: str) -> Iterator[None]:
    """Raise LanguageError where Python's limit of calls is reached for what is made of a text."""
    try:
        yield
    except RecursionError:
        depths = [*accumulate((character == "(") - (character == ")") for character in text)]
        raise too_deep(text, depths.index(max(depths)), max(depths)) from None


@contextmanager
def errors_placed(text: str, part: str = "") -> Iterator[None]:
    """A LanguageError for a place in a text without its parts, or in one of these, is told with that in the text."""
    try:
        with not_too_deep(text):
            yield
    except LanguageError as error:
        found = parts_of(text)
        with (found.parts[part] if part else found.whole).errors_placed():
            raise error


class _Finder:
    """Goes through the words of a text once; what stands in brackets is a text of its own."""

    def __init__(self, text: Traced, common: tuple[tuple[str, Traced], ...] = ()) -> None:
        self.text = with_alternatives_apart(with_latest_rows(with_groups_apart(text)))
        self.tokens = tokens_of(self.text.text)
        self.common = list(common)
        self.queries: dict[str, Traced] = {}
        self.unions: dict[str, tuple[str, ...]] = {}
        self.replaced: list[tuple[int, int, Traced]] = []

    def run(self) -> Parts:
        rest = self._without_brackets()
        if (operation := set_operation(rest)) is not None:
            rest = self._together(rest, operation)
        return Parts(rest, self.queries, self.unions, operation is not None)

    def _without_brackets(self) -> Traced:
        """The text, in which what its brackets hold is replaced where that is a part."""
        clause, at = None, 0
        while at < len(self.tokens):
            token = self.tokens[at]
            clause = _clause(token.token_type, clause)
            if token.token_type == TokenType.L_PAREN:
                end = closing(self.tokens, at)
                if self._holds_select(at):
                    self._bracket(at, end, clause)
                at = end
            at += 1
        text = self.text
        for begin, end, new in reversed(self.replaced):
            text = text.joined([text[:begin], new, text[begin + len(new) : end].blank(), text[end:]])
        return text

    def _bracket(self, at: int, end: int, clause: TokenType | None) -> None:
        before = self.tokens[at - 1] if at else None
        named = clause == TokenType.WITH and before is not None and before.token_type == TokenType.ALIAS
        source = clause == TokenType.FROM and before is not None and before.token_type in _BEFORE_SOURCE
        if not named and not source:
            return  # What IN and EXISTS ask is joined, and a scalar subquery is refused.
        begin, stop = self.tokens[at].end + 1, self.tokens[end].start
        name = self.tokens[at - 2].text if named else self._alias(end)
        inner = _Finder(self.text[begin:stop], tuple(self.common)).run()
        new, whole = inner.whole, inner.whole
        if inner.together and _needs_own(new.text):
            whole = self.text[begin:stop]  # Its SELECTs are its own parts.
        else:
            self.queries |= inner.parts
            self.unions |= inner.unions
        if not _ranks(new.text) and (_needs_own(new.text) or self._takes_ranked(new.text)):
            part = self._part(name, self._with_common(whole))
            new = self.text.new(f'SELECT * FROM "{part}"', begin)
        if new.text != self.text[begin:stop].text:
            self.replaced.append((begin, stop, new))
        if named:
            self.common.append((name, new))

    def _takes_ranked(self, text: str) -> bool:
        """Whether a SELECT takes rows of one below it, in brackets or in WITH, that numbers them."""
        ranking = {name.lower() for name, inner in self.common if _ranks(inner.text)}
        return any(token.token_type == TokenType.OVER or token.text.lower() in ranking for token in tokens_of(text))

    def _part(self, name: str, text: Traced) -> str:
        """The name of a part with this text; where the text stands in two places, they are one part."""
        known = next((one for one, other in self.queries.items() if other.text == text.text), None)
        if known is not None:
            return known
        found = f"{name.lower()}-{_digest(text.text)}"
        self.queries[found] = text
        return found

    def _with_common(self, text: Traced) -> Traced:
        """A text that has what WITH says before it, as far as it names it."""
        words = {token.text.lower() for token in tokens_of(text.text)}
        plain = text.stripped() if _KEPT_BLANKS.search(text.text) else text.squeezed()
        if not any(name.lower() in words for name, _ in self.common):
            return plain
        named = [piece for name, inner in self.common for piece in (", ", f'"{name}" AS (', inner, ")")]
        return text.joined(["WITH ", *named[1:], " ", plain])

    def _alias(self, end: int) -> str:
        for token in self.tokens[end + 1 : end + 3]:
            if token.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
                return token.text
        return "part"

    def _holds_select(self, at: int) -> bool:
        follower = self.tokens[at + 1] if at + 1 < len(self.tokens) else None
        return follower is not None and follower.token_type in (TokenType.SELECT, TokenType.WITH)

    def _together(self, rest: Traced, operation: SetOperation) -> Traced:
        """The text over the stream of the answers of all SELECTs."""
        names = tuple(self._part(operation.name, self._with_common(select)) for select in operation.selects)
        name = operation.stream(_digest(" ".join(names)))
        self.unions[name] = names
        new = rest.new(operation.over(name))
        return rest.joined([new, rest[len(new) :].blank()])


def _ranks(text: str) -> bool:
    """Whether a SELECT in brackets numbers rows, of which the one around it takes the first."""
    kinds = {token.token_type for token, _ in outside_brackets(tokens_of(text))}
    return TokenType.OVER in kinds and TokenType.QUALIFY not in kinds


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _needs_own(text: str) -> bool:
    """Whether a SELECT in brackets is more than columns and a condition over one source."""
    clause = None
    for token, follower in outside_brackets(tokens_of(text)):
        kind, word = token.token_type, token.text.upper()
        clause = _clause(kind, clause)
        if kind in _OWN_STATE or (kind == TokenType.COMMA and clause == TokenType.FROM):
            return True
        if word in ("EVERY", "DISTINCT", TIME_COLUMN.upper()) and clause != TokenType.WHERE:
            return True
        if kind == TokenType.L_BRACKET and follower is not None and follower.text.upper() in ("RANGE", "ROWS", "NOW"):
            return True
    return False


def _clause(kind: TokenType, before: TokenType | None) -> TokenType | None:
    """The clause that a token stands in: after ON, JOIN leads back to FROM."""
    if kind == TokenType.JOIN:
        return TokenType.FROM
    return kind if kind in _CLAUSES else before
