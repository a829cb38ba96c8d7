"""What is asked of the rank of a row in its group: which rank, and up to which number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from midstream.sql.anded import anded

RANKS: dict[type[exp.Expr], str] = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}


@dataclass(frozen=True)
class RankAsked:
    """A rank, `count`, the greatest number of it that is asked for, and what else the condition says."""

    window: exp.Window
    count: int
    others: tuple[exp.Expr, ...]


def is_rank(node: exp.Expr | None) -> bool:
    """Whether an expression is the number of a row in its group: ROW_NUMBER, RANK or DENSE_RANK."""
    return isinstance(node, exp.Window) and type(node.this) in RANKS


def is_over(tree: exp.Select) -> bool:
    """Whether a SELECT computes over the rows near to each, as SUM(v) OVER (...) does, and ranks none."""
    parts = [*tree.expressions, *([tree.args["qualify"]] if tree.args.get("qualify") is not None else [])]
    windows = [node for part in parts for node in part.find_all(exp.Window)]
    return bool(windows) and not any(map(is_rank, windows))


def rank_asked(condition: exp.Expr, titles: Mapping[str, exp.Expr]) -> RankAsked | None:
    """What a condition asks of one rank; None where it asks of none, of several, or sets no bound above it.

    `titles` are the items of the select list by their names, by which it may call the rank.

    >>> import sqlglot
    >>> said = sqlglot.parse_one("3 >= ROW_NUMBER() OVER (ORDER BY k) AND v > 2")
    >>> asked = rank_asked(said, {})
    >>> asked.count, [one.sql() for one in asked.others]
    (3, ['v > 2'])
    """

    def written_out(node: exp.Expr) -> exp.Expr:
        named = titles.get(node.name) if isinstance(node, exp.Column) and not node.table else None
        return named.copy() if named is not None and is_rank(named) else node

    parts = list(anded(condition.transform(written_out)))
    windows = [node for part in parts for node in part.find_all(exp.Window)]
    bounds = [bound for part in parts if (bound := _bound(part)) is not None]
    if not bounds or not is_rank(windows[0]) or any(window != windows[0] for window in windows):
        return None
    count = min(bounds)
    others = tuple(part for part in parts if not _implied(part, count))
    return RankAsked(windows[0], count, others)


def _bound(part: exp.Expr) -> int | None:
    """The greatest rank for which a condition may hold; None where it is not about a rank, or has no such bound."""
    if isinstance(part, exp.Between) and is_rank(part.this):
        return _number(part.args["high"])
    if isinstance(part, exp.In) and is_rank(part.this) and part.expressions:
        numbers = [_number(one) for one in part.expressions]
        return None if None in numbers else max(number for number in numbers if number is not None)
    kind, left, right = type(part), part.this, part.args.get("expression")
    if isinstance(right, exp.Window):
        kind, left, right = _TURNED.get(kind, exp.NEQ), right, left
    if kind not in (exp.LTE, exp.LT, exp.EQ) or not is_rank(left):
        return None
    number = _number(right)
    return number - 1 if number is not None and kind is exp.LT else number


def _implied(part: exp.Expr, count: int) -> bool:
    """Whether a condition holds of all ranks up to a number."""
    if _bound(part) != count:
        return False
    if isinstance(part, exp.Between):
        return _number(part.args["low"]) in (0, 1)
    return not isinstance(part, exp.In | exp.EQ) or count == 1


def _number(node: exp.Expr | None) -> int | None:
    return int(node.name) if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() else None
