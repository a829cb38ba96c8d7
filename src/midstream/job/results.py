"""Where the committed results of a job's query are, for the next job that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from midstream.checkpoint.folders import Folders
from midstream.language.parse import bind_query
from midstream.language.query import query_of
from midstream.model.errors import QueryError, SinkError
from midstream.model.manifest import Manifest, QueryEntry
from midstream.sinks import FileSink, restored
from midstream.step.commands.add_query import AddQuery
from midstream.step.result_columns import result_columns

STREAMED_FORMAT = "parquet"
"""The one format of files that has every type; from texts a reader would make NULL of what it cannot read."""


@dataclass(frozen=True)
class CommittedResults:
    """The sink of files that a query's results go to, and their columns."""

    sink: FileSink
    columns: pa.Schema


def committed_results(
    folders: Folders, manifest: Manifest, query: str, declared: Mapping[str, AddQuery] | None = None
) -> CommittedResults:
    """Find the results of a query that the manifest has, or that is `declared` and begins with the next step.

    Raises a `QueryError` where there is no such query, and a `SinkError` where its results are no Parquet files.
    """
    declared = declared or {}
    entry = manifest.queries.get(query) or declared.get(query)
    if entry is None or (isinstance(entry, QueryEntry) and entry.part):
        known = ", ".join(sorted({*manifest.asked_queries, *declared})) or "none yet"
        raise QueryError(f"there is no query {query!r}", place=folders.root, remedy=f"the job's queries are: {known}")
    sink = restored(entry.sink, folders.results(query))
    if not isinstance(sink, FileSink) or sink.format != STREAMED_FORMAT:
        raise SinkError(
            f"the results of query {query!r} do not go to {STREAMED_FORMAT} files",
            place=f"query {query}",
            remedy=f"give it a sink of files in the format {STREAMED_FORMAT}, or read its sink by Spark's own source",
        )
    asked = query_of(entry) if isinstance(entry, QueryEntry) else bind_query(manifest, entry.sql)
    return CommittedResults(sink, result_columns(asked, entry.operator))
