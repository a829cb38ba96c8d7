"""The streams that a query may read which is declared but does not run yet: also answers of those declared before."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.language.parts import parts_of
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema
from midstream.step.commands.add_query import AddQuery
from midstream.step.commands.base import taken


def streams_for(
    name: str, sql: str, streams: Mapping[str, StreamSchema], declared: Mapping[str, AddQuery]
) -> Mapping[str, StreamSchema]:
    """The streams, with those of the answers that a query reads: of its subqueries, and of queries `declared` before.

    Raises what adding the query would, where it reads answers.
    """
    if not parts_of(sql).queries and not _named(sql, declared):
        return streams
    below = _with_named(Manifest(job="declared", streams=dict(streams)), sql, declared)
    return taken(below, AddQuery(name, sql)).streams


def _with_named(manifest: Manifest, sql: str, declared: Mapping[str, AddQuery]) -> Manifest:
    """The manifest with the queries that a text may name, and those that they may name in turn."""
    for other in _named(sql, declared):
        if other not in manifest.queries:
            before = dict(list(declared.items())[: list(declared).index(other)])
            manifest = _with_named(manifest, declared[other].sql, before)
            manifest = taken(manifest, AddQuery(other, declared[other].sql, operator=declared[other].operator))
    return manifest


def _named(sql: str, declared: Mapping[str, AddQuery]) -> list[str]:
    written = sql.lower()
    return [other for other in declared if other.lower() in written]
