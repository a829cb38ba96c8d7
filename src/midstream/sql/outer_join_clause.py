"""LEFT, RIGHT and FULL JOIN, SEMI and ANTI JOIN: what is answered of rows by whether they are matched.

What such a join adds stands next to an inner join, which the plan runs like any other: so conditions of ON must not
keep rows out that are answered all the same, and conditions of WHERE that see padded results are none of the join's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from midstream.expr.coerce import literal
from midstream.expr.expression import Call, Column, Expression
from midstream.expr.functions import UNLESS_FALSE, always, call
from midstream.logical.predicates import conjuncts
from midstream.logical.query import OuterJoin, OuterKind, Predicate, Source
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.dialect import CqlText
from midstream.sql.join_order import is_bare, kind_of, stands_in_where
from midstream.sql.place import place_of
from midstream.sql.scope import Scope

_SIDES = {"left": (0,), "right": (1,), "full": (0, 1)}
_KINDS: dict[str, OuterKind] = {"semi": "semi", "anti": "anti"}


def is_outer(join: exp.Expr) -> bool:
    """Whether a join is an outer, semi or anti join."""
    return kind_of(join) != "inner"


def check_outer_joins(found: CqlText, tree: exp.Select, sources: Sequence[Source]) -> None:
    """Raise LanguageError for an outer, semi or anti join that midstream does not support."""
    joins = tree.args.get("joins") or []
    for at, node in enumerate(joins):
        if not is_outer(node):
            continue
        side, kind = node.text("side").upper(), node.text("kind").upper()
        shown = f"{side or kind} JOIN" if kind in ("", "OUTER") else f"{kind} JOIN"

        def refused(message: str, remedy: str, node: exp.Expr = node, shown: str = shown) -> LanguageError:
            return LanguageError(f"{shown} {message}", place=place_of(found.text, node), remedy=remedy)

        if found.subtrahends:
            raise refused("cannot be in a query with EXCEPT ON", "join in a subquery, and subtract from the subquery")
        if found.windowed:
            raise refused(
                "cannot be in a query with TABLE(...)", "write GROUP BY TUMBLE(ts, size) or HOP(ts, slide, size)"
            )
        if any(map(is_bare, joins[:at])) and not stands_in_where(node):
            raise refused(
                "cannot follow a comma",
                "write JOIN ... ON instead of the comma, or move the source before the comma to the end of FROM",
            )
        if node.args.get("on") is None:
            raise refused("needs a condition", "write ON and a condition after the stream")
        for source in sources:
            if source.window is not None and source.window.kind == "rows":
                raise refused(
                    f"cannot have a ROWS window on {source.alias!r}, because the join needs the time after which no "
                    "partner can come",
                    "write [RANGE n unit] instead",
                )
        if kind.lower() in _KINDS and side == "RIGHT":
            raise refused("cannot give the rows of its right stream", "exchange the streams, and write LEFT")


def outer_join_of(
    tree: exp.Select, sources: Sequence[Source], until: tuple[tuple[Column, int], ...] = ()
) -> OuterJoin | None:
    """The outer, semi or anti join of a query over two sources, as yet without a condition; None for other queries.

    `until` is that of the first source, where it is a join's results.
    """
    kinds = [kind_of(join) for join in tree.args.get("joins") or []]
    if not kinds or kinds[-1] == "inner":
        return None
    (kind,) = kinds
    if kind in _KINDS:
        return OuterJoin(_KINDS[kind], (sources[0].alias,), until=until)
    return OuterJoin("outer", tuple(sources[at].alias for at in _SIDES[kind]), until=until)


def scope_above(
    outer: OuterJoin, scope: Scope, sources: Sequence[Source], streams: Mapping[str, StreamSchema]
) -> Scope:
    """What names mean above the join: of a semi or anti join its first source's, and padded columns may be NULL.

    What a subquery in FROM makes of its stream's columns is NULL in a padded row, whatever it is of NULLs.
    """
    if outer.kind_of_join != "outer":
        hidden = sources[1].alias
        above = (one for one in scope.sources if one[0] != hidden and not _is_of(scope, one[0], hidden))
        return replace(scope, sources=tuple(above))
    times = {s.alias: _time(s, streams[s.stream]) for s in sources if outer.preserved != (s.alias,)}
    views = {
        (alias, name): call("case", call("is_null", times[alias]), literal(None), shown)
        if alias in times and not isinstance(shown, Column)
        else shown
        for (alias, name), shown in scope.views.items()
    }
    return replace(scope, views=views)


def placed(
    outer: OuterJoin,
    on: Sequence[Expression],
    where: Sequence[Expression],
    sources: Sequence[Source],
    streams: Mapping[str, StreamSchema],
) -> tuple[list[Expression], list[Expression], OuterJoin]:
    """The conditions of ON and of WHERE that are those of the inner join below, and the outer join with the others.

    A condition of ON on a preserved source alone decides which rows join, not which are answered: it is made one
    between the sources. A condition of WHERE on a source that is never padded holds before as it does after.
    """
    times = {s.alias: _time(s, streams[s.stream]) for s in sources}
    joined: list[Expression] = []
    for condition in _each(on):
        read = condition.aliases()
        filters = read and not read & set(outer.preserved)
        joined.append(condition if len(read) > 1 or filters else _tied(condition, times))
    if outer.kind_of_join != "outer":
        return joined, list(where), outer
    never_padded = frozenset(outer.preserved if len(outer.preserved) == 1 else ())
    below: list[Expression] = []
    above: Expression | None = None
    for condition in _each(where):
        if condition.aliases() and condition.aliases() <= never_padded:
            below.append(condition)
        else:
            above = condition if above is None else call("and", above, condition)
    return joined, below, replace(outer, condition=above)


def check_evaluable(found: CqlText, tree: exp.Select, predicates: Sequence[Predicate]) -> None:
    """Refuse conditions that it may be impossible to evaluate for a pair: nobody knew whether its rows are matched."""
    doubtful = [p for p in predicates if isinstance(p.expression, Call) and p.expression.function == UNLESS_FALSE]
    if doubtful:
        raise LanguageError(
            "a condition of an outer, semi or anti join cannot be evaluated for every pair of rows",
            place=place_of(found.text, next(join for join in tree.args["joins"] if is_outer(join))),
            remedy="write TRY_CAST instead of CAST, and use NULLIF(x, 0) to the right of // and %",
        )


def _each(conditions: Sequence[Expression]) -> list[Expression]:
    return [part for condition in conditions for part in conjuncts(condition) if not always(part)]


def _tied(condition: Expression, times: Mapping[str, Column]) -> Expression:
    """Return the condition as one that reads every source; event times are never NULL."""
    for alias, time in times.items():
        if alias not in condition.aliases():
            condition = call("case", call("is_null", time), literal(False), condition)
    return condition


def _is_of(scope: Scope, alias: str, stream: str) -> bool:
    """Return whether a source is a static table whose columns are those of a stream that is enriched from it."""
    columns = [shown for (other, _), shown in scope.views.items() if other == alias]
    return bool(columns) and all(isinstance(one, Column) and one.alias == stream for one in columns)


def _time(source: Source, stream: StreamSchema) -> Column:
    return Column(stream.columns.field(stream.timestamp).type, source.alias, stream.timestamp)
