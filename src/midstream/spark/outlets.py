"""Where each query's results and each stream's rejected rows go, staged by the tasks and put in place by the driver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow.parquet
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from midstream.model.errors import SinkError
from midstream.model.manifest import Manifest
from midstream.spark.folders import Folders
from midstream.spark.sinks import FileSink, FunctionSink, Sink

KINDS = ("late", "dead_letters")


class Outlets:
    """The sinks of a job's queries: those its script names, and those that manifests name."""

    def __init__(self, session: SparkSession, folders: Folders, sinks: Mapping[str, Sink]) -> None:
        self._session, self._folders, self.sinks = session, folders, dict(sinks)

    def sink(self, query: str, value: Mapping[str, Any] | None) -> Sink:
        """The sink of a query whose manifest entry names `value`."""
        found = self.sinks.get(query) or self._folders.sink_of(query, value)
        if found is None:
            raise SinkError(
                f"the results of query {query!r} go to the function {dict(value or {})['function']}, which is not here",
                place=f"query {query}",
                remedy="name the function as the query's sink when the job is started",
            )
        return found

    def named(self, manifest: Manifest) -> Manifest:
        """The manifest with the sink of every query written down."""
        entries = {n: replace(e, sink=self.sink(n, e.sink).to_json()) for n, e in manifest.queries.items()}
        return replace(manifest, queries=entries)

    def staging(self, manifest: Manifest) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
        """The staging folders of a step, empty: by query with the format, and by kind and stream."""
        step, folders, outputs = manifest.step, {}, {}
        for name, entry in manifest.queries.items():
            sink = self.sink(name, entry.sink)
            staged = self._folders.staged(name, sink)
            staged.discard(step)
            folders[name] = staged.staging(step), sink.format if isinstance(sink, FileSink) else "parquet"
        for kind in KINDS:
            for stream in manifest.streams:
                staged = self._folders.output(kind, stream)
                staged.discard(step)
                outputs[f"{kind}:{stream}"] = staged.staging(step)
        return folders, outputs

    def publish(self, manifest: Manifest) -> None:
        """Put everything in place that the manifest's step has staged. May be called again."""
        by_target: dict[tuple[str, str], list[str]] = {}
        for kind, name, file, _ in manifest.published.get("files", ()):
            by_target.setdefault((kind, name), []).append(file)
        for (kind, name), files in by_target.items():
            if kind == "results":
                self._publish_results(manifest, name, files)
            else:
                self._folders.output(kind, name).publish(manifest.step, files)

    def forget_after(self, manifest: Manifest) -> None:
        """Take back what steps later than the manifest's put in place."""
        for name, entry in manifest.queries.items():
            self._folders.staged(name, self.sink(name, entry.sink)).forget_after(manifest.step)
        for kind in KINDS:
            for stream in manifest.streams:
                self._folders.output(kind, stream).forget_after(manifest.step)

    def _publish_results(self, manifest: Manifest, query: str, files: list[str]) -> None:
        sink = self.sink(query, manifest.queries[query].sink)
        staged, step = self._folders.staged(query, sink), manifest.step
        if isinstance(sink, FunctionSink):
            paths = staged.staged(step, files)
            if not os.path.exists(paths[0]):
                return  # The function returned before the job died.
            schema = from_arrow_schema(pyarrow.parquet.read_schema(paths[0]), prefer_timestamp_ntz=True)
            sink.function(self._session.read.schema(schema).parquet(*paths), step, query)
            staged.discard(step)
        else:
            staged.publish(step, files)
