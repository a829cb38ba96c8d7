"""Streams enriched from static tables, for queries that do more than select: each a part, a query of its own.

`SELECT p.country, COUNT(*) FROM bids [RANGE 5 MINUTES] AS b JOIN people AS p ON p.id = b.bidder GROUP BY ...` reads in
the place of `bids` the answers of `SELECT "b"..., "p"."country" FROM bids AS "b" JOIN people AS "p" ON ...`. So a row
is looked up once, as it comes in, whatever is then made of it: joins, aggregates, migrations and sharing know nothing
of tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from midstream.expr.expression import Column, Expression
from midstream.logical.predicates import conjuncts
from midstream.logical.query import Lookups, Query, Source
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.bind import Binder
from midstream.sql.dialect import CqlText
from midstream.sql.parts import Statement
from midstream.sql.place import place_of
from midstream.sql.scope import Scope, find_name
from midstream.sql.sql_tree import anded, join_of, source_of, titled
from midstream.sql.subqueries import as_subquery, common_tables
from midstream.sql.table_join import NamedTable, TablesNamed


@dataclass(frozen=True)
class EnrichedStream:
    """A stream under an alias and what is looked up for its rows: the `part` that answers both, its text, and by name
    of the table's alias and column what the part calls it. `conditions` are those of the text that the part evaluates.
    """

    alias: str
    part: str
    statement: Statement
    columns: Mapping[tuple[str, str], Column]
    conditions: tuple[Expression, ...]

    def check(self, query: Query) -> None:
        """Raise LanguageError unless the part, parsed, evaluates what the text says: it was written out again."""
        found = query.on_top.lookups if isinstance(query.on_top, Lookups) else ()
        lookups = [predicate.expression for one in found for predicate in one.conditions]
        evaluated = {part.text() for one in (*lookups, *(e for _, e in query.selections)) for part in conjuncts(one)}
        missing = [part.text() for one in self.conditions for part in conjuncts(one) if part.text() not in evaluated]
        if missing:
            raise LanguageError(
                f"midstream must look up a static table before it joins the streams, and cannot evaluate this "
                f"condition between {self.alias!r} and the table so early: {missing[0]}",
                remedy="join the table with its stream in a subquery",
            )


@dataclass(frozen=True)
class Enrichment:
    """The enriched streams of a query, and the conditions of WHERE that no part evaluates."""

    streams: tuple[EnrichedStream, ...]
    where: tuple[exp.Expr, ...]

    def sources(self, sources: Sequence[Source], streams: Mapping[str, StreamSchema]) -> tuple[Source, ...]:
        """The sources, those that are enriched as the answers of their parts; raises LanguageError where these are not
        among the streams.
        """
        parts = {one.alias: one.part for one in self.streams}
        for alias, part in parts.items():
            if part not in streams:
                remedy = "add the query to an engine or a job, which adds its parts first"
                raise LanguageError(f"no running query joins {alias!r} with its static tables", remedy=remedy)
        return tuple(replace(s, stream=parts.get(s.alias, s.stream)) for s in sources)

    def scope(self, scope: Scope) -> Scope:
        """What names mean over the answers of the parts: columns of tables are columns of these."""
        enriched = {one.alias for one in self.streams}
        views = {at: shown for at, shown in scope.views.items() if at[0] not in enriched}
        views |= {at: column for one in self.streams for at, column in one.columns.items()}
        return replace(scope, views=views)


class Attacher:
    """Finds the stream that each table belongs to, and writes the texts of the parts.

    The `tree` has no tables; of the `scope` they are sources too.
    """

    def __init__(
        self,
        found: CqlText,
        tree: exp.Select,
        named: TablesNamed,
        sources: Sequence[Source],
        streams: Mapping[str, StreamSchema],
        scope: Scope,
    ) -> None:
        self.found, self.tree, self.named, self.scope = found, tree, named, scope
        nodes = [tree.args["from_"].this, *(join.this for join in tree.args.get("joins") or [])]
        self.nodes = {source.alias: node for source, node in zip(sources, nodes, strict=False)}
        self.times = {source.alias: streams[source.stream].timestamp for source in sources}
        self.common = common_tables(found.text, tree)
        self.binder = Binder(found.text, scope)

    def run(self) -> Enrichment:
        """Enrich the streams; raises LanguageError where a table is tied to no single stream."""
        where = self.tree.args.get("where")
        rest = [] if where is None else list(anded(where.this, bare=False))
        bound = {id(node): self.binder.condition(node) for node in rest}
        owner: dict[str, str] = {}
        own: dict[str, list[tuple[exp.Expr, Expression]]] = {}
        for table in self.named.tables:
            on = [(node, self.binder.condition(node)) for one in table.on for node in anded(one, bare=False)]
            if table.kind == "inner" and table.latest is None:
                on += [(node, bound[id(node)]) for node in rest if table.alias in bound[id(node)].aliases()]
            told = [e for _, e in on] if table.items is None else [table.items]
            owner[table.alias] = home = self._home(table, told, owner)
            within = {home, *(alias for alias, other in owner.items() if other == home)}
            own[table.alias] = [(node, e) for node, e in on if e.aliases() <= within]
            taken = {id(node) for node, _ in own[table.alias]}
            strange = [node for node, _ in on if id(node) not in taken and not any(node is one for one in rest)]
            if strange and (table.kind != "inner" or table.latest is not None):
                why = "cannot join a static table with several streams by an outer or as-of join"
                raise self._error(strange[0], why)
            rest = [node for node in rest if id(node) not in taken] + strange
            bound |= {id(node): e for node, e in on}
        enriched = []
        for home in dict.fromkeys(owner.values()):
            tables = [table for table in self.named.tables if owner[table.alias] == home]
            enriched.append(self._part(home, tables, own, rest))
        return Enrichment(tuple(enriched), tuple(rest))

    def _home(self, table: NamedTable, conditions: Sequence[Expression], owner: Mapping[str, str]) -> str:
        """The alias of the stream that a table is tied to: the first that a condition reads with nothing else."""
        homes = list[str]()
        for condition in conditions:
            others = condition.aliases() - {table.alias}
            streams = {owner.get(alias, alias) for alias in others}
            tied = table.alias in condition.aliases() or table.is_list
            homes += streams if tied and len(streams) == 1 else []
        home = homes[0] if homes else next(iter(self.nodes))
        if home not in self.nodes:
            raise self._error(table.node, f"cannot join a static table with {home!r}, which EXCEPT subtracts")
        if table.kind != "left" and home in self._padded():
            what = "unnest a list of" if table.is_list else "join a static table with"
            raise self._error(table.node, f"cannot {what} {home!r}, because an outer join may fill {home!r} with NULL")
        return home

    def _padded(self) -> set[str]:
        """Return the aliases of streams whose columns an outer join may give as NULL."""
        aliases, found = list(self.nodes), set[str]()
        for at, join in enumerate(self.tree.args.get("joins") or [], 1):
            side = str(join.args.get("side") or "").upper()
            found |= {aliases[at]} if side in ("LEFT", "FULL") else set()
            found |= set(aliases[:at]) if side in ("RIGHT", "FULL") else set()
        return found

    def _part(
        self,
        home: str,
        tables: Sequence[NamedTable],
        own: Mapping[str, Sequence[tuple[exp.Expr, Expression]]],
        rest: Sequence[exp.Expr],
    ) -> EnrichedStream:
        read = self._names_read(rest)
        first = [name for name in self._columns(home) if read is None or name.lower() in read]
        first += [] if self.times[home] in first else [self.times[home]]
        items = [titled(home, name, name) for name in first]
        columns: dict[tuple[str, str], Column] = {}
        for table in tables:
            for name, kind in self._columns(table.alias).items() if table.is_visible else ():
                if read is None or name.lower() in read:
                    title = self._free(f"{table.alias}.{name}", self._columns(home))
                    items.append(titled(table.alias, name, title))
                    columns[table.alias, name] = Column(kind, home, title)
        joins = [
            join_of(
                table.kind,
                table.node.copy() if table.is_list else self._source(table.node, table.alias),
                [node for node, _ in own[table.alias]],
                method=None if table.latest is None else "ASOF",
            )
            for table in tables
        ]
        source = self._source(self.nodes[home], home)
        tree = exp.Select(expressions=items, from_=exp.From(this=source), joins=joins)
        part = Statement(self.found.text, tree, is_part=True)
        conditions = tuple(e for table in tables for _, e in own[table.alias])
        return EnrichedStream(home, part.name(home), part, columns, conditions)

    def _columns(self, alias: str) -> dict[str, object]:
        return {column.name: column.type for column in self.scope.columns(alias)}

    def _names_read(self, rest: Sequence[exp.Expr]) -> set[str] | None:
        """Return the names of columns, in small letters, that what is left of the query may read; None for all."""
        clauses = [part for key, part in self.tree.args.items() if key not in ("where", "with_")]
        nodes = [one for part in clauses for one in (part if isinstance(part, list) else [part])]
        named = names_read([*nodes, *rest])
        if self.found.windowed or named is None:
            return None
        return named | {name.lower() for one in self.found.subtrahends for name, _ in one.columns}

    def _source(self, node: exp.Expr, alias: str) -> exp.Expr:
        select = self.common.get(node.name.lower()) if isinstance(node, exp.Table) else None
        return as_subquery(select, node) if select is not None else source_of(node, alias)

    @staticmethod
    def _free(title: str, taken: Mapping[str, object]) -> str:
        while find_name(title, taken):
            title += "_"
        return title

    def _error(self, node: exp.Expr, message: str) -> LanguageError:
        return LanguageError(
            f"a query {message}",
            place=place_of(self.found.text, node),
            remedy="join the table, or the list, with its stream in a subquery: FROM (SELECT ... FROM stream JOIN ...) "
            "AS x",
        )


def names_read(nodes: Sequence[object]) -> set[str] | None:
    """The names of columns, in small letters, that parts of a query may read; None for all."""
    trees = [node for node in nodes if isinstance(node, exp.Expr)]
    stars = (star for node in trees for star in node.find_all(exp.Star))
    if any(not isinstance(star.parent, exp.Count) for star in stars):
        return None
    return {part.name.lower() for node in trees for column in node.find_all(exp.Column) for part in column.parts}
