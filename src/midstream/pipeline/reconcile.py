"""A job script meets a checkpoint: what it declares now against what was declared when it last started.

Only what the script itself changed becomes a command. A plan, a number of lanes, a mode of sharing or a query that a
command changed since stays as the command left it: a job goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import pyarrow as pa

from midstream.commands.add_query import AddQuery
from midstream.commands.add_stream import names_of, refuse_taken_name
from midstream.commands.base import taken
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.optimize import Optimize
from midstream.commands.rescale import Rescale
from midstream.commands.reshare import Reshare
from midstream.commands.set_table import SetTable
from midstream.commands.spread import Spread
from midstream.logical.query import Query, query_of
from midstream.model.command import Command
from midstream.model.errors import CheckpointError, InputError, MidstreamError, QueryError
from midstream.model.manifest import (
    EMBEDDED,
    SPARK,
    DeclaredQuery,
    DeclaredSpread,
    LastDeclared,
    Manifest,
    Published,
    QueryEntry,
    StaticTable,
)
from midstream.model.node_spread import OFF
from midstream.model.optimization import OptimizerSettings
from midstream.model.schema import StreamSchema
from midstream.plan.notation import parse_plan
from midstream.runtime.watermark import watermark
from midstream.sql.join_parts import may_join
from midstream.sql.parse import check_registered, parse_query
from midstream.storage.memory_limit import MemoryLimit
from midstream.units.answers import cannot_be_taken_up, with_streams_changed

OPERATOR_STRATEGY = "gms"


DroppedNext = Callable[[Manifest], Collection[str]]
"""Which queries of a manifest its next step drops."""


@dataclass(frozen=True)
class Declared:
    """What a job script says: lanes, if it says so, how queries share, and of each its text, its plan and its sink.

    `optimizer` has the settings of the optimizer by query; under "" are those of queries that have none of their own.
    `tables` has the rows of static tables. The processes that join keep to a `limit` of memory.
    """

    lanes: int | None
    queries: Mapping[str, AddQuery]
    sharing: str
    optimizer: Mapping[str, OptimizerSettings] = field(default_factory=dict)
    tables: Mapping[str, SetTable] = field(default_factory=dict)
    limit: MemoryLimit | None = None

    @cached_property
    def kept(self) -> LastDeclared:
        """The declaration as a manifest keeps it."""
        queries = {name: _kept(query) for name, query in self.queries.items()}
        tables = {name: table.digest for name, table in self.tables.items()}
        return LastDeclared(self.lanes, self.sharing, queries, self.optimizer, tables)


def differences(manifest: Manifest, declared: Declared) -> tuple[Command, ...]:
    """Find the commands that bring a job to what its script declares."""
    found = [*settings(manifest, declared.lanes, declared.sharing), *tabled(manifest, declared.tables)]
    found += undeclared(manifest, declared.queries)
    for query in declared.queries.values():
        found += redeclared(manifest, query)
    return (*found, *optimized(manifest, declared.optimizer))


def undeclared(manifest: Manifest, declared: Collection[str]) -> tuple[Command, ...]:
    """Find the commands that drop the queries that a job's script declared last and declares no more."""
    gone = sorted(manifest.published.declared.queries.keys() - set(declared))
    return tuple(DropQuery(name) for name in gone if name in manifest.queries or name in manifest.refused)


def tabled(manifest: Manifest, declared: Mapping[str, SetTable]) -> tuple[Command, ...]:
    """Find the commands that give static tables the rows of a job's script.

    There are none for a table that the script gave the same rows before, unless it was dropped: what has refreshed a
    table since stays.
    """
    last = manifest.published.declared.tables
    return tuple(
        table for name, table in declared.items() if last.get(name) != table.digest or name not in manifest.tables
    )


def optimized(manifest: Manifest, declared: Mapping[str, OptimizerSettings]) -> tuple[Command, ...]:
    """Find the commands that bring a job to what its script now says of the optimizer, if it said otherwise before."""
    last = manifest.published.declared.optimizer
    changed = {name: settings for name, settings in declared.items() if last.get(name) != settings}
    return tuple(Optimize(name, settings) for name, settings in sorted(changed.items()))


def settings(manifest: Manifest, lanes: int | None, sharing: str | None) -> tuple[Command, ...]:
    """Find the commands that bring a job to the lanes and the mode of sharing of its script, if it names any."""
    last = manifest.published.declared
    found: list[Command] = []
    if lanes is not None and lanes not in (last.lanes, manifest.lanes):
        found.append(Rescale(lanes))
    if sharing is not None and sharing not in (last.sharing or manifest.sharing, manifest.sharing):
        found.append(Reshare(sharing))
    return tuple(found)


def redeclared(manifest: Manifest, declared: AddQuery) -> tuple[Command, ...]:
    """Find the commands that bring a job to one query of its script."""
    name = declared.query
    running, last = manifest.queries.get(name), manifest.published.declared.queries.get(name)
    if running is None:
        # A query that was refused was not dropped: it is declared until it runs.
        dropped_by_command = last is not None and last.sql == declared.sql and name not in manifest.refused
        return () if dropped_by_command else (declared,)
    if (running.operator is None) != (declared.operator is None):
        return (DropQuery(name), declared)
    found: list[Command] = []
    if running.sql != declared.sql and (last is None or last.sql != declared.sql):
        change = ChangeQuery(name, declared.sql).of_tree(declared)
        if not _is_possible(manifest, change):
            return (DropQuery(name), declared)
        found.append(change)
    if declared.above != running.operator and (last is None or last.operator != declared.above):
        options = declared.operator_options
        found.append(Migrate(name, "", OPERATOR_STRATEGY, operator=declared.operator, operator_options=options))
    if last is not None and _spread(declared) != last.spread:
        found += _respread(running, declared)
    if declared.plan is None or (last is not None and last.plan == declared.plan):
        return tuple(found)
    query = parse_query(declared.statement, manifest.streams, tables=manifest.table_schemas)
    plan = parse_plan(declared.plan, query).notation()
    return tuple(found) if plan == running.plan else (*found, Migrate(name, plan))


def with_declared(
    manifest: Manifest,
    *,
    lanes: int | None = None,
    sharing: str | None = None,
    query: AddQuery | None = None,
    dropped: str = "",
    optimizer: Mapping[str, OptimizerSettings] | None = None,
    table: SetTable | None = None,
) -> Manifest:
    """Declare one more thing in the manifest of a job that is declared bit by bit, or drop a query from it."""
    last = manifest.published.declared
    queries = {name: one for name, one in last.queries.items() if name != dropped}
    declared = LastDeclared(
        last.lanes if lanes is None else lanes,
        (last.sharing or manifest.sharing) if sharing is None else sharing,
        queries if query is None else {**queries, query.query: _kept(query)},
        last.optimizer if optimizer is None else optimizer,
        last.tables if table is None else {**last.tables, table.table: table.digest},
    )
    return replace(manifest, published=replace(manifest.published, declared=declared))


def _kept(query: AddQuery) -> DeclaredQuery:
    return DeclaredQuery(query.sql, query.plan, query.above, _spread(query))


def _spread(query: AddQuery) -> DeclaredSpread | None:
    return None if query.spread is None else DeclaredSpread(query.spread, query.nodes, query.spread_options)


def _respread(running: QueryEntry, declared: AddQuery) -> list[Command]:
    # None where the query is in lanes already and is to stay there.
    if declared.spread is None:
        return [] if running.nodes is None else [Spread(declared.query, OFF)]
    return [Spread(declared.query, declared.spread, declared.nodes, declared.spread_options)]


def _is_possible(manifest: Manifest, command: Command) -> bool:
    try:
        taken(manifest, command)
    except MidstreamError:
        return False
    return True


def refuse_other_host(newest: Manifest | None, host: str, place: str) -> None:
    """Raise where the newest manifest is of a job of another host, and nothing else can continue it."""
    if newest is None or newest.published.host == host:
        return
    if not newest.job:
        raise CheckpointError(
            "a checkpoint cannot be in the folder of a saved engine",
            place=place,
            remedy="use Engine.load, or name another folder",
        )
    what, remedy = {
        SPARK: ("an embedded engine", "run it with --engine embedded, or open it with ms.Engine(checkpoint=...)"),
        EMBEDDED: ("a job on Spark", "run it with --engine spark, or start it as an ms.Job"),
    }[host]
    raise CheckpointError(
        f"the checkpoint belongs to {what}, and only {what} can continue it",
        place=place,
        remedy=f"{remedy}, or name another folder",
    )


def with_streams(
    manifest: Manifest, streams: Mapping[str, StreamSchema], place: str, dropped: DroppedNext = lambda _: frozenset()
) -> Manifest:
    """Replace the streams of a manifest by those that the script declares now, new ones last.

    Columns may come and go as long as no running query reads them, lateness may change: a watermark never goes back. Of
    the queries that are `dropped` with the next step predicates may be missing. Raises for streams of another job.
    """
    known = manifest.pushed_streams
    refuse_other_streams(known, streams, place)
    read: dict[str, set[str]] = {name: set() for name in manifest.streams}
    for query_name in manifest.queries:
        query = _taken_up(manifest, query_name, dropped)
        for source in query.sources:
            read[source.stream] |= set(query.columns_of(source.alias))
    for name, old in known.items():
        _check_columns(name, old, streams[name], read[name], place)
    progress = dict(manifest.progress)
    for name, old in known.items():
        if name in progress and old.lateness != streams[name].lateness:
            progress[name] = replace(progress[name], floor=watermark(old, progress[name]))
    for name in streams.keys() - known.keys():
        refuse_taken_name("stream", name, names_of(manifest))
    now = {name: streams.get(name, old) for name, old in manifest.streams.items()}
    found = replace(manifest, streams={**now, **streams}, progress=progress)
    if found.streams == manifest.streams:
        return found
    found = with_streams_changed(found, {name: old for name, old in known.items() if old != streams[name]})
    _check_groups(manifest, found, place, dropped)
    return found


def _check_groups(before: Manifest, now: Manifest, place: str, dropped: DroppedNext) -> None:
    # `SELECT *` or `SELECT DISTINCT *` must mean the groups that a query keeps.
    for name, entry in before.queries.items():
        if "*" not in entry.sql:
            continue  # Its columns have names, which stand for what they stood for.
        kept, meant = (_taken_up(one, name, dropped).groups for one in (before, now))
        if kept is not None and meant is not None and kept != meant:
            raise CheckpointError(
                f"the columns of * cannot change, because query {name!r} groups by the columns of *",
                place=place, remedy="declare the stream's columns in their former order, or drop the query first",
            )  # fmt: skip


def with_stream(
    manifest: Manifest, stream: StreamSchema, ahead: Callable[[], Manifest], dropped: DroppedNext | None
) -> Manifest:
    """Add a stream to a manifest, or replace one by its declaration of now.

    Args:
        manifest: The manifest.
        stream: The declaration.
        ahead: Makes the manifest as the waiting commands will leave it. A new name must not be taken there: the stream
            would replace the answers of a query of its name, which others read.
        dropped: Says of which queries predicates may be missing; None if a stream may not be declared again.
    """
    name, pushed = stream.name, manifest.pushed_streams
    if dropped is not None and name in pushed:
        return with_streams(manifest, {**pushed, name: stream}, f"stream {name}", dropped)
    if name in manifest.streams:
        what = "stream" if name in pushed else "query"
        raise InputError(f"there is already a {what} {name!r}", place=f"stream {name}", remedy="use another name")
    refuse_taken_name("stream", name, names_of(ahead()))
    return replace(manifest, streams={**manifest.streams, name: stream})


def _taken_up(manifest: Manifest, name: str, dropped: DroppedNext) -> Query:
    # The query is known to be right, but may ask a predicate that this program does not have.
    query = query_of(manifest.queries[name])
    try:
        check_registered(query)
    except QueryError as error:
        if name not in dropped(manifest):
            raise cannot_be_taken_up(name, error) from error
    return query


def refuse_other_streams(known: Collection[str], declared: Collection[str], place: str) -> None:
    """Raise where a job does not declare all streams that its checkpoint has; it may declare more."""
    if not set(known) <= set(declared):
        raise CheckpointError(
            f"the checkpoint has the streams {', '.join(known)}, but this job declares {', '.join(declared)}",
            place=place,
            remedy="declare all streams of the checkpoint, or use a new checkpoint; an embedded engine can also drop "
            "streams",
        )


def _check_columns(name: str, old: StreamSchema, new: StreamSchema, read: set[str], place: str) -> None:
    remedy = "declare the stream as it was, or use a new checkpoint"
    if old.timestamp != new.timestamp:
        raise CheckpointError(
            f"stream {name!r} cannot change its timestamp column from {old.timestamp!r} to {new.timestamp!r}",
            place=place,
            remedy=remedy,
        )
    if old.time_unit != new.time_unit:
        raise CheckpointError(
            f"stream {name!r} cannot change the unit of its timestamps from {old.time_unit} to {new.time_unit}",
            place=place,
            remedy=remedy,
        )
    for column in sorted(read | {old.timestamp}):
        before, now = old.columns.field(column).type, _type_of(new.columns, column)
        if now != before:
            raise CheckpointError(
                f"column {column!r} of stream {name!r} cannot change from {before} to {now or 'missing'}",
                place=place,
                remedy=remedy,
            )


def _type_of(columns: pa.Schema, name: str) -> pa.DataType | None:
    return columns.field(name).type if name in columns.names else None


def streams_for(
    query: AddQuery,
    streams: Mapping[str, StreamSchema],
    declared: Mapping[str, AddQuery],
    host: str,
    tables: Mapping[str, StaticTable] = MappingProxyType({}),
) -> Manifest:
    """Make a manifest with the streams and static tables that a query reads.

    They include the answers of its subqueries, and of queries `declared` before. Raises what adding the query on the
    `host` would, where it may read answers.
    """
    parts = query.statement.parts
    nothing = Manifest(job="declared", streams=dict(streams), tables=dict(tables), published=Published(host))
    has_parts = bool(parts.queries) or may_join(parts.whole)
    if not has_parts and not _named(query.sql, declared) and not _named(query.sql, tables):
        return nothing
    return taken(_with_named(nothing, query.sql, declared), query)


def _with_named(manifest: Manifest, sql: str, declared: Mapping[str, AddQuery]) -> Manifest:
    # The queries that a text names may name others in turn.
    for other in _named(sql, declared):
        if other not in manifest.queries:
            before = dict(list(declared.items())[: list(declared).index(other)])
            manifest = _with_named(manifest, declared[other].sql, before)
            manifest = taken(manifest, declared[other])
    return manifest


def _named(sql: str, declared: Iterable[str]) -> list[str]:
    written = sql.lower()
    return [other for other in declared if other.lower() in written]
