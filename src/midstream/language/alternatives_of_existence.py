"""EXISTS and IN beside OR, written as UNION ALL of SELECTs that each ask one of them.

`WHERE A.v > 3 OR EXISTS (...)` is `WHERE A.v > 3`, and `WHERE NOT (A.v > 3) IS TRUE AND EXISTS (...)`: a row is in one
of the two at most. Each SELECT is a part, in which EXISTS is a semi join.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from midstream.language.tokens import outside_brackets, tokens_of
from midstream.language.traced import Traced

_ENDS_WHERE = {TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.ORDER_BY, TokenType.WINDOW}
_MORE = {
    TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.DISTINCT, TokenType.UNION, TokenType.INTERSECT,
    TokenType.EXCEPT, TokenType.WITH,
}  # fmt: skip


def with_alternatives_apart(text: Traced) -> Traced:
    """Return the text of a SELECT of rows that asks for existence beside OR as a UNION ALL; any other text as it is."""
    tokens = tokens_of(text.text)
    kinds = {token.token_type for token in tokens}
    if not {TokenType.OR, TokenType.WHERE, TokenType.SELECT} <= kinds or not _asks(tokens):
        return text
    outside = [token for token, _ in outside_brackets(tokens)]
    where = next((token for token in outside if token.token_type == TokenType.WHERE), None)
    more = any(token.token_type in _MORE or token.text.upper() == "EVERY" for token in outside)
    if where is None or more:
        return text
    ends = (t.start for t in outside if t.start > where.start and t.token_type in _ENDS_WHERE)
    end = next(ends, len(text))
    body = [token for token in tokens if where.start < token.start < end]
    for rest_before, inner, rest_after in _places(body):
        found = _alternatives(text, inner)
        if found is None:
            continue
        before = text[where.end + 1 : rest_before] if rest_before is not None else None
        after = text[rest_after:end] if rest_after is not None else None
        selects = []
        for condition in found:
            pieces = [" WHERE ", *((before,) if before is not None else ()), condition]
            pieces += [after] if after is not None else []
            selects.append(text.joined([text[: where.start], *pieces, " ", text[end:]]))
        return text.listed(selects, " UNION ALL ")
    return text


def _asks(tokens: Sequence[Token]) -> bool:
    """Whether some words ask for existence: EXISTS, or a SELECT within brackets behind IN."""
    behind = zip(tokens, tokens[1:], tokens[2:], strict=False)
    selects = any(
        one.token_type == TokenType.IN and two.token_type == TokenType.L_PAREN and three.token_type == TokenType.SELECT
        for one, two, three in behind
    )
    return selects or any(token.token_type == TokenType.EXISTS for token in tokens)


Place = tuple[int | None, Sequence[Token], int | None]


def _places(body: Sequence[Token]) -> list[Place]:
    """Where alternatives may stand: all of WHERE, or what stands in brackets beside AND, with what is around them."""
    if any(token.token_type == TokenType.OR for token, _ in outside_brackets(body)):
        return [(None, body, None)]
    found, depth, begin = list[Place](), 0, 0
    for at, token in enumerate(body):
        if token.token_type == TokenType.L_PAREN:
            depth += 1
            begin = at if depth == 1 else begin
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
            starts = not begin or body[begin - 1].token_type == TokenType.AND
            stops = at + 1 == len(body) or body[at + 1].token_type == TokenType.AND
            if not depth and starts and stops:
                found.append((body[begin].start, body[begin + 1 : at], token.end + 1))
    return found


def _alternatives(text: Traced, inner: Sequence[Token]) -> list[Traced] | None:
    """The conditions of which a row satisfies one at most, and one if it satisfies any of those that OR binds together;
    None where no EXISTS is among these, or more than one that may be unknown.
    """
    groups: list[list[Token]] = [[]]
    depth = 0
    for token in inner:
        if not depth and token.token_type == TokenType.OR:
            groups.append([])
            continue
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        groups[-1].append(token)
    if len(groups) < 2 or not all(groups):
        return None
    plain = [group for group in groups if not _asks(group)]
    certain = [group for group in groups if _asks(group) and _is_exists(group)]
    unknown = [group for group in groups if _asks(group) and not _is_exists(group)]
    if len(unknown) > 1 or not certain + unknown:
        return None
    found, before = list[Traced](), list[Traced]()
    if plain:
        either = text.listed([text.joined(["(", _span(text, group), ")"]) for group in plain], " OR ")
        found.append(text.joined(["(", either, ")"]))
        before.append(text.joined(["NOT ((", either, ") IS TRUE)"]))
    for group in (*certain, *unknown):
        asked = _span(text, group)
        found.append(text.listed([*before, text.joined(["(", asked, ")"])], " AND "))
        before.append(text.joined(["NOT (", asked, ")"]))
    return found


def _is_exists(group: Sequence[Token]) -> bool:
    """Whether some words are EXISTS or NOT EXISTS and its subquery, and nothing else."""
    at = 1 if group[0].token_type == TokenType.NOT else 0
    whole = [token.token_type for token, _ in outside_brackets(group)]
    return group[at].token_type == TokenType.EXISTS and whole[at:] == [TokenType.EXISTS, TokenType.R_PAREN]


def _span(text: Traced, group: Sequence[Token]) -> Traced:
    return text[group[0].start : group[-1].end + 1]
