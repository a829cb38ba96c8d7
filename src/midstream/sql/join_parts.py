"""Joins of which others, or aggregates, read the results: each a part, a query of its own.

`A LEFT JOIN B ON ... LEFT JOIN C ON ...` reads in the place of A and B the answers of `SELECT ... FROM A LEFT JOIN B ON
...`, which has its own part in turn where it joins more. Only the last outer, semi or anti join is left, or inner joins
behind it, or an aggregate. A part answers the event times of its rows too, `A._ts`, by which those of the next stream
meet them, as `midstream.logical.join_times` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from midstream.expr.coerce import literal
from midstream.expr.expression import Column, Expression
from midstream.expr.functions import call
from midstream.expr.types import TIMESTAMP, TIMESTAMPTZ
from midstream.logical.join_times import JoinTimes, Meeting, whole
from midstream.logical.query import Query, Source
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.model.window import Window
from midstream.sql.answer_streams import TIME_SHOWN
from midstream.sql.calendar_window import calendar_units
from midstream.sql.dialect import CqlText
from midstream.sql.enrichment import names_read
from midstream.sql.from_clause import FromClause
from midstream.sql.join_order import JoinOrder, blocks_of, joined_sources
from midstream.sql.join_windows import by_answers, is_result_time
from midstream.sql.outer_join_clause import check_outer_joins, is_outer
from midstream.sql.part_tree import PartWriter, WrittenPart, is_part_of
from midstream.sql.parts import Statement
from midstream.sql.place import place
from midstream.sql.rank_limit import is_over
from midstream.sql.scope import NOT_STARRED, Scope, event_time
from midstream.sql.unnested import LISTS
from midstream.sql.window_words import is_window_call


@dataclass(frozen=True)
class JoinPart:
    """A part that joins, and what is left of the query over its answers: FROM, ON and WHERE.

    `apart` are conditions between the times of rows that the text says by windows. `until` is of an `OuterJoin`.
    """

    written: WrittenPart
    tree: exp.Select
    sources: tuple[Source, ...]
    offsets: tuple[int, ...]
    on: tuple[exp.Expr, ...]
    where: tuple[exp.Expr, ...]
    apart: tuple[Expression, ...]
    until: tuple[tuple[Column, int], ...]
    hidden: frozenset[str]
    times: JoinTimes

    @property
    def part(self) -> str:
        """The name of the part."""
        return self.written.name

    @property
    def statement(self) -> Statement:
        """What the part is."""
        return self.written.statement

    def check(self, query: Query) -> None:
        """Raise LanguageError unless the part, parsed, answers what is read of it: it was written out again."""
        answered = [(output.name, _zoneless(output.expression.type)) for output in query.outputs]
        if answered != [(column.name, _zoneless(column.type)) for column in self.written.answers]:
            raise LanguageError(
                f"the join of {', '.join(self.written.aliases)} cannot be written as a query of its own",
                remedy="join in a subquery, and select from that",
            )

    def sources_over(self, streams: Mapping[str, StreamSchema]) -> tuple[Source, ...]:
        """The sources of what is left; raises LanguageError where the part does not run."""
        if self.part not in streams:
            others = (one for name, one in streams.items() if is_part_of(name, one, self.written.alias))
            if (other := next(others, None)) is not None:
                columns = {answer.name for answer in self.written.answers}
                now = columns.symmetric_difference(other.columns.names) - {other.timestamp}
                raise LanguageError(
                    f"nobody joins {', '.join(self.written.aliases)} with these columns, a query that runs has others"
                    + (f": {', '.join(sorted(now))}" if now else ""),
                    remedy="add the query to an engine or a job; if it ran, declare the columns that its streams had",
                )
            remedy = "add the query to an engine or a job, which adds its parts first"
            raise LanguageError(f"nobody joins {', '.join(self.written.aliases)}", remedy=remedy)
        return self.sources

    def scope(self, scope: Scope) -> Scope:
        """What names mean over the answers of the part."""
        inside = {alias for alias, _ in self.written.columns}
        views = {at: shown for at, shown in scope.views.items() if at[0] not in inside}
        sources = scope.sources
        if len(self.sources) == 1:  # A window to group by may be of the time of the answers.
            shown = pa.schema([pa.field(TIME_SHOWN, scope.moment, metadata=NOT_STARRED)])
            sources = (*sources, (self.written.alias, shown))
        hidden = {alias for alias in self.hidden if alias not in {source.alias for source in self.sources}}
        return replace(
            scope,
            sources=tuple(one for one in sources if one[0] not in hidden),
            views={**views, **self.written.columns},
        )


def may_join(tree: exp.Expr) -> bool:
    """Whether joins of a query, or some of them, may be a part."""
    joins = [*tree.find_all(exp.Join)]
    if any(join.args.get("side") or join.args.get("kind") for join in joins) or tree.find(*LISTS):
        return True
    asks = any(isinstance(node, exp.Exists) or node.args.get("query") for node in tree.find_all(exp.Exists, exp.In))
    computes = any(map(is_window_call, tree.find_all(exp.Anonymous))) or tree.find(
        exp.TimestampTrunc, exp.DateTrunc, exp.Window
    )
    return asks or (bool(joins) and bool(computes))


def join_part_of(
    found: CqlText,
    tree: exp.Select,
    source: FromClause,
    where: Sequence[exp.Expr],
    scope: Scope,
    streams: Mapping[str, StreamSchema],
    enriched: Mapping[str, str],
) -> JoinPart | None:
    """The part that the joins of a query, or some of them, are; None where all of it runs as one.

    `enriched` has by alias the names of parts that answer a stream together with static tables. Raises LanguageError
    for joins that are not carried.
    """
    joins = tree.args.get("joins") or []
    if not joins:
        return None
    sources = source.sources[: len(joins) + 1]
    check_outer_joins(found, tree, sources)
    grouped = tree.args.get("group")
    windowed = grouped is not None and any(map(is_window_call, grouped.expressions))
    windowed = windowed or (found.every is None and bool(calendar_units(tree)))
    aggregates = windowed or found.every is not None or grouped is not None or tree.args.get("having") is not None
    outer = any(map(is_outer, joins))
    blocks = blocks_of(joined_sources(tree, sources, source.offsets, source.conditions))
    over = is_over(tree)
    aggregates = aggregates or over
    if found.windowed or not (windowed or over or (outer and (aggregates or len(sources) > 2))):
        return None
    order = JoinOrder(found, blocks, scope, streams).with_where(where)
    order.check_evaluable()
    if not aggregates:
        last = order.blocks[-1]
        conditions = [*(node for one in last.joined for node in one.on), *last.where]
        return below_last_join(order, PartWriter(order, tree, _names_read(tree, conditions), enriched), tree)
    if found.every is not None and found.window is None:
        raise LanguageError(
            "an aggregate over an outer, semi or anti join without WINDOW is not possible",
            place=place(found.text, found.every[1]),
            remedy="write WINDOW n unit before EVERY: how old answers of the join may be at an instant",
        )
    tree, timed = by_answers(found, tree, order)
    window = None if windowed or found.window is None else found.window.window
    return below_aggregate(order, PartWriter(order, tree, _names_read(tree, ()), enriched), tree, window, timed)


def _names_read(tree: exp.Select, conditions: Sequence[exp.Expr]) -> frozenset[str] | None:
    """The names of columns that what is made of a join's results may read; None for all."""
    clauses = [part for key, part in tree.args.items() if key not in ("from_", "joins", "where", "with_")]
    nodes = [one for part in clauses for one in (part if isinstance(part, list) else [part])]
    found = names_read([*nodes, *conditions])
    return None if found is None else frozenset(found)


def below_last_join(order: JoinOrder, writer: PartWriter, tree: exp.Select) -> JoinPart:
    """The part of all that is joined before the last block, and what is left."""
    last, meeting = order.blocks[-1], order.meetings[-1]
    written = writer.write(len(order.blocks) - 1)
    left = tree.copy()
    left.args["from_"].set("this", exp.Table(this=exp.to_identifier(written.alias, quoted=True)))
    left.set("joins", [one.join.copy() for one in last.joined if one.join is not None])
    sizes = [meeting.window_before, *(meeting.window(source.alias) for source in last.sources)]
    sources = (Source(written.alias, written.name, None), *last.sources)
    until = tuple((written.time(alias), whole(meeting.age(alias))) for alias in meeting.before.present)
    return JoinPart(
        written,
        left,
        tuple(replace(s, window=Window("range", whole(size))) for s, size in zip(sources, sizes, strict=True)),
        (0, *(one.offset for one in last.joined)),
        tuple(node for one in last.joined for node in one.on),
        last.where,
        tuple(_apart(meeting, written)),
        until if last.kind in ("left", "full", "anti") else (),
        _hidden(order),
        meeting.times(),
    )


def below_aggregate(
    order: JoinOrder, writer: PartWriter, tree: exp.Select, window: Window | None, timed: str | None
) -> JoinPart:
    """The part of a whole join, over the answers of which the query aggregates: in a window, or by a window to group
    by. Their time is that of the rows of the source `timed`, if any.
    """
    written = writer.write(len(order.blocks), timed)
    left = _units_of(tree, written.alias)
    left.args["from_"].set("this", exp.Table(this=exp.to_identifier(written.alias, quoted=True)))
    left.set("joins", [])
    source = Source(written.alias, written.name, window)
    return JoinPart(written, left, (source,), (0,), (), (), (), (), _hidden(order), order.times)


def _units_of(tree: exp.Select, alias: str) -> exp.Select:
    """Return a copy of a query in which DATE_TRUNC of `_ts`, where it groups, is of the time that answers have."""
    units = calendar_units(tree)
    if any(is_window_call(node) for clause in (tree.args.get("group"),) if clause for node in clause.expressions):
        units = []

    def shown(node: exp.Expr) -> exp.Expr:
        return exp.column(TIME_SHOWN, alias, quoted=True) if is_result_time(node) else node

    found = tree.copy()
    for node in [node for node in found.find_all(exp.TimestampTrunc, exp.DateTrunc) if node in units]:
        node.replace(node.transform(shown))
    return found


def _zoneless(type: pa.DataType) -> pa.DataType:
    """The type, without the zone that a stream's time has, and that of answers has not."""
    return TIMESTAMP if type == TIMESTAMPTZ else type


def _hidden(order: JoinOrder) -> frozenset[str]:
    """The sources that only keep or drop rows of others."""
    return frozenset({source.alias for source in order.sources} - {*order.visible(len(order.blocks))})


def _apart(meeting: Meeting, written: WrittenPart) -> list[Expression]:
    """That rows which meet are in the windows that the text gives: of the part by the times of what it is made of.

    A row that was padded has no time, and no window.
    """
    found = []
    for source in meeting.sources:
        own = event_time(source.alias)
        for alias in meeting.before.present:
            other = call("microseconds", written.time(alias))
            within = _within(own, other, meeting.windows.get(source.alias), meeting.windows.get(alias))
            if within is not None:
                there = alias in meeting.before.always
                found.append(within if there else call("coalesce", within, literal(True)))
    for at, source in enumerate(meeting.sources):
        for other_source in meeting.sources[at + 1 :]:
            sizes = (meeting.windows.get(source.alias), meeting.windows.get(other_source.alias))
            within = _within(event_time(source.alias), event_time(other_source.alias), *sizes)
            found += [] if within is None else [within]
    return found


def _within(own: Expression, other: Expression, size: float | None, other_size: float | None) -> Expression | None:
    """That neither of two rows is out of its window as the other comes."""
    low = None if size is None else call("sub", other, literal(whole(size)))
    high = None if other_size is None else call("add", other, literal(whole(other_size)))
    if low is not None and high is not None:
        return call("between", own, low, high)
    if low is not None:
        return call("ge", own, low)
    return None if high is None else call("le", own, high)
