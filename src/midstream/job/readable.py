"""The streams that a query may read which is declared but does not run yet: also answers of those declared before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from midstream.language.join_parts import may_join
from midstream.language.parts import Statement, check_text
from midstream.model.manifest import HOST, Manifest, StaticTable
from midstream.model.schema import StreamSchema
from midstream.step.commands.add_query import AddQuery
from midstream.step.commands.base import taken


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
    check_text(query.sql)
    nothing = Manifest(job="declared", streams=dict(streams), tables=dict(tables), published={HOST: host})
    parts = Statement.of(query.sql).parts
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
