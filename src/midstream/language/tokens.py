"""The words of a query's text, and which of them stand in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest

import sqlglot
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.language.place import place
from midstream.model.errors import LanguageError

DIALECT = "duckdb"
"""The SQL that midstream speaks: also what its oracle speaks."""

_QUOTED = re.compile(r"""'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|`([^`"]*)`""", re.DOTALL)
"""What quotes mean nothing in, and names in backticks."""

_HALF = re.compile("[\\ud800-\\udfff]")


def with_double_quotes(text: str) -> str:
    """A text with names in double quotes, every character where it was, that Spark's users write in backticks.

    >>> print(with_double_quotes("SELECT `a b` FROM A WHERE s = '`'"))
    SELECT "a b" FROM A WHERE s = '`'
    """
    return _QUOTED.sub(lambda found: f'"{found[1]}"' if found[1] else found[0], text)


@lru_cache(maxsize=256)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of a text; raises sqlglot's TokenError where a quote or a comment does not end, and LanguageError for
    halves of characters, which no file can hold.
    """
    if (half := _HALF.search(text)) is not None:
        remedy = "write the whole character; text that was decoded with surrogateescape has such halves"
        raise LanguageError(f"{half[0]!r} is half a character", place=place(text, half.start()), remedy=remedy)
    # Remembered, for whoever looks for parts, clauses and windows asks for the same texts again and again.
    return tuple(sqlglot.tokenize(with_double_quotes(text), read=DIALECT))


def closing(tokens: Sequence[Token], at: int) -> int:
    """Where the bracket closes that opens there; the last token where none does.

    >>> closing(tokens_of("f(a, (b)) + c"), 1)
    7
    """
    depth = 0
    for number in range(at, len(tokens)):
        depth += _opens(tokens[number])
        if not depth:
            return number
    return len(tokens) - 1


def outside_brackets(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token | None]]:
    """The tokens that stand in no brackets, each with the token behind it.

    >>> [token.text for token, _ in outside_brackets(tokens_of("f(a, (b)) + c"))]
    ['f', ')', '+', 'c']
    """
    depth = 0
    for token, follower in zip_longest(tokens, tokens[1:]):
        depth += _opens(token)
        if not depth:
            yield token, follower


def select_list_end(tokens: Sequence[Token]) -> int | None:
    """Where FROM begins, and not that of IS DISTINCT FROM; None where it does not.

    >>> select_list_end(tokens_of("SELECT k IS DISTINCT FROM v FROM A"))
    28
    """
    for before, token in pairwise(tokens):
        if token.token_type == TokenType.FROM and before.token_type != TokenType.DISTINCT:
            return int(token.start)
    return None


def _opens(token: Token) -> int:
    return (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
