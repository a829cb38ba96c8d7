"""Texts of queries read over a manifest's streams, each once."""

from __future__ import annotations

from functools import lru_cache

from midstream.language.parse import parse_query
from midstream.language.query import Query
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema

Streams = tuple[StreamSchema, ...]


def parsed(manifest: Manifest, sql: str) -> Query:
    """A query's text over a manifest's streams, parsed once."""
    return parsed_over(tuple(manifest.streams.values()), sql)


@lru_cache(maxsize=1 << 14)
def parsed_over(streams: Streams, sql: str) -> Query:
    """A query's text over these streams, parsed once."""
    return parse_query(sql, {stream.name: stream for stream in streams})
