"""FROM and EXCEPT ON: streams, aliases, windows, the conditions of inner joins, and what is subtracted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from midstream.expr.expression import Expression
from midstream.expr.functions import call
from midstream.logical.query import Difference, Predicate, Source
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.model.words import suggest
from midstream.sql.dialect import WINDOW_REMEDY, CqlText, WindowClause
from midstream.sql.latest_rows import ASOF_SHAPE
from midstream.sql.place import error_at, offset_of, place, place_of
from midstream.sql.scope import Scope, find_name
from midstream.sql.subqueries import Selected, common_tables, selected

_JOINS = ("INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI")

UNNAMED = "subquery"
"""What a subquery is called that the user gives no name."""

NO_WINDOW = (
    f"{WINDOW_REMEDY}, after the stream; or WINDOW n unit at the end of the query for all streams; or, in a join, say "
    "how far its timestamp may be from the others': A.ts BETWEEN B.ts - INTERVAL 1 HOUR AND B.ts"
)


@dataclass(frozen=True)
class FromClause:
    """The sources of a query, subtrahends of EXCEPT last, the ON conditions of its joins, each with the place of the
    source that it stands behind, where each source stands, and by alias the SELECTs of a subquery, the innermost first.
    """

    sources: tuple[Source, ...]
    conditions: tuple[tuple[int, exp.Expr], ...]
    offsets: tuple[int, ...]
    selects: Mapping[str, tuple[exp.Select, ...]]


def sources_of(found: CqlText, tree: exp.Select, streams: Mapping[str, StreamSchema]) -> FromClause:
    """What a query reads; raises LanguageError."""
    text = found.text
    tables: list[exp.Expr] = [tree.args["from_"].this]
    conditions: list[tuple[int, exp.Expr]] = []
    for join in tree.args.get("joins") or []:
        _check_join(text, join)
        tables.append(join.this)
        if join.args.get("on") is not None:
            conditions.append((len(tables) - 1, join.args["on"]))
    common = common_tables(text, tree)
    unwrapped = [selected(text, table, common) for table in tables]
    named = [_table(text, table, one) for table, one in zip(tables, unwrapped, strict=True)]
    items = [_Item(*one, table.args.get("window")) for one, table in zip(named, tables, strict=True)]
    items += [_Item(one.stream, one.alias, one.offset, one.window) for one in found.subtrahends]
    sources = _resolved(found, items, streams)
    selects = {alias: one.selects for (_, alias, _), one in zip(named, unwrapped, strict=True) if one.selects}
    for source in sources:
        if selects.get(source.alias) and source.window is not None and source.window.kind == "rows":
            raise error_at(text, tree, f"the subquery {source.alias!r} cannot have a ROWS window", "use RANGE")
    return FromClause(tuple(sources), tuple(conditions), tuple(item.offset for item in items), selects)


class _Item(NamedTuple):
    """A stream as FROM or EXCEPT names it, with its alias, where that stands, and a window of its own."""

    stream: str
    alias: str
    offset: int
    window: WindowClause | None


def _resolved(found: CqlText, items: Sequence[_Item], streams: Mapping[str, StreamSchema]) -> list[Source]:
    sources: list[Source] = []
    for item in items:
        known, spot = find_name(item.stream, streams), place(found.text, item.offset)
        if len(known) != 1:
            remedy = suggest(item.stream, streams) if streams else "create the stream first"
            raise LanguageError(f"unknown stream {item.stream!r}", place=spot, remedy=remedy)
        if find_name(item.alias, (source.alias for source in sources)):
            message = f"two sources are called {item.alias!r}"
            raise LanguageError(message, place=spot, remedy="give each stream an alias of its own")
        window = item.window or found.window
        sources.append(Source(item.alias, known[0], None if window is None else window.window))
    return sources


def check_rows_windows(
    found: CqlText, tree: exp.Select, sources: tuple[Source, ...], streams: Mapping[str, StreamSchema]
) -> None:
    """Refuse ROWS windows where answers of a query are read: these come in no order of arrival."""
    answered = next((source for source in sources if streams[source.stream].answers_of), None)
    if answered is not None and any(source.window and source.window.kind == "rows" for source in sources):
        raise LanguageError(
            f"a query that reads the answers of query {answered.stream!r} cannot have a ROWS window, because "
            "answers have no order of arrival",
            place=place_of(found.text, tree),
            remedy="use RANGE",
        )


def check_windows(found: CqlText, sources: tuple[Source, ...], offsets: tuple[int, ...]) -> None:
    """Refuse a join, an aggregate or a difference over a stream without a window: its state would grow forever."""
    if len(sources) > 1 or found.every is not None:
        for source, offset in zip(sources, offsets, strict=True):
            if source.window is None:
                raise LanguageError(
                    f"stream {source.alias!r} has no window", place=place(found.text, offset), remedy=NO_WINDOW
                )


def _check_join(text: str, join: exp.Expr) -> None:
    words = [str(join.args.get(key) or "") for key in ("method", "side", "kind")]
    extra = [word.upper() for word in words if word and word.upper() not in _JOINS]
    if "ASOF" in extra or join.this.args.get("version"):
        raise LanguageError(
            f"an as-of join of {join.this.alias_or_name!r} needs a window",
            place=place_of(text, join.this),
            remedy=f"{ASOF_SHAPE}; or write WINDOW n unit at the end",
        )
    if extra:
        raise LanguageError(
            f"{' '.join(extra)} JOIN is not part of the language",
            place=place_of(text, join),
            remedy="write JOIN stream ON condition, or a LEFT, RIGHT, FULL, SEMI or ANTI JOIN; or write "
            "commas and WHERE",
        )


def _table(text: str, given: exp.Expr, unwrapped: Selected) -> tuple[str, str, int]:
    if unwrapped.selects:
        stream, _, _ = _table(text, unwrapped.table, Selected(unwrapped.table, ()))
        return stream, given.alias_or_name or UNNAMED, offset_of(given) or 0
    node = given
    extras = [k for k, v in node.args.items() if v and k not in ("this", "alias", "window", "windowed")]
    alias = node.args.get("alias")
    simple = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not extras
    if not simple or (alias is not None and alias.args.get("columns")):
        what = "a subquery" if isinstance(node, exp.Subquery) else f"{node.sql('duckdb')[:60]!r}"
        raise LanguageError(
            f"{what} cannot be in FROM", place=place_of(text, node), remedy="name streams, with or without an alias"
        )
    return node.name, node.alias or node.name, offset_of(node.this) or 0


def difference_of(found: CqlText, scope: Scope) -> tuple[list[Expression], Difference | None]:
    """The equalities of a query's EXCEPT clauses, and the difference they make; raises LanguageError."""
    if not found.subtrahends:
        return [], None
    aliases = [alias for alias, _ in scope.sources]
    if len(aliases) != 1 + len(found.subtrahends):
        raise LanguageError(
            "EXCEPT ON subtracts from a single stream, not from a join",
            place=place(found.text, found.subtrahends[0].offset),
            remedy="name one stream in FROM",
        )
    minuend, *others = aliases
    ties: list[Expression] = []
    for clause, other in zip(found.subtrahends, others, strict=True):
        for name, offset in clause.columns:
            try:
                sides = (scope.shown(scope.column(name, alias)) for alias in (minuend, other))
                ties.append(call("eq", *sides))
            except LanguageError as error:
                raise LanguageError(error.message, place=place(found.text, offset), remedy=error.remedy) from error
    return ties, Difference(minuend, tuple(others))


def event_times(sources: Sequence[Source], streams: Mapping[str, StreamSchema]) -> dict[str, str]:
    """By alias the event time of each source that has a window of time; '' for the others."""
    ranges = {one.alias for one in sources if one.window is not None and one.window.kind == "range"}
    return {one.alias: streams[one.stream].timestamp if one.alias in ranges else "" for one in sources}


def check_predicates(found: CqlText, predicates: tuple[Predicate, ...], ties: int) -> None:
    """Refuse conditions over several sources that are not EXCEPT ON columns."""
    if found.subtrahends and len(predicates) > ties:
        raise LanguageError(
            "a condition in a query with EXCEPT cannot read several sources",
            place=place(found.text, found.subtrahends[0].offset),
            remedy="connect the streams only by EXCEPT ON (columns); each condition of WHERE may read one stream",
        )
