"""What a job puts out: each query's results, each stream's late rows and dead letters; all of it goes to sinks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from midstream.model.errors import MidstreamError, SinkError
from midstream.model.manifest import Manifest
from midstream.spark.folders import Folders
from midstream.spark.sinks import FileSink, FunctionSink, Sink, StagedStep, Staging, restored

RESULTS, LATE, DEAD_LETTERS = "results", "late", "dead_letters"


class JobOutput(NamedTuple):
    """One of `RESULTS` of a query, or of `LATE` and `DEAD_LETTERS` of a stream."""

    kind: str
    name: str


class OutputFile(NamedTuple):
    """A file that a task has staged for an output; manifests list them as they stand here."""

    kind: str
    name: str
    file: str
    rows: int


@dataclass
class Outputs:
    """The outputs of a job and the sinks they go to.

    `sinks` are those that its script, or a call while it runs, names; all others are made of what manifests name.
    """

    session: SparkSession
    folders: Folders
    sinks: dict[str, Sink]

    def open(self) -> None:
        """Have every sink of the script make ready."""
        for sink in self.sinks.values():
            sink.open()

    @contextmanager
    def adding(self, query: str, sink: Sink) -> Iterator[None]:
        """Have a new query's sink at hand, for a step may take the command as soon as it is logged; if the command is
        refused, as before.
        """
        before = self.sinks.get(query)
        if isinstance(sink, FunctionSink):
            self.sinks[query] = sink
        try:
            yield
        except MidstreamError:
            self.sinks.pop(query, None)
            self.sinks.update({} if before is None else {query: before})
            raise

    def named(self, manifest: Manifest) -> Manifest:
        """The manifest with the sink of every query written down."""
        entries = {n: replace(e, sink=self._results(n, e.sink).to_json()) for n, e in manifest.queries.items()}
        return replace(manifest, queries=entries)

    def stage(self, manifest: Manifest) -> dict[JobOutput, Staging]:
        """Where the tasks of a step write each output; nothing is there yet."""
        found = {}
        for output, sink in self._all(manifest):
            sink.open()
            found[output] = self._staging(output, sink, manifest.step)
            found[output].clear()
        return found

    def commit(self, manifest: Manifest) -> None:
        """Have the sinks commit what the manifest's step has staged. May be called again."""
        by_output: dict[JobOutput, list[str]] = {}
        for kind, name, file, _ in manifest.published.get("files", ()):
            by_output.setdefault(JobOutput(kind, name), []).append(file)
        for output, files in by_output.items():
            sink = self._sink(output, manifest)
            staging = self._staging(output, sink, manifest.step)
            sink.commit(StagedStep(output.name, manifest.step, staging, tuple(files), self.session))
            staging.clear()

    def forget_after(self, manifest: Manifest) -> None:
        """Have the sinks take back what steps later than the manifest's wrote."""
        for output, sink in self._all(manifest):
            sink.forget_after(output.name, manifest.step)

    def _all(self, manifest: Manifest) -> Iterator[tuple[JobOutput, Sink]]:
        kinds = [JobOutput(RESULTS, query) for query in manifest.queries]
        kinds += [JobOutput(kind, stream) for kind in (LATE, DEAD_LETTERS) for stream in manifest.streams]
        yield from ((output, self._sink(output, manifest)) for output in kinds)

    def _sink(self, output: JobOutput, manifest: Manifest) -> Sink:
        if output.kind == RESULTS:
            return self._results(output.name, manifest.queries[output.name].sink)
        return FileSink(self.folders.rejected(output.kind, output.name))

    def _results(self, query: str, value: Mapping[str, Any] | None) -> Sink:
        """The sink of a query whose manifest entry names `value`."""
        found = self.sinks.get(query) or restored(value, self.folders.results(query))
        if found is None:
            raise SinkError(
                f"the results of query {query!r} go to the function {dict(value or {})['function']}, which is not here",
                place=f"query {query}",
                remedy="name the function as the query's sink when the job is started",
            )
        return found

    def _staging(self, output: JobOutput, sink: Sink, step: int) -> Staging:
        return sink.stage(step, self.folders.scratch(output.name))
