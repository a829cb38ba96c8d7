"""Manifests built by hand: two streams, queries over their join, and how far the streams have come."""

from __future__ import annotations

from dataclasses import replace

from midstream.model.manifest import Manifest, QueryEntry, StreamProgress
from midstream.model.schema import StreamSchema
from midstream.sharing.membership import enrol
from midstream.sql.ddl import parse_ddl
from midstream.sql.parse import bind_query

COLUMNS = "k BIGINT, v BIGINT, ts TIMESTAMP"


def text(size: int, where: str = "", column: str = "k") -> str:
    """The join of A and B within a window of so many microseconds."""
    more = f" AND {where}" if where else ""
    return f"SELECT A.{column} FROM A, B WHERE A.k = B.k{more} WINDOW {size} MICROSECONDS"


def begun(**given: object) -> Manifest:
    """A job before its first row, at step 0."""
    streams = {name: StreamSchema(name, parse_ddl(COLUMNS), "ts", 0) for name in "AB"}
    return replace(Manifest(step=0, sharing="mem_opt", streams=streams), **given)  # type: ignore[arg-type]


def at(manifest: Manifest, step: int, time: int) -> Manifest:
    """The manifest at a later step, when both streams have brought rows up to an event time."""
    progress = {name: StreamProgress(time, time, None, rows=step) for name in manifest.streams}
    return replace(manifest, step=step, progress=progress)


def entry(manifest: Manifest, sql: str, plan: str = "(A B)") -> QueryEntry:
    """The entry of a query that begins now."""
    return QueryEntry(bind_query(manifest, sql), plan, manifest.step)


def with_queries(manifest: Manifest, history: bool = True, **queries: str) -> Manifest:
    """The manifest with queries added, in their order."""
    for name, sql in queries.items():
        manifest = enrol(manifest, name, entry(manifest, sql), history=history)
    return manifest
