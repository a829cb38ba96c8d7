"""Queries within a query that need state of their own: subqueries that join or aggregate, and the SELECTs of UNION.

Each becomes a query by itself, a *part*, whose answers the whole reads as a stream. A part is named after what it is
called in the text, and a digest of its own text, so that equal parts of several queries are one.

`FROM (SELECT k, COUNT(*) AS n FROM A ... EVERY 10 SECONDS) AS x` becomes `FROM (SELECT * FROM "x-5f0c81b2") AS x`, with
blanks for what is missing: so errors in the rest of the text still name its places.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from midstream.language.expression import TIME_COLUMN
from midstream.language.place import place
from midstream.language.ranked_groups import with_groups_apart
from midstream.language.tokens import closing, outside_brackets, tokens_of
from midstream.model.errors import LanguageError

_CLAUSES = {
    TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.WITH,
    TokenType.QUALIFY, TokenType.ON, TokenType.USING,
}  # fmt: skip
_PERHAPS = re.compile(r"\(\s*(select|with)\b|\bunion\b|\bover\b", re.IGNORECASE)
"""What stands in every text that has parts, and in few others: most texts need no second look."""
_OWN_STATE = {TokenType.JOIN, TokenType.GROUP_BY, TokenType.HAVING, TokenType.UNION, TokenType.QUALIFY}
_KEPT_BLANKS = re.compile(r"""['"`]|--|/\*""")
"""Where these stand, blanks may mean something, and the ends of lines."""
_BEFORE_SOURCE = {TokenType.FROM, TokenType.JOIN, TokenType.COMMA}


@dataclass(frozen=True)
class Parts:
    """A text without its parts, by name the texts of these, each before those that read it, and the names of the parts
    of each UNION ALL by that of the stream of all their answers.
    """

    text: str
    queries: Mapping[str, str] = field(default_factory=dict)
    unions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@lru_cache(maxsize=1 << 10)
def parts_of(text: str) -> Parts:
    """The parts of a query's text; none where all of it runs as one. Raises LanguageError for UNION beside UNION ALL.

    >>> found = parts_of("SELECT n FROM (SELECT COUNT(*) AS n FROM A [NOW] EVERY 5 SECONDS) AS x")
    >>> " ".join(found.text.split()), list(found.queries.values())
    ('SELECT n FROM (SELECT * FROM "x-05fb540f" ) AS x', ['SELECT COUNT(*) AS n FROM A [NOW] EVERY 5 SECONDS'])
    """
    if not _PERHAPS.search(text):
        return Parts(text)
    try:
        return _Finder(text).run()
    except TokenError:
        return Parts(text)  # Whoever reads it says what is wrong.


class _Finder:
    """Goes through the words of a text once; what stands in brackets is a text of its own."""

    def __init__(self, text: str, common: tuple[tuple[str, str], ...] = ()) -> None:
        self.text = with_groups_apart(text)
        self.tokens = tokens_of(self.text)
        self.common = list(common)
        self.queries: dict[str, str] = {}
        self.unions: dict[str, tuple[str, ...]] = {}
        self.replaced: list[tuple[int, int, str]] = []

    def run(self) -> Parts:
        rest = self._without_brackets()
        selects, all_of_them = self._united(rest)
        if len(selects) > 1:
            rest = self._union(rest, selects, "SELECT *" if all_of_them else "SELECT DISTINCT *")
        return Parts(rest, self.queries, self.unions)

    def _without_brackets(self) -> str:
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
            blanks = "".join(c if c == "\n" else " " for c in text[begin + len(new) : end])
            text = text[:begin] + new + blanks + text[end:]
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
        self.queries |= inner.queries
        self.unions |= inner.unions
        new = inner.text
        if not _ranks(new) and (_needs_own(new) or self._takes_ranked(new)):
            part = self._part(name, self._with_common(new))
            new = f'SELECT * FROM "{part}"'
        if new != self.text[begin:stop]:
            self.replaced.append((begin, stop, new))
        if named:
            self.common.append((name, new))

    def _takes_ranked(self, text: str) -> bool:
        """Whether a SELECT takes rows of one below it, in brackets or in WITH, that numbers them."""
        ranking = {name.lower() for name, inner in self.common if _ranks(inner)}
        return any(token.token_type == TokenType.OVER or token.text.lower() in ranking for token in tokens_of(text))

    def _part(self, name: str, text: str) -> str:
        """The name of a part with this text."""
        found = f"{name.lower()}-{_digest(text)}"
        self.queries[found] = text
        return found

    def _with_common(self, text: str) -> str:
        """A text that has what WITH says before it, as far as it names it."""
        words = {token.text.lower() for token in tokens_of(text)}
        plain = text.strip() if _KEPT_BLANKS.search(text) else " ".join(text.split())
        if not any(name.lower() in words for name, _ in self.common):
            return plain
        named = ", ".join(f'"{name}" AS ({inner})' for name, inner in self.common)
        return f"WITH {named} {plain}"

    def _alias(self, end: int) -> str:
        for token in self.tokens[end + 1 : end + 3]:
            if token.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
                return token.text
        return "part"

    def _holds_select(self, at: int) -> bool:
        follower = self.tokens[at + 1] if at + 1 < len(self.tokens) else None
        return follower is not None and follower.token_type in (TokenType.SELECT, TokenType.WITH)

    def _united(self, rest: str) -> tuple[list[str], bool]:
        """The SELECTs that UNION puts together, and whether with ALL; the text itself where there is none."""
        begins, ends, kinds = [0], list[int](), set[bool]()
        for token, follower in outside_brackets(tokens_of(rest)):
            if token.token_type != TokenType.UNION:
                continue
            whole = follower is not None and follower.token_type == TokenType.ALL
            kinds.add(whole)
            if len(kinds) > 1:
                remedy = "put those that belong together into a subquery: FROM (SELECT ... UNION ALL SELECT ...) AS x"
                raise LanguageError("UNION beside UNION ALL", place=place(rest, token.start), remedy=remedy)
            ends.append(token.start)
            begins.append(follower.end + 1 if whole and follower is not None else token.end + 1)
        return [rest[begin:end].strip() for begin, end in zip(begins, [*ends, len(rest)], strict=True)], True in kinds

    def _union(self, rest: str, selects: list[str], asked: str) -> str:
        names = tuple(self._part("union", self._with_common(select)) for select in selects)
        name = f"union-{_digest(' '.join(names))}"
        self.unions[name] = names
        new = f'{asked} FROM "{name}"'
        return new + "".join(c if c == "\n" else " " for c in rest[len(new) :])


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
