"""A query's text taken apart: its SELECT, what FROM names, and what names mean; nothing of it is typed yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from midstream.logical.join_times import JoinTimes
from midstream.logical.query import Source
from midstream.logical.result_time import time_of
from midstream.model.schema import StreamSchema, TableSchema
from midstream.sql.dialect import CqlText
from midstream.sql.enrichment import Attacher, EnrichedStream, Enrichment
from midstream.sql.existence import with_existence_joined
from midstream.sql.from_clause import FromClause, sources_of
from midstream.sql.join_order import JoinOrder, blocks_of, joined_sources
from midstream.sql.join_parts import JoinPart, join_part_of
from midstream.sql.moments import columns_of_time
from midstream.sql.parts import Statement
from midstream.sql.place import error_at
from midstream.sql.qualified import qualified
from midstream.sql.relation_operator import relation_of
from midstream.sql.scope import Scope, find_name, starred
from midstream.sql.select_list import distinct_grouped, select_of
from midstream.sql.set_operations import NUMBER
from midstream.sql.subqueries import Shown, common_tables, names_shown, selected, shown_of
from midstream.sql.table_join import TablesNamed, without_tables
from midstream.sql.top_n_clause import TopNClause, top_n_of, with_qualify
from midstream.sql.unnested import with_items_joined


def with_joins_on(found: CqlText, tree: exp.Select, streams: Mapping[str, StreamSchema | TableSchema]) -> exp.Select:
    """Return the query with ON for USING and NATURAL; raises LanguageError for a column that one side lacks."""
    joins = tree.args.get("joins") or []
    if not any(join.args.get("using") or _is_natural(join) for join in joins):
        return tree
    written = tree.copy()
    joined = _Joined(found, written, streams)
    for join in written.args["joins"]:
        joined.add(join)
    for key, part in written.args.items():
        if key in ("from_", "joins", "with_", "expressions", "window", "every", "subtrahends") or not part:
            continue
        nodes = part if isinstance(part, list) else [part]
        changed = [node.transform(joined.shown) for node in nodes]
        written.set(key, changed if isinstance(part, list) else changed[0])
    written.set("expressions", [one for item in written.expressions for one in joined.items(item)])
    return written


def _is_natural(join: exp.Expr) -> bool:
    return str(join.args.get("method") or "").upper() == "NATURAL"


class _Joined:
    """The sources of FROM up to a join, and the columns that are one, by name in small letters."""

    def __init__(self, found: CqlText, tree: exp.Select, streams: Mapping[str, StreamSchema | TableSchema]) -> None:
        self.found, self.streams, self.common = found, streams, common_tables(found.text, tree)
        self.merged: dict[str, tuple[str, exp.Expr]] = {}
        self.sources: dict[str, tuple[str, ...]] = {}
        self._source(tree.args["from_"].this)

    def _source(self, item: exp.Expr) -> None:
        self.sources[item.alias_or_name] = names_shown(item, self.common, self.streams, starred_only=True)

    def add(self, join: exp.Expr) -> None:
        """Write the condition of the next join, and note the columns that it makes one."""
        before, item = {**self.sources}, join.this
        if (on := join.args.get("on")) is not None:
            join.set("on", on.transform(self.shown))
        self._source(item)
        names = list(join.args.get("using") or [])
        if _is_natural(join):
            names = self._common_names(join, before)
            join.set("method", None)
        conditions = [self._condition(name, join, before) for name in names]
        if conditions:
            join.set("using", None)
            join.set("on", exp.and_(*conditions, copy=False))
        if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
            del self.sources[item.alias_or_name]

    def _common_names(self, join: exp.Expr, before: Mapping[str, tuple[str, ...]]) -> list[exp.Expr]:
        own = self.sources[join.this.alias_or_name]
        known = [name for names in before.values() for name in names]
        found: list[exp.Expr] = [exp.to_identifier(name, quoted=True) for name in own if find_name(name, known)]
        if not found:
            remedy = "write JOIN ... ON; or CROSS JOIN, if each row is to meet all others"
            raise error_at(
                self.found.text,
                join.this,
                "NATURAL JOIN needs sources that have a column in common",
                remedy,
            )
        return found

    def _condition(self, name: exp.Expr, join: exp.Expr, before: Mapping[str, tuple[str, ...]]) -> exp.Expr:
        alias, key = join.this.alias_or_name, name.name.lower()
        first = next((one for one, names in before.items() if find_name(name.name, names)), None)
        own = find_name(name.name, self.sources[alias])
        if first is None or not own:
            where = alias if first is not None else "the sources before"
            message = f"USING names column {name.name!r}, which {where} lacks"
            raise error_at(self.found.text, name, message, "write ON")
        given = find_name(name.name, before[first])[0]
        title, left = self.merged.get(key) or (given, _column(name, given, first))
        right = _column(name, own[0], alias)
        side, kind = (str(join.args.get(one) or "").upper() for one in ("side", "kind"))
        if kind in ("SEMI", "ANTI"):
            both = left
        else:
            both = {"RIGHT": right, "FULL": exp.Coalesce(this=left.copy(), expressions=[right.copy()])}.get(side, left)
        self.merged[key] = title, both
        return exp.EQ(this=left.copy(), expression=right.copy())

    def shown(self, node: exp.Expr) -> exp.Expr:
        """Return what a column without a source stands for; any other node as it is."""
        bare = isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier)
        one = self.merged.get(node.name.lower()) if bare else None
        return node if one is None else one[1].copy()

    def items(self, item: exp.Expr) -> list[exp.Expr]:
        if isinstance(item, exp.Star) and not any(item.args.values()):
            return self._all()
        written = item.transform(self.shown)
        if written is not item and isinstance(item, exp.Column) and written != item:
            return [exp.alias_(written, self.merged[item.name.lower()][0], quoted=True)]
        return [written]

    def _all(self) -> list[exp.Expr]:
        found, given = list[exp.Expr](), set[str]()
        for alias, names in self.sources.items():
            for name in names:
                if (one := self.merged.get(name.lower())) is None:
                    found.append(exp.column(name, alias, quoted=True))
                elif name.lower() not in given:
                    given.add(name.lower())
                    found.append(exp.alias_(one[1].copy(), one[0], quoted=True))
        return found


def _column(name: exp.Expr, spelled: str, alias: str) -> exp.Expr:
    identifier = name.copy()
    identifier.set("this", spelled)
    identifier.set("quoted", True)
    return exp.column(identifier, exp.to_identifier(alias, quoted=True))


@dataclass(frozen=True)
class Clauses:
    """The clauses of a query. `tree` reads streams only; the static `tables` that FROM names stand next to it.

    `shown` has by alias what subqueries and tables show, `scope` what names mean. An `enrichment` is there where parts
    of the query look rows up in the tables. `relation` is the operator on what the windows hold, which answers else
    than a join does, and `qualified` the call by which QUALIFY asks for a node of another package.
    """

    text: str
    found: CqlText
    tree: exp.Select
    top: TopNClause | None
    tables: TablesNamed
    source: FromClause
    shown: Mapping[str, Shown]
    scope: Scope
    enrichment: Enrichment | None
    relation: str = ""
    qualified: exp.Anonymous | None = None
    join: JoinPart | None = None

    @property
    def where(self) -> tuple[exp.Expr, ...]:
        """The conditions of WHERE that no join which is a part evaluates."""
        return self._where if self.join is None else self.join.where

    @property
    def on(self) -> tuple[exp.Expr, ...]:
        """The conditions of joins that are no parts."""
        return tuple(node for _, node in self.source.conditions) if self.join is None else self.join.on

    @property
    def parts(self) -> tuple[EnrichedStream | JoinPart, ...]:
        """The parts, queries of their own, each before those that read its answers."""
        enriched = () if self.enrichment is None else self.enrichment.streams
        return enriched if self.join is None else (*enriched, self.join)

    def sources(self, streams: Mapping[str, StreamSchema]) -> tuple[Source, ...]:
        """The sources, where they are parts as the answers of these; raises LanguageError where a part does not run."""
        sources = self.source.sources if self.join is None else self.join.sources_over(streams)
        return sources if self.enrichment is None else self.enrichment.sources(sources, streams)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where the sources stand in the text."""
        return self.source.offsets if self.join is None else self.join.offsets

    @property
    def names(self) -> Scope:
        """What names mean, those of what parts answer included."""
        scope = self.scope if self.enrichment is None else self.enrichment.scope(self.scope)
        return scope if self.join is None else self.join.scope(scope)

    @property
    def _where(self) -> tuple[exp.Expr, ...]:
        if self.enrichment is not None:
            return self.enrichment.where
        clause = self.tree.args.get("where")
        return () if clause is None else (clause.this,)

    def times(self, streams: Mapping[str, StreamSchema]) -> JoinTimes:
        """What is known of the times of the rows in its results."""
        if self.join is not None:
            return self.join.times
        return self._order(streams).times

    def _order(self, streams: Mapping[str, StreamSchema]) -> JoinOrder:
        joined = joined_sources(self.tree, self.source.sources, self.source.offsets, self.source.conditions)
        order = JoinOrder(self.found, blocks_of(joined), self.tables.opened(self.names), streams)
        return order.with_where(self._where)

    def with_join(self, streams: Mapping[str, StreamSchema]) -> Clauses:
        """The clauses with the part that joins of the query are, if they are one."""
        enriched = {} if self.enrichment is None else {one.alias: one.part for one in self.enrichment.streams}
        scope = self.tables.opened(self.names)
        join = join_part_of(self.found, self.tree, self.source, self._where, scope, streams, enriched)
        return self if join is None else replace(self, tree=join.tree, join=join)


def clauses_of(
    query: Statement, streams: Mapping[str, StreamSchema], tables: Mapping[str, TableSchema], scope: Scope
) -> Clauses:
    """The clauses of a query; `scope` says how its expressions are to be bound. Raises LanguageError."""
    text = query.text
    tree, asked = qualified(with_qualify(with_items_joined(text, select_of(text, query.parts.whole))))
    found = CqlText.of(text, tree)
    tree = _different(tree, streams)
    tree = distinct_grouped(found, tree, _columns_of_time(text, tree, streams))
    tree, top = top_n_of(found, tree)
    tree = with_existence_joined(found, tree, {**streams, **tables})
    relation = relation_of(found, tree)
    tree = with_joins_on(found, tree, {**streams, **tables})
    tree, named = without_tables(found, tree, streams, tables)
    source = sources_of(found, tree, streams)
    shown = {
        s.alias: shown_of(text, s.alias, streams[s.stream].columns, source.selects[s.alias], scope)
        for s in source.sources
        if s.alias in source.selects
    }
    columns = {
        s.alias: shown[s.alias].schema if s.alias in shown else streams[s.stream].columns for s in source.sources
    }
    named = named.typed(text, columns, shown, scope)
    shown |= {table.alias: table.shown(text, scope) for table in named.tables}
    columns |= {table.alias: shown[table.alias].schema for table in named.tables}
    views = {(alias, name): e for alias, one in shown.items() for name, e in one.columns}
    scope = replace(
        scope,
        sources=named.in_order(columns),
        views=views,
        timeless=frozenset(table.alias for table in named.tables),
        moment=time_of(streams[s.stream].columns.field(streams[s.stream].timestamp).type for s in source.sources),
    )
    enriched = named.tables and (bool(relation) or not _only_selects(found, tree, top))
    enrichment = Attacher(found, tree, named, source.sources, streams, scope).run() if enriched else None
    return Clauses(text, found, tree, top, named, source, shown, scope, enrichment, relation, asked).with_join(streams)


def _different(tree: exp.Select, streams: Mapping[str, StreamSchema]) -> exp.Select:
    """Return the query with the columns of its only stream in the place of DISTINCT's `*`."""
    known = find_name(tree.args["from_"].this.name, streams)
    if not tree.args.get("distinct") or tree.args.get("joins") or not known or len(tree.expressions) > 1:
        return tree
    if not isinstance(tree.expressions[0], exp.Star) or any(tree.expressions[0].args.values()):
        return tree
    written, names = tree.copy(), starred(streams[known[0]].columns)
    written.set("expressions", [exp.column(name, quoted=True) for name in names if name != NUMBER])
    return written


def _columns_of_time(text: str, tree: exp.Select, streams: Mapping[str, StreamSchema]) -> frozenset[str]:
    """Return the columns of a query's only stream that are equal only at equal times."""
    table = tree.args["from_"].this
    if tree.args.get("joins"):
        return frozenset()
    stream = selected(text, table, common_tables(text, tree)).table if tree.args.get("distinct") else table
    known = find_name(stream.name, streams)
    return columns_of_time(streams[known[0]]) if known else frozenset()


def _only_selects(found: CqlText, tree: exp.Select, top: TopNClause | None) -> bool:
    """Return whether a query reads one stream and answers its rows, each as it comes in."""
    if found.every is not None or found.subtrahends or found.windowed or top is not None:
        return False
    if any(tree.args.get(key) for key in ("joins", "group", "having")):
        return False
    return not any(item.find(exp.AggFunc, exp.Window) for item in tree.expressions)
