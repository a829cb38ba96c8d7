"""Static tables in FROM: each row of a stream is joined with the rows of a table as it comes in.

A table has no event time, so it takes no part in the join of windows. It is taken out of FROM here; what is left reads
streams only. A query over one stream that only selects looks rows up itself, `looked_up`; of any other the stream that
a table is tied to is enriched first, by a part of the query (`midstream.sql.enrichment`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from midstream.expr.coerce import name
from midstream.expr.evaluate import can_fail
from midstream.expr.expression import Column, Expression, infix
from midstream.expr.nested import is_list
from midstream.expr.types import INT64, TIMES, family
from midstream.logical.predicates import conjuncts, predicate
from midstream.logical.query import BandPredicate, EquiPredicate, Lookup, LookupKind, Predicate
from midstream.logical.row_checks import beside
from midstream.model.errors import LanguageError
from midstream.model.schema import VERSION, StreamSchema, TableSchema
from midstream.sql.bind import Binder
from midstream.sql.dialect import CqlText
from midstream.sql.place import error_at, not_in_language, place, place_of
from midstream.sql.scope import NOT_STARRED, Scope, find_name
from midstream.sql.sql_tree import anded
from midstream.sql.subqueries import Shown, common_tables, selected, shown_of

_VERSION = pa.field(VERSION, INT64, metadata=NOT_STARRED)

_KINDS: dict[str, LookupKind] = {"SEMI": "semi", "ANTI": "anti"}


@dataclass(frozen=True)
class NamedTable:
    """A static table as FROM names it: under an alias, by a kind of join, `on` conditions, with SELECTs around it.

    In an as-of join `latest` is the column of its rows of which the greatest counts. Where it is a list that is
    unnested, `items` is that list and `table` has a column of its items, and perhaps one of their places.
    """

    alias: str
    table: TableSchema
    kind: LookupKind
    on: tuple[exp.Expr, ...]
    node: exp.Expr
    selects: tuple[exp.Select, ...] = ()
    latest: exp.Expr | None = None
    items: Expression | None = None

    @property
    def is_list(self) -> bool:
        """Whether it is the items of a list."""
        return isinstance(self.node, exp.Unnest)

    @property
    def is_visible(self) -> bool:
        """Whether what stands behind the join may read its columns."""
        return self.kind in ("inner", "left")

    def shown(self, text: str, scope: Scope) -> Shown:
        """What it shows: its columns, and the version that they are of, or what a subquery makes of its columns."""
        if self.is_list:
            columns = [(name, Column(kind, self.alias, name)) for name, kind in zip(*_of(self.table), strict=True)]
            starless = self.table.columns.names if self.alias.startswith(" ") else ()
            return Shown(tuple(columns), (), frozenset(starless))
        return shown_of(text, self.alias, self.table.columns.append(_VERSION), self.selects, scope)


@dataclass(frozen=True)
class TablesNamed:
    """The static tables that a query names, in order of FROM, and the aliases of all its sources in that order."""

    tables: tuple[NamedTable, ...]
    order: tuple[str, ...]

    def typed(
        self, text: str, columns: Mapping[str, pa.Schema], shown: Mapping[str, Shown], scope: Scope
    ) -> TablesNamed:
        """The tables, lists with the types of their items; `columns` are those of the streams. Raises LanguageError."""
        views = {(alias, name): e for alias, one in shown.items() for name, e in one.columns}
        known, found = dict(columns), list[NamedTable]()
        for table in self.tables:
            if table.is_list:
                binder = Binder(text, replace(scope, sources=tuple(known.items()), views=views))
                table = _typed(text, table, binder)
                known[table.alias] = table.table.columns
            found.append(table)
        return replace(self, tables=tuple(found))

    def opened(self, scope: Scope) -> Scope:
        """What may be read behind the joins: of tables that only keep or drop rows nothing."""
        hidden = {table.alias for table in self.tables if not table.is_visible}
        return replace(scope, sources=tuple(one for one in scope.sources if one[0] not in hidden))

    def streams_alone(self, scope: Scope) -> Scope:
        """What names mean without the tables."""
        aliases = {table.alias for table in self.tables}
        return replace(scope, sources=tuple(one for one in scope.sources if one[0] not in aliases))

    def in_order(self, sources: Mapping[str, pa.Schema]) -> tuple[tuple[str, pa.Schema], ...]:
        """Sources in the order of FROM, those that do not stand there last."""
        known = [alias for alias in self.order if alias in sources]
        return tuple((alias, sources[alias]) for alias in dict.fromkeys([*known, *sources]))


def without_tables(
    found: CqlText, tree: exp.Select, streams: Mapping[str, StreamSchema], tables: Mapping[str, TableSchema]
) -> tuple[exp.Select, TablesNamed]:
    """The query without the static tables in its FROM, and these; raises LanguageError for a join not carried."""
    if not any(find_name(table.name, tables) for table in tree.find_all(exp.Table)) and not tree.find(exp.Unnest):
        return tree, TablesNamed((), ())
    return _Taker(found, tree, streams, tables).run()


class _Taker:
    """Goes through FROM once, from left to right."""

    def __init__(
        self, found: CqlText, tree: exp.Select, streams: Mapping[str, StreamSchema], tables: Mapping[str, TableSchema]
    ) -> None:
        self.found, self.tree, self.tables = found, tree, tables
        self.known: Mapping[str, StreamSchema | TableSchema] = {**streams, **tables}
        self.common = common_tables(found.text, tree)
        self.joins: list[exp.Expr] = tree.args.get("joins") or []
        self.items: list[exp.Expr] = [tree.args["from_"].this, *(join.this for join in self.joins)]

    def run(self) -> tuple[exp.Select, TablesNamed]:
        unwrapped = [selected(self.found.text, item, self.common) for item in self.items]
        tables = [
            [_LIST] if isinstance(one.table, exp.Unnest) else find_name(one.table.name, self.tables)
            for one in unwrapped
        ]
        order = tuple(item.alias_or_name for item in self.items)
        if not any(tables):
            return self.tree, TablesNamed((), ())
        if all(tables):
            remedy = (
                "join it with a stream, whose rows say when there is something to answer; in a query with an as-of "
            )
            remedy += "join of a table, write windows behind the streams and no WINDOW at the end"
            raise not_in_language(self.found.text, self.items[0], "a query over static tables alone", remedy)
        first = next(at for at, names in enumerate(tables) if not names)
        self._check_windows([bool(names) for names in tables])
        outer = first and (
            self._word(first, "side") or self._word(first, "method") or self._word(first, "kind") in _KINDS
        )
        if outer:
            raise not_in_language(
                self.found.text, self.items[first], "an outer join of a table with a stream", "write the stream first"
            )
        for one, names in zip(unwrapped, tables, strict=True):
            if names and names != [_LIST]:
                self._check_bare(one.table)
        found = []
        for at, (names, one) in enumerate(zip(tables, unwrapped, strict=True)):
            if not names:
                continue
            # What ties the first stream to the tables before it is said of the last of these.
            ties = [at] if at != first - 1 else [at, first]
            on = tuple(condition for tie in ties if tie for condition in self._on(tie))
            kind = self._kind(at) if at else "inner"
            schema = _NO_ITEMS if names == [_LIST] else self.tables[names[0]]
            table = NamedTable(order[at], schema, kind, on, self.items[at], one.selects)
            found.append(table if table.is_list else self._as_of(at, table, one.table))
        rest = self.tree.copy()
        rest.args["from_"].set("this", self.items[first].copy())
        rest.set("joins", [self.joins[at - 1].copy() for at in range(first + 1, len(self.items)) if not tables[at]])
        return rest, TablesNamed(tuple(found), order)

    def _check_bare(self, node: exp.Expr) -> None:
        alias = node.args.get("alias")
        known = ("this", "alias", "window", "version")
        extra = [key for key, value in node.args.items() if value and key not in known]
        if extra or (alias is not None and alias.args.get("columns")):
            what = f"{extra[0].upper().replace('_', ' ')} of a static table" if extra else "columns behind an alias"
            remedy = "leave it out: a row meets the version that stands when it comes in; t._version says which"
            raise not_in_language(self.found.text, node, what, remedy)

    def _kind(self, at: int) -> LookupKind:
        side, kind, method = (self._word(at, key) for key in ("side", "kind", "method"))
        if (
            side in ("RIGHT", "FULL")
            or method not in (("",) if isinstance(self.items[at], exp.Unnest) else ("", "ASOF"))
            or kind not in ("", "INNER", "CROSS", "OUTER", *_KINDS)
        ):
            remedy = "write JOIN, LEFT JOIN, SEMI JOIN or ANTI JOIN: the rows of a table come with those of a stream"
            what = "a list" if isinstance(self.items[at], exp.Unnest) else "a static table"
            raise not_in_language(self.found.text, self.items[at], f"{side or method or kind} JOIN of {what}", remedy)
        return _KINDS.get(kind) or ("left" if side else "inner")

    def _on(self, at: int) -> Iterator[exp.Expr]:
        join = self.joins[at - 1]
        if join.args.get("on") is not None:
            yield join.args["on"]
        if join.args.get("match_condition") is not None:
            yield join.args["match_condition"]

    def _as_of(self, at: int, table: NamedTable, bare: exp.Expr) -> NamedTable:
        """Return the table with the column whose greatest value counts, where it is joined as of a time."""
        version = bare.args.get("version")
        if version is not None:
            times = [column.name for column in table.table.columns if family(column.type) in TIMES]
            if len(times) != 1 or str(version.args.get("kind")).upper() != "AS OF":
                raise self._unversioned(at, f"that has {len(times)} columns of a date or time")
            latest = exp.column(times[0], table.alias, quoted=True)
            earlier = exp.LTE(this=latest.copy(), expression=version.args["expression"].copy())
            return replace(table, on=(*table.on, earlier), latest=latest)
        if not at or self._word(at, "method") != "ASOF":
            return table
        asked = list[exp.Expr]()
        for part in (part for one in table.on for part in anded(one)):
            left, right = part.this, part.args.get("expression", part)
            if isinstance(part, exp.LTE | exp.LT) and self._is_of(left, table):
                asked.append(left)
            elif isinstance(part, exp.GTE | exp.GT) and self._is_of(right, table):
                asked.append(right)
            elif not isinstance(part, exp.EQ):
                raise self._unversioned(at, f"on {part.sql()[:60]!r}")
        if len(asked) != 1:
            raise self._unversioned(at, f"on {len(asked)} conditions of time")
        return replace(table, latest=asked[0])

    @staticmethod
    def _is_of(node: exp.Expr | None, table: NamedTable) -> bool:
        return isinstance(node, exp.Column) and node.table.lower() == table.alias.lower()

    def _unversioned(self, at: int, why: str) -> LanguageError:
        remedy = "write A ASOF JOIN rates AS r ON r.k = A.k AND A.ts >= r.since, with the column that says since when"
        return error_at(
            self.found.text, self.items[at], f"midstream cannot make an as-of join of a static table {why}", remedy
        )

    def _check_windows(self, is_table: Sequence[bool]) -> None:
        for item, table in zip(self.items, is_table, strict=True):
            window = item.args.get("window")
            if table and window is not None:
                raise LanguageError(
                    "a static table or a list cannot have a window",
                    place=place(self.found.text, window.offset),
                    remedy="leave the window out",
                )

    def _word(self, at: int, key: str) -> str:
        return str(self.joins[at - 1].args.get(key) or "").upper()


_LIST = " list"
"""What stands for the name of a table where a list is unnested."""

_NO_ITEMS = TableSchema(_LIST, pa.schema([("item", pa.null())]))
"""A list before its type is known."""


def _of(table: TableSchema) -> tuple[list[str], list[pa.DataType]]:
    return table.columns.names, table.columns.types


def _typed(text: str, table: NamedTable, binder: Binder) -> NamedTable:
    """Return a list that is unnested, bound, with the columns of its items; raises LanguageError."""
    (node,) = table.node.expressions
    items = binder.bind(node)
    if not is_list(items.type):
        raise error_at(
            text, node, f"UNNEST needs a list, not a value of type {name(items.type)}", "unnest a column that is a list"
        )
    if can_fail(items):
        remedy = "write TRY_CAST instead of CAST, and use NULLIF(x, 0) to the right of // and %"
        raise error_at(text, node, "UNNEST needs a list that can be evaluated for every row", remedy)
    if len(items.aliases()) != 1:
        remedy = "unnest the list of one stream, FROM A CROSS JOIN UNNEST(A.items) AS t(x)"
        raise error_at(text, node, "UNNEST needs a list that reads the columns of exactly one stream", remedy)
    titles = [column.name for column in table.node.args["alias"].args["columns"]]
    types = [items.type.value_type, INT64][: len(titles)]
    columns = pa.schema([*zip(titles, types, strict=True)])
    return replace(table, table=TableSchema(_LIST, columns), items=items)


@dataclass(frozen=True)
class LookedUp:
    """How a query over one stream looks rows up: conditions on the stream alone, the lookups, and on what is found."""

    before: tuple[Expression, ...]
    lookups: tuple[Lookup, ...] = ()
    kept_if: tuple[Expression, ...] = ()


def looked_up(
    text: str, named: TablesNamed, shown: Mapping[str, Shown], scope: Scope, where: Sequence[Expression]
) -> LookedUp:
    """The lookups of a query over one stream; `where` are its other conditions. Raises LanguageError.

    A condition is put to the last table that it reads, if rows without a match are dropped there anyway.
    """
    kinds = {table.alias: table.kind for table in named.tables}
    found: dict[str, list[Expression]] = {table.alias: list(shown[table.alias].conditions) for table in named.tables}
    before, kept_if = list[Expression](), list[Expression]()
    hidden: set[str] = set()
    for table in named.tables:
        later = {other.alias for other in named.tables[named.tables.index(table) + 1 :]}
        seen = tuple((alias, columns) for alias, columns in scope.sources if alias not in later | hidden)
        binder = Binder(text, replace(scope, sources=seen))
        for condition in _each(binder.condition(node) for node in table.on):
            about = condition.aliases() & kinds.keys()
            (found[table.alias] if about or table.kind != "inner" else before).append(condition)
        hidden |= set() if table.is_visible else {table.alias}
    latest = {table.alias: table.latest for table in named.tables if table.latest is not None}
    for condition in _each(where):
        read = [table.alias for table in named.tables if table.alias in condition.aliases()]
        last = found[read[-1]] if read and kinds[read[-1]] == "inner" and read[-1] not in latest else kept_if
        (last if read else before).append(condition)
    times = {alias: _latest(text, node, Binder(text, scope)) for alias, node in latest.items()}
    lookups = tuple(
        Lookup(
            table.alias,
            table.table.name,
            table.kind,
            tuple(map(predicate, found[table.alias])),
            times.get(table.alias),
            table.items,
            tuple(table.table.columns.names) if table.is_list else (),
        )
        for table in named.tables
    )
    _check_evaluable(text, named, [p for lookup in lookups for p in lookup.conditions], kept_if)
    return LookedUp(tuple(before), lookups, tuple(kept_if))


def _latest(text: str, node: exp.Expr, binder: Binder) -> Expression:
    bound = binder.bind(node)
    if family(bound.type) not in (*TIMES, "integer", "decimal"):
        remedy = "compare a TIMESTAMP, a DATE or a whole number of the table"
        raise error_at(text, node, "an as-of join of a static table must compare a time", remedy)
    return bound


def keys_of_streams(lookups: Sequence[Lookup]) -> tuple[Predicate, ...]:
    """The conditions of lookups that may fail for a row of the stream by itself, which is a dead letter then."""
    return tuple(p for lookup in lookups for p in lookup.conditions if can_fail(p.expression))


def _check_evaluable(
    text: str, named: TablesNamed, conditions: Sequence[Predicate], kept_if: Sequence[Expression]
) -> None:
    """Refuse conditions on a table's rows that it may be impossible to evaluate: nobody knew what is found."""
    tables = {table.alias for table in named.tables}
    doubtful = [e for e in kept_if if can_fail(e)]
    for one in conditions:
        if isinstance(one, EquiPredicate | BandPredicate):
            doubtful += [side for side in (one.left, one.right) if can_fail(side) and side.aliases() & tables]
            doubtful += [part for part in beside(one) if part.aliases() & tables]
        elif can_fail(one.expression):
            doubtful.append(one.expression)
    if doubtful:
        raise LanguageError(
            f"a condition on a static table cannot be evaluated for every row: {infix(doubtful[0])}",
            place=place_of(text, named.tables[0].node),
            remedy="write TRY_CAST instead of CAST, and use NULLIF(x, 0) to the right of // and %",
        )


def _each(conditions: Iterator[Expression] | Sequence[Expression]) -> Iterator[Expression]:
    for condition in conditions:
        yield from conjuncts(condition)
