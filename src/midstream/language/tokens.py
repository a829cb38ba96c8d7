"""The words of a query's text, and which of them stand in brackets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, zip_longest

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.language.dialect import Midstream, tokenize

DIALECT = Midstream
"""The SQL that midstream speaks: also what its oracle speaks."""


@lru_cache(maxsize=256)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of a text; raises as `tokenize` does."""
    # Remembered, for the parts of a text, its clauses and windows are each looked for in the same texts.
    return tuple(tokenize(text))


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
