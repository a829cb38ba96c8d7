"""Texts of queries and plans read over a manifest's streams, each once."""

from __future__ import annotations

from functools import lru_cache

from midstream.language.parse import parse_query
from midstream.language.query import Query
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema
from midstream.plan.notation import parse_plan
from midstream.plan.signature import relabel_plan
from midstream.sharing.shape import Shape, shape_of

Streams = tuple[StreamSchema, ...]


def parsed(manifest: Manifest, sql: str) -> Query:
    """A query's text over a manifest's streams, parsed once."""
    return _parsed(tuple(manifest.streams.values()), sql)


def shape_in(manifest: Manifest, sql: str) -> Shape:
    """What of a query's text matters to sharing."""
    return _shape(tuple(manifest.streams.values()), sql)


def canonical_plan(manifest: Manifest, sql: str, plan: str) -> str:
    """A query's plan in terms of the labels it shares with others."""
    shape = shape_in(manifest, sql)
    return relabel_plan(parse_plan(plan, shape.user), shape.names).notation()


def own_plan(manifest: Manifest, sql: str, notation: str) -> str:
    """A plan in terms of labels, as the query itself would write it."""
    shape = shape_in(manifest, sql)
    back = {label: alias for alias, label in shape.names.items()}
    return relabel_plan(parse_plan(notation, shape.query), back).notation()


@lru_cache(maxsize=1 << 14)
def _parsed(streams: Streams, sql: str) -> Query:
    return parse_query(sql, {stream.name: stream for stream in streams})


@lru_cache(maxsize=1 << 14)
def _shape(streams: Streams, sql: str) -> Shape:
    return shape_of(_parsed(streams, sql))
