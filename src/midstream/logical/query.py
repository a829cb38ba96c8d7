"""A query, parsed, typed and classified: frozen values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import pyarrow as pa
from typing_extensions import override

from midstream.expr.expression import TIME_COLUMN, Column, Expression, infix, is_result_time
from midstream.expr.types import TIMESTAMP
from midstream.model.codec import Tagged
from midstream.model.manifest import BoundQuery, QueryEntry
from midstream.model.schema import StreamSchema
from midstream.model.window import Window


@dataclass(frozen=True)
class Source:
    """A stream in the FROM clause, under an alias. Only a query over one stream may leave the window out."""

    alias: str
    stream: str
    window: Window | None


@dataclass(frozen=True)
class Output:
    """A column of the answer."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Conjunct(Tagged, tag="predicate", brief=True):
    """The base of the kinds of predicates."""


@dataclass(frozen=True)
class Predicate(Conjunct):
    """A conjunct of the WHERE clause over two or more sources: a theta predicate unless it is of a better kind."""

    expression: Expression

    def aliases(self) -> frozenset[str]:
        """The sources it binds together."""
        return self.expression.aliases()

    def renamed(self, rename: Rename) -> Self:
        """The predicate with the aliases of its query renamed."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: rename(one) for name, one in parts.items() if isinstance(one, Expression)})


@dataclass(frozen=True)
class EquiPredicate(Predicate):
    """`left = right`, each side over exactly one source, both of the same type."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class BandPredicate(Predicate):
    """Implies `low <= left - right <= high`; each side a number (or time) over exactly one source.

    The bounds are for searching only and may be wider than the predicate: `expression` decides. None is unbounded.
    """

    left: Expression
    right: Expression
    low: float | None
    high: float | None


OPERATION = "_op"
"""The column of a change log that says whether a row comes (`+`) or goes (`-`)."""

Rename = Callable[[Expression], Expression]
"""Gives an expression with other aliases."""

GROUPED = "#"
"""The pseudo-source that the outputs of an aggregate query read."""

START = "start"
"""The column of it that is the time of a session's first row."""

LISTS = frozenset({"array_agg", "collect_list", "collect_set", "string_agg"})
BY_ANOTHER = frozenset({"arg_min", "arg_max"})
FIRSTS = frozenset({"first", "last"})
"""Aggregates that give values of their group: all of them; the one where another value is least or greatest; the first
or the last of all of them.
"""


@dataclass(frozen=True)
class Frame:
    """The rows of its partition that a call OVER (...) ranges over, seen from one of them: those at most `before`
    microseconds older and `after` younger. `rows` are the first and the last place from that row, of these rows only.
    """

    before: int
    after: int
    rows: tuple[int, int] | None = None


@dataclass(frozen=True)
class AggregateCall:
    """`function` of `argument` within a group, over the rows that satisfy `condition`; COUNT(*) has no argument.

    Quantiles have the `share` of the values that are not greater. A list is in order `by` a value, or of its own ones,
    and in a text has a `separator`; ARG_MIN and ARG_MAX give the argument where `by` is least, or greatest. FIRST and
    LAST give what a list in order `by` begins or ends with. A call OVER (...) has a `frame` in the place of its group.
    """

    function: str
    argument: Expression | None
    distinct: bool = False
    condition: Expression | None = None
    share: float | None = None
    by: Expression | None = None
    descending: bool = False
    separator: str | None = None
    frame: Frame | None = None

    def renamed(self, rename: Rename) -> AggregateCall:
        """The call with the aliases of its query renamed."""
        argument, condition, by = (e and rename(e) for e in (self.argument, self.condition, self.by))
        return replace(self, argument=argument, condition=condition, by=by)


@dataclass(frozen=True)
class TopN:
    """The first `count` rows of each group in order of values, each ascending or (True) descending, NULL last.

    They are counted by `function`: `row_number`, or `rank` or `dense_rank`, by which rows that are equal in them have
    one number.
    """

    count: int
    order: tuple[tuple[Expression, bool], ...]
    function: str = "row_number"


LOGICAL_NODES = "midstream.logical_nodes"
"""The entry points by which other packages bring nodes."""


@dataclass(frozen=True)
class LogicalNode(Tagged, tag="node", brief=True, group=LOGICAL_NODES):
    """A logical node: what is made of the results of a query's join before the select list.

    A kind is a frozen dataclass; a `ResultCompiler` compiles it. What differs from kind to kind is said here, so that
    nothing else asks which kind one is.
    """

    at_instants: ClassVar[bool] = False
    """Whether it is evaluated at instants, for which rows must come in order."""
    keeps_rows: ClassVar[bool] = False
    """Whether it needs the rows of a single source after their step."""
    by_row: ClassVar[bool] = False
    """Whether each answer over one source is of one row, and comes with it."""
    has_one_plan: ClassVar[bool] = False
    """Whether all plans of its join are one, however they are written."""

    @property
    @abstractmethod
    def not_spread(self) -> str:
        """Why a join below it cannot be spread over nodes."""

    @property
    def form(self) -> str:
        """The form among those of its kind, for which other compilers stand."""
        return ""

    @property
    def groups_of_rows(self) -> tuple[Expression, ...] | None:
        """The values whose equal rows must meet in one lane; None where rows are answered one by one."""
        return None

    @property
    def labels(self) -> tuple[str, ...]:
        """The aliases of what it joins with the rows of the sources."""
        return ()

    @property
    def tables(self) -> tuple[str, ...]:
        """The static tables that it reads."""
        return ()

    @property
    def begins_with(self) -> str | None:
        """The source that a plan, which is left-deep then, must begin with; None where any plan will do."""
        return None

    @abstractmethod
    def renamed(self, rename: Rename, names: Mapping[str, str]) -> Self:
        """Rename the aliases of its query, in expressions and by themselves."""

    @abstractmethod
    def read(self) -> list[Expression]:
        """List what is evaluated over the results of the join."""

    def above(self) -> list[Expression]:
        """List what is evaluated over what it makes of them, the select list aside."""
        return []

    def over_rows(self, outputs: list[Expression]) -> list[Expression]:
        """List what is evaluated over rows of the sources after the conditions, `outputs` if they are."""
        return outputs

    def may_overflow(self) -> bool:
        """Return whether it may have no value where all that it reads has one."""
        return False

    def expressions(self) -> list[Expression]:
        """List all that is evaluated for it, the select list aside."""
        return [*self.read(), *self.above()]

    def schema(self, columns: pa.Schema) -> pa.Schema:
        """Return the columns of the answer, of which `columns` are selected."""
        return columns

    def explained(self) -> dict[str, Any]:
        """Describe it for `explain`, as JSON values."""
        return {}


@dataclass(frozen=True)
class Aggregate(LogicalNode):
    """GROUP BY, HAVING and EVERY: evaluated `offset` microseconds after the multiples of `every` microseconds.

    `Query.outputs` of an aggregate query, and the condition that groups must satisfy, `having`, read the pseudo-source
    `#`: columns `g0, g1, ...` are the groups, `a0, a1, ...` the calls, and `_ts` of alias '' the instant. With `top`
    the answer is rows of the groups: outputs and `having` read the sources, and `rank` of `#` is a row's number. With
    `session`, a gap in microseconds, rows are grouped by sessions too, each answered at its end, and `every` means
    nothing; `start` of `#` is the time of a session's first row. With `calendar`, a unit and a time zone, one of the
    groups is that unit of a row's local time, and its groups are answered at its end. With `over` each row has an
    answer of its own, once the watermark has passed all rows of its frames: groups are the partitions, calls have
    frames, `over` are the keys, descending or not, that order rows of one time, and `every` means nothing. With
    `within`, a size and an offset, rows count until the window of that size ends that they are in, of which the
    beginning is `start` of `#`. With a `relation` the answer is the results themselves, and outputs read the sources:
    `dstream` when they have left their windows, `rstream` all that are in them at the instants.
    """

    groups: tuple[Expression, ...]
    calls: tuple[AggregateCall, ...]
    every: int
    having: Expression | None = None
    offset: int = 0
    top: TopN | None = None
    session: int | None = None
    calendar: tuple[str, str] | None = None
    over: tuple[tuple[Expression, bool], ...] | None = None
    within: tuple[int, int] | None = None
    relation: str = ""

    at_instants: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = True

    @property
    @override
    def not_spread(self) -> str:
        if self.relation:
            why = "the results in the windows would lie at several of them"
            return f"{self.relation.upper()} cannot be spread over nodes: {why}"
        if self.over is not None:
            return "OVER cannot be spread over nodes: the rows of a frame would lie at several of them"
        if self.top is not None:
            return "the first rows of groups cannot be spread over nodes: a group's rows would lie at several of them"
        return "an aggregate cannot be spread over nodes: its groups would lie at several of them"

    @property
    @override
    def groups_of_rows(self) -> tuple[Expression, ...] | None:
        return None if self.relation else self.groups

    @property
    @override
    def form(self) -> str:
        """The form: `session`, `calendar`, `over`, `top_n`, `dstream` or `rstream`; of all others `groups`."""
        if self.session is not None:
            return "session"
        if self.calendar is not None:
            return "calendar"
        if self.over is not None:
            return "over"
        return self.relation or ("groups" if self.top is None else "top_n")

    @override
    def renamed(self, rename: Rename, names: Mapping[str, str]) -> Aggregate:
        top = self.top
        return replace(
            self,
            groups=tuple(map(rename, self.groups)),
            calls=tuple(call.renamed(rename) for call in self.calls),
            having=self.having and rename(self.having),
            top=top and replace(top, order=tuple((rename(key), down) for key, down in top.order)),
            over=None if self.over is None else tuple((rename(key), down) for key, down in self.over),
        )

    @override
    def read(self) -> list[Expression]:
        order = [key for key, _ in (self.over or () if self.top is None else self.top.order)]
        order += [] if self.top is None or self.having is None else [self.having]
        parts = [part for call in self.calls for part in (call.argument, call.condition, call.by) if part is not None]
        return [*self.groups, *parts, *order]

    @override
    def above(self) -> list[Expression]:
        return [] if self.having is None else [self.having]

    @override
    def over_rows(self, outputs: list[Expression]) -> list[Expression]:
        return self.read() if self.top is None and not self.relation else [*self.read(), *outputs]

    @override
    def may_overflow(self) -> bool:
        return any(call.function == "sum" for call in self.calls)


@dataclass(frozen=True)
class Difference(LogicalNode):
    """`A EXCEPT ON (cols) B [...] EXCEPT ON ...`: the minuend's rows that no row of a subtrahend matches."""

    minuend: str
    subtrahends: tuple[str, ...]

    at_instants: ClassVar[bool] = True
    has_one_plan: ClassVar[bool] = True

    @property
    @override
    def not_spread(self) -> str:
        return "an EXCEPT cannot be spread over nodes: none of them knows of all rows that match one"

    @property
    @override
    def begins_with(self) -> str:
        return self.minuend

    @override
    def renamed(self, rename: Rename, names: Mapping[str, str]) -> Difference:
        return Difference(names[self.minuend], tuple(names[alias] for alias in self.subtrahends))

    @override
    def read(self) -> list[Expression]:
        return []

    @override
    def schema(self, columns: pa.Schema) -> pa.Schema:
        return columns.append(pa.field(OPERATION, pa.string()))


OuterKind = Literal["outer", "semi", "anti"]


@dataclass(frozen=True)
class OuterJoin(LogicalNode):
    """A join of two sources that also answers, or only answers, by whether a row of a `preserved` source is matched.

    `outer`: the join's results, and the rows that are in none of them, padded with NULL. `semi`: once each row that is
    in some, `anti`: each that is in none. `condition` holds of the results, padded ones included.

    Where a preserved source is the results of a join, their rows may find a partner no longer than `until` says: up to
    the least of these columns' times, those that are there, each with its microseconds added. Without, for the window.
    """

    kind_of_join: OuterKind
    preserved: tuple[str, ...]
    condition: Expression | None = None
    until: tuple[tuple[Column, int], ...] = ()

    @property
    @override
    def not_spread(self) -> str:
        return "an outer, semi or anti join cannot be spread over nodes: none of them knows of all partners of a row"

    @override
    def renamed(self, rename: Rename, names: Mapping[str, str]) -> OuterJoin:
        return replace(
            self,
            preserved=tuple(names[alias] for alias in self.preserved),
            condition=self.condition and rename(self.condition),
            until=tuple((replace(c, alias=names[c.alias]), size) for c, size in self.until),
        )

    @override
    def read(self) -> list[Expression]:
        return [*([] if self.condition is None else [self.condition]), *(column for column, _ in self.until)]

    @override
    def over_rows(self, outputs: list[Expression]) -> list[Expression]:
        return outputs if self.condition is None else [*outputs, self.condition]

    @override
    def explained(self) -> dict[str, Any]:
        return {"outer_join": {"kind": self.kind_of_join, "preserved": list(self.preserved)}}


LookupKind = Literal["inner", "left", "semi", "anti"]


@dataclass(frozen=True)
class Lookup:
    """A static table, under an alias, that each row is joined with as it comes in.

    `conditions` say which rows of the table match: they read its columns, those of the stream, and those of the tables
    before it. `inner` and `left` give every match, `left` also a row that has none, padded with NULL; `semi` and `anti`
    keep or drop a row that has some. With `latest`, of a row's matches only the one counts in which that is greatest,
    the first of several in the order of the table. With
    `items`, a list, its items are the rows in the place of a table's: `titles` are the names of their column and,
    perhaps, of that of their places, from 1.
    """

    alias: str
    table: str
    kind: LookupKind
    conditions: tuple[Predicate, ...]
    latest: Expression | None = None
    items: Expression | None = None
    titles: tuple[str, ...] = ()

    def renamed(self, rename: Rename) -> Lookup:
        """The lookup with the aliases of its query renamed."""
        conditions = tuple(one.renamed(rename) for one in self.conditions)
        latest, items = (e and rename(e) for e in (self.latest, self.items))
        return replace(self, conditions=conditions, latest=latest, items=items)

    def explained(self) -> dict[str, Any]:
        """Describe it for `explain`, as JSON values."""
        found = {
            "table": self.table if self.items is None else f"UNNEST({infix(self.items)})",
            "kind": self.kind,
            "conditions": [infix(p.expression) for p in self.conditions],
        }
        return found if self.latest is None else found | {"latest": infix(self.latest)}


@dataclass(frozen=True)
class Lookups(LogicalNode):
    """Rows of one stream that are looked up in static tables, one after the other; `kept_if` holds for those found."""

    lookups: tuple[Lookup, ...]
    kept_if: tuple[Expression, ...] = ()

    by_row: ClassVar[bool] = True

    @property
    @override
    def not_spread(self) -> str:
        return "a query over one stream has no join to spread"

    @property
    @override
    def labels(self) -> tuple[str, ...]:
        return tuple(one.alias for one in self.lookups)

    @property
    @override
    def tables(self) -> tuple[str, ...]:
        return tuple(one.table for one in self.lookups if one.items is None)

    @override
    def renamed(self, rename: Rename, names: Mapping[str, str]) -> Lookups:
        return Lookups(tuple(one.renamed(rename) for one in self.lookups), tuple(map(rename, self.kept_if)))

    @override
    def read(self) -> list[Expression]:
        more = [one for lookup in self.lookups for one in (lookup.items, lookup.latest) if one is not None]
        return [p.expression for lookup in self.lookups for p in lookup.conditions] + more + list(self.kept_if)

    @override
    def explained(self) -> dict[str, Any]:
        return {"looks_up": [one.explained() for one in self.lookups]}


@dataclass(frozen=True)
class Query(BoundQuery):
    """A continuous query. `sources` are in FROM order, subtrahends of EXCEPT after them.

    `selections` holds for each alias its single-source conjuncts; a conjunct without any column stands under ''. For a
    difference, `predicates` tie the minuend to each subtrahend (one equi-predicate per column and subtrahend).

    `on_top` is what is made of the join's results before the select list; None where nothing is. `tables` are the
    static tables that its text names, also where a part of it looks the rows up.

    `time` is the type of a result's time. Who reads the answers takes for their time that of a source's rows where the
    select list calls one `_ts`, `timed`: the output's place, and the most microseconds that an answer comes later than
    the row.

    Rows for which something cannot be evaluated are dead letters; the query `rejects` where there may be such rows.
    """

    sources: tuple[Source, ...]
    outputs: tuple[Output, ...]
    selections: tuple[tuple[str, Expression], ...]
    predicates: tuple[Predicate, ...]
    on_top: LogicalNode | None = None
    rejects: bool = False
    tables: tuple[str, ...] = ()
    timed: tuple[int, int] | None = None
    time: pa.DataType = TIMESTAMP

    tree: ClassVar[Any] = None
    """The `Statement` that it was bound from, where this process keeps it; no part of the value."""

    def keep(self, tree: Any) -> Self:
        """Remember the tree that it was bound from."""
        object.__setattr__(self, "tree", tree)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # Without what is kept beside.

    @property
    def plain(self) -> bool:
        """Whether its answer is the results of its join, and nothing is made of them but the select list."""
        return self.on_top is None

    @property
    def keeps_rows(self) -> bool:
        """Whether rows must be kept for it after their step: for a join, or until an instant."""
        return len(self.sources) > 1 or (self.on_top is not None and self.on_top.keeps_rows)

    @property
    def at_instants(self) -> bool:
        """Whether it is evaluated at instants, for which rows must come in order."""
        return self.on_top is not None and self.on_top.at_instants

    @property
    def has_one_plan(self) -> bool:
        """Whether all its plans are one, however they are written."""
        return self.on_top is not None and self.on_top.has_one_plan

    @property
    def by_row(self) -> bool:
        """Whether each of its answers is of one row, and comes with it."""
        return len(self.sources) == 1 and (self.on_top is None or self.on_top.by_row)

    @property
    def groups(self) -> tuple[Expression, ...] | None:
        """The values whose equal rows must meet in one lane; None where rows are answered one by one."""
        return None if self.on_top is None else self.on_top.groups_of_rows

    def schema(self) -> pa.Schema:
        """The columns of the answer; a change log has `_op` behind them."""
        columns = pa.schema([(output.name, output.expression.type) for output in self.outputs])
        return columns if self.on_top is None else self.on_top.schema(columns)

    def event_time(self, streams: Mapping[str, StreamSchema]) -> tuple[int | None, str | None]:
        """The output that is the time of each answer, if there is one, and the unit where that is an integer."""
        if self.timed is not None:
            return self.timed[0], None
        source = self.sources[0]
        stream = streams[source.stream]
        for place, output in enumerate(self.outputs):
            column = output.expression
            if is_result_time(column):
                return place, None
            named = (column.alias, column.name) if isinstance(column, Column) else None
            if self.by_row and named == (source.alias, stream.timestamp):
                return place, stream.unit
        return None, None

    def source(self, alias: str) -> Source:
        """The source of an alias."""
        return next(s for s in self.sources if s.alias == alias)

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """The aliases in FROM order."""
        return tuple(s.alias for s in self.sources)

    @cached_property
    def children(self) -> tuple[str, ...]:
        """The streams that it reads, each once, in FROM order: pushed ones, and answers of queries below it."""
        return tuple(dict.fromkeys(s.stream for s in self.sources))

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The streams whose arrivals ROWS windows count, in FROM order."""
        rows = {s.stream for s in self.sources if s.window is not None and s.window.kind == "rows"}
        return tuple(stream for stream in self.children if stream in rows)

    def columns_of(self, alias: str) -> tuple[str, ...]:
        """The names of the columns the query reads from a source, sorted, except for its event time, which is always
        there.
        """
        read = {c.name for part in self.expressions() for c in part.columns() if c.alias == alias}
        return tuple(sorted(read - {TIME_COLUMN}))

    def kept_columns(self, alias: str) -> tuple[str, ...]:
        """The names of the columns of a source that are read after its selection, sorted, except for its event time."""
        read = {c.name for part in self._after_selections() for c in part.columns() if c.alias == alias}
        return tuple(sorted(read - {TIME_COLUMN}))

    def expressions(self) -> list[Expression]:
        """All that is evaluated for the query."""
        return [*self._after_selections(), *(e for _, e in self.selections)]

    def _after_selections(self) -> list[Expression]:
        parts = [o.expression for o in self.outputs] + [p.expression for p in self.predicates]
        return parts if self.on_top is None else [*parts, *self.on_top.expressions()]


def query_of(entry: QueryEntry) -> Query:
    """Return the query of an entry."""
    return entry.query  # type: ignore[return-value]  # `cast` is a call, and every step makes many.
