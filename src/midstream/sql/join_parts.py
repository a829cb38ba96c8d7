"""Joins of which others, or aggregates, read the results: each a part, a query of its own.

`A LEFT JOIN B ON ... LEFT JOIN C ON ...` reads in the place of A and B the answers of `SELECT ... FROM A LEFT JOIN B ON
...`, which has its own part in turn where it joins more. Only the last outer, semi or anti join is left, or inner joins
behind it, or an aggregate. A part answers the event times of its rows too, `A._ts`, by which those of the next stream
meet them, as `midstream.logical.join_times` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import pyarrow as pa
from sqlglot import exp

from midstream.expr.coerce import literal
from midstream.expr.expression import TIME_COLUMN, Call, Column, Expression
from midstream.expr.functions import call
from midstream.expr.types import TIMESTAMP, TIMESTAMPTZ
from midstream.logical.join_times import JoinTimes, Meeting, whole
from midstream.logical.query import Query, Source
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.model.window import Window
from midstream.sql.answer_streams import TIME_SHOWN
from midstream.sql.bind import Binder
from midstream.sql.calendar_window import calendar_units
from midstream.sql.dialect import CqlText, WindowClause
from midstream.sql.enrichment import names_read
from midstream.sql.from_clause import FromClause
from midstream.sql.group_window import is_window_call, is_window_function
from midstream.sql.join_order import JoinedSource, JoinOrder, blocks_of, joined_sources
from midstream.sql.outer_join_clause import check_outer_joins, is_outer
from midstream.sql.parts import Statement
from midstream.sql.place import error_at, place, standing_at
from midstream.sql.scope import NOT_STARRED, Scope, event_time, find_name
from midstream.sql.sql_tree import column_of, join_of, source_of, titled
from midstream.sql.subqueries import as_subquery, common_tables
from midstream.sql.top_n_clause import is_over
from midstream.sql.unnested import LISTS


@dataclass(frozen=True)
class WrittenPart:
    """A part: its name and tree, under which alias its answers are read, the sources that it joins, by their alias and
    name the columns that it answers, and all of these in order, as their query is to have them.
    """

    name: str
    statement: Statement
    alias: str
    aliases: tuple[str, ...]
    columns: Mapping[tuple[str, str], Column]
    answers: tuple[Column, ...]

    def time(self, alias: str) -> Column:
        """The event time of a source's row; NULL where it was padded."""
        return self.columns[alias, TIME_COLUMN]


@dataclass(frozen=True)
class PartWriter:
    """Writes the text of parts of a query. `read` are the names of columns, in small letters, that it may read, None
    for all; `streams` by alias other names of streams than the text has.
    """

    order: JoinOrder
    tree: exp.Select
    read: frozenset[str] | None
    streams: Mapping[str, str]

    def write(self, count: int, timed: str | None = None) -> WrittenPart:
        """The part that joins the first blocks. Its answers have the event times of all rows that it joins, and of a
        source that is `timed` have this for their own.

        Where it runs already, but began when streams were declared with their columns in another order, it is that one.
        """
        columns, streams = self._columns(count), self.order.streams
        found = self._written(columns, count, timed)
        if found.name in streams:
            return found
        titles = {answer.name for answer in found.answers}
        for name, stream in streams.items():
            if is_part_of(name, stream, found.alias) and titles == {*stream.columns.names} & titles:
                order = {title: at for at, title in enumerate(stream.columns.names)}
                ordered = sorted(columns, key=lambda one: order[found.columns[one[:2]].name])
                if (again := self._written(ordered, count, timed)).name == name:
                    return again
        return found

    def _written(self, read: Sequence[tuple[str, str, pa.DataType]], count: int, timed: str | None) -> WrittenPart:
        visible = self.order.visible(count)
        alias = "_".join(visible)
        while find_name(alias, (source.alias for source in self.order.sources)):
            alias += "_"
        items, columns, answers = list[exp.Expr](), dict[tuple[str, str], Column](), list[Column]()
        for source, name, kind in read:
            title = f"{source}.{name}"
            while any(title.lower() == other.name.lower() for other in answers):
                title += "_"
            items.append(titled(*self._shown(source, name), title))
            columns[source, name] = Column(kind, alias, title)
            answers.append(columns[source, name])
        if timed is not None:
            items.append(titled(timed, TIME_COLUMN, TIME_COLUMN))
            answers.append(Column(self.order.within(count).moment, alias, TIME_COLUMN))
        tree = self._from(count)
        tree.set("expressions", items)
        where = [self._condition(node, count) for block in self.order.blocks[:count] for node in block.where]
        tree.set("where", exp.Where(this=exp.and_(*where)) if where else None)
        part = Statement(self.order.found.text, tree, is_part=True)
        return WrittenPart(part.name(alias), part, alias, visible, columns, tuple(answers))

    def _columns(self, count: int) -> list[tuple[str, str, pa.DataType]]:
        """Return the columns that may be read of the first blocks, and the times of all rows."""
        scope = self.order.within(count)
        found = [
            (alias, column.name, column.type)
            for alias, _ in scope.sources
            for column in scope.columns(alias)
            if self.read is None or column.name.lower() in self.read
        ]
        return [*found, *((alias, TIME_COLUMN, scope.moment) for alias in self.order.visible(count))]

    def _shown(self, alias: str, name: str) -> tuple[str, str]:
        if self.order.home(alias) == alias:
            return alias, name
        view = self.order.scope.views[alias, name]
        assert isinstance(view, Column)
        return view.alias, view.name

    def _from(self, count: int) -> exp.Select:
        tree = exp.Select()
        for at, block in enumerate(self.order.blocks[:count]):
            for number, one in enumerate(block.joined):
                if tree.args.get("from_") is None:
                    tree.set("from_", exp.From(this=self._source(one)))
                    continue
                seen = [source.alias for source in block.sources[: number + 1]]
                on = [self._condition(node, at, seen) for node in one.on]
                tree.append("joins", join_of(block.kind, self._source(one), on))
        return tree

    def _source(self, one: JoinedSource) -> exp.Expr:
        alias, window, node = one.source.alias, one.source.window, one.table
        common = common_tables(self.order.found.text, self.tree).get(node.name.lower())
        stream = self.streams.get(alias, one.source.stream)
        if alias not in self.streams and isinstance(node, exp.Table) and common is not None:
            source: exp.Expr = as_subquery(common, node)
        elif alias not in self.streams and isinstance(node, exp.Subquery):
            source = source_of(node, alias)
        else:
            source = source_of(standing_at(exp.Table(this=exp.to_identifier(stream, quoted=True)), node), alias)
        if window is not None:
            source.set("window", WindowClause(one.offset, window))
        return source

    def _condition(self, node: exp.Expr, count: int, also: Sequence[str] = ()) -> exp.Expr:
        binder = Binder(self.order.found.text, self.order.within(count, also))

        def named(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column):
                return part
            column, fields = binder.named(part)
            return standing_at(column_of(*self._shown(column.alias, column.name), fields), part)

        return exp.Paren(this=node.copy().transform(named))


def is_part_of(name: str, stream: StreamSchema, alias: str) -> bool:
    """Whether a stream, by its name, is the answers of a part that is read under an alias."""
    return stream.answers_of == (name,) and name.startswith(f"{alias.lower()}-")


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
                remedy="join in a subquery, and select from the subquery",
            )

    def sources_over(self, streams: Mapping[str, StreamSchema]) -> tuple[Source, ...]:
        """The sources of what is left; raises LanguageError where the part does not run."""
        if self.part not in streams:
            others = (one for name, one in streams.items() if is_part_of(name, one, self.written.alias))
            if (other := next(others, None)) is not None:
                columns = {answer.name for answer in self.written.answers}
                now = columns.symmetric_difference(other.columns.names) - {other.timestamp}
                raise LanguageError(
                    f"no query joins {', '.join(self.written.aliases)} with these columns, "
                    "but a running query has others" + (f": {', '.join(sorted(now))}" if now else ""),
                    remedy="add the query to an engine or a job; if the query ran before, declare the columns of "
                    "its last run",
                )
            remedy = "add the query to an engine or a job, which adds its parts first"
            raise LanguageError(f"no query joins {', '.join(self.written.aliases)}", remedy=remedy)
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
            "an aggregate over an outer, semi or anti join needs WINDOW",
            place=place(found.text, found.every[1]),
            remedy="write WINDOW n unit before EVERY; an aggregate covers the join's answers of the last n units",
        )
    tree, timed = by_answers(found, tree, order)
    window = None if windowed or found.window is None else found.window.window
    return below_aggregate(order, PartWriter(order, tree, _names_read(tree, ()), enriched), tree, window, timed)


def _names_read(tree: exp.Select, conditions: Sequence[exp.Expr]) -> frozenset[str] | None:
    """Return the names of columns that what is made of a join's results may read; None for all."""
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
    """Return the type, without the zone that a stream's time has, and that of answers has not."""
    return TIMESTAMP if type == TIMESTAMPTZ else type


def _hidden(order: JoinOrder) -> frozenset[str]:
    """Return the sources that only keep or drop rows of others."""
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
    low = None if size is None else call("sub", other, literal(whole(size)))
    high = None if other_size is None else call("add", other, literal(whole(other_size)))
    if low is not None and high is not None:
        return call("between", own, low, high)
    if low is not None:
        return call("ge", own, low)
    return None if high is None else call("le", own, high)


def by_answers(found: CqlText, tree: exp.Select, order: JoinOrder) -> tuple[exp.Select, str | None]:
    """The query with its window to group by over the time of the join's answers, `_ts`, and the source whose rows give
    them that, None where it is that of the results. Raises LanguageError for any other time.
    """
    clause = tree.args.get("group")
    node = next((node for node in clause.expressions if is_window_call(node)), None) if clause is not None else None
    over = tree.find(exp.Window) if is_over(tree) else None
    units = calendar_units(tree) if node is None and over is None and found.every is None else []
    times = node.expressions[:1] if node is not None else [c for unit in units for c in unit.find_all(exp.Column)][:1]
    if over is not None:
        times = [key.this for key in (over.args["order"].expressions if over.args.get("order") is not None else ())][:1]
    if not times:
        return tree, None
    asked = times[0]
    what = "a window to group by" if over is None else "a window in order"
    if is_result_time(asked):
        return tree, None
    alias = _source_of(Binder(found.text, order.within(len(order.blocks))).bind(asked), order)
    if alias is None:
        sources = ", ".join(
            f"{one}.{order.streams[_stream(order, one)].timestamp}" for one in sorted(order.times.always)
        )
        remedy = f"write {TIME_COLUMN}, the time of a result{f'; or one of {sources}' if sources else ''}"
        raise error_at(found.text, asked, f"{what} needs an event time", remedy)
    if alias not in order.times.always:
        remedy = f"group by {TIME_COLUMN}, the time of a result"
        raise error_at(
            found.text,
            asked,
            f"{what} cannot use the time of {alias!r}, because the join may fill this time with NULL",
            remedy,
        )
    if order.times.late[alias] == inf:
        remedy = f"write [RANGE n unit], or group by {TIME_COLUMN}, the time of a result"
        raise error_at(
            found.text,
            asked,
            f"{what} cannot use the time of {alias!r}, because the rows of {alias!r} stay forever",
            remedy,
        )

    unit_kinds = (exp.TimestampTrunc, exp.DateTrunc)

    def timed(part: exp.Expr) -> exp.Expr:
        if is_window_function(part) and part.expressions and part.expressions[0] == asked:
            part.set("expressions", [exp.column(TIME_COLUMN), *part.expressions[1:]])
        if isinstance(part, exp.Ordered) and part.this == asked and part.find_ancestor(exp.Window) is not None:
            part.set("this", exp.column(TIME_COLUMN))
        return exp.column(TIME_COLUMN) if part == asked and part.find_ancestor(*unit_kinds) in units else part

    rewritten = tree.copy()
    for key in ("group", "having", "qualify"):
        if rewritten.args.get(key) is not None:
            rewritten.set(key, rewritten.args[key].transform(timed))
    rewritten.set("expressions", [item.transform(timed) for item in rewritten.expressions])
    return rewritten, alias


def is_result_time(node: exp.Expr) -> bool:
    """Whether a node is `_ts`, the time of a result."""
    return isinstance(node, exp.Column) and not node.table and node.name == TIME_COLUMN


def _source_of(time: Expression, order: JoinOrder) -> str | None:
    if isinstance(time, Call) and time.function == "moment":
        time = time.arguments[0]
    if not isinstance(time, Column) or time.alias not in order.times.present:
        return None
    event_time = order.streams[_stream(order, time.alias)].timestamp
    return time.alias if time.name in (TIME_COLUMN, event_time) else None


def _stream(order: JoinOrder, alias: str) -> str:
    return next(source.stream for source in order.sources if source.alias == alias)
