"""What stands between SELECTs: UNION, INTERSECT and EXCEPT.

The SELECTs become queries of their own, *parts*, and all their answers are one stream: see `midstream.language.parts`.
UNION ALL is that stream, UNION its different rows. For INTERSECT and EXCEPT each answer also has the number of its
SELECT; the rows that are asked for are the groups of equal answers in which the right numbers are. Groups take NULLs
for equal, as these operations do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.language.tokens import outside_brackets, select_list_end, tokens_of
from midstream.language.traced import Traced
from midstream.model.errors import LanguageError

NUMBER = "number of the select"
"""The column of answers that says of which SELECT they are; `*` does not stand for it."""

OPERATIONS = {TokenType.UNION: "union", TokenType.INTERSECT: "intersect", TokenType.EXCEPT: "except"}
_REMEDY = "put those that belong together into a subquery: FROM (SELECT ... {0} SELECT ...) AS x"


@dataclass(frozen=True)
class SetOperation:
    """The `name` of an operation, whether ALL stands behind it, and the texts of its SELECTs."""

    name: str
    all_of_them: bool
    selects: tuple[Traced, ...]

    def stream(self, digest: str) -> str:
        """The name of the stream of all answers."""
        return f"{self.name}-{digest}"

    def over(self, stream: str) -> str:
        """The text of the SELECT that makes of a stream of all answers what the operation gives."""
        if self.name == "union":
            return f'SELECT {"" if self.all_of_them else "DISTINCT "}* FROM "{stream}"'
        present = [f'BOOL_OR("{NUMBER}" = {number})' for number in range(len(self.selects))]
        if self.name == "except":
            present = [present[0], *(f"NOT {one}" for one in present[1:])]
        return f'SELECT DISTINCT * FROM "{stream}" HAVING {" AND ".join(present)}'


def set_operation(text: Traced) -> SetOperation | None:
    """The operation that a text is; None where it is a single SELECT. Raises LanguageError for several kinds of it.

    >>> found = set_operation(Traced.of("SELECT k, ts FROM A INTERSECT SELECT k, ts FROM B"))
    >>> found.selects[1].text
    'SELECT k, ts, 1 AS "number of the select" FROM B'
    >>> print(found.over("x"))
    SELECT DISTINCT * FROM "x" HAVING BOOL_OR("number of the select" = 0) AND BOOL_OR("number of the select" = 1)
    """
    begins, ends, kinds = [0], list[int](), list[tuple[str, bool]]()
    for token, follower in _operators(text.text):
        quantified = follower.token_type in (TokenType.ALL, TokenType.DISTINCT)
        kinds.append((OPERATIONS[token.token_type], follower.token_type == TokenType.ALL))
        if kinds[-1] != kinds[0]:
            first, other = (_words(*kind) for kind in (kinds[0], kinds[-1]))
            raise LanguageError(f"{first} beside {other}", place=text.place(token.start), remedy=_REMEDY.format(first))
        if kinds[-1] in (("intersect", True), ("except", True)):
            words = _words(*kinds[-1])
            remedy = f"leave ALL out; or count equal rows with GROUP BY in subqueries, and {_COUNTED[kinds[-1][0]]}"
            raise LanguageError(f"{words} is not part of the language", place=text.place(token.start), remedy=remedy)
        ends.append(token.start)
        begins.append((follower if quantified else token).end + 1)
    if not kinds:
        return None
    selects = [text[begin:end].stripped() for begin, end in zip(begins, [*ends, len(text)], strict=True)]
    missing = next((number for number, select in enumerate(selects) if not tokens_of(select.text)), None)
    if missing is not None:
        side, spot = ("before", ends[0]) if missing == 0 else ("behind", ends[missing - 1])
        remedy = f"write one {side} it, or leave it out"
        raise LanguageError(f"no SELECT {side} {_words(*kinds[0])}", place=text.place(spot), remedy=remedy)
    if kinds[0][0] != "union":
        selects = [_numbered(select, number) for number, select in enumerate(selects)]
    return SetOperation(*kinds[0], tuple(selects))


def operation_of(stream: str) -> str | None:
    """The name of the operation of whose answers there is a stream of this name; None where it is another stream.

    >>> operation_of("intersect-05fb540f"), operation_of("x-05fb540f")
    ('intersect', None)
    """
    name, _, digest = stream.partition("-")
    return name if digest and name in OPERATIONS.values() else None


_COUNTED = {"intersect": "join these", "except": "LEFT JOIN these"}


def _operators(text: str) -> Iterator[tuple[Token, Token]]:
    """The words between SELECTs, each with the word behind it; EXCEPT ON is between streams."""
    for token, follower in outside_brackets(tokens_of(text)):
        if token.token_type not in OPERATIONS or follower is None:
            continue
        if token.token_type != TokenType.EXCEPT or follower.token_type in _BEGINS_SELECT:
            yield token, follower


_BEGINS_SELECT = {TokenType.SELECT, TokenType.WITH, TokenType.ALL, TokenType.DISTINCT}


def _words(name: str, all_of_them: bool) -> str:
    return f"{name.upper()} ALL" if all_of_them else name.upper()


def _numbered(select: Traced, number: int) -> Traced:
    """The text of a SELECT with its number as the last of what it selects."""
    tokens = [token for token, _ in outside_brackets(tokens_of(select.text))]
    if (at := select_list_end(tokens)) is None:
        return select  # Whoever reads it says what is wrong.
    return select.joined([select[:at].stripped(), f', {number} AS "{NUMBER}" ', select[at:]])
