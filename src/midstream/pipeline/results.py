"""The committed results of a job's query, for the next job that reads them: where they are, and step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.reader import Checkpoint
from midstream.commands.add_query import AddQuery
from midstream.logical.query import query_of
from midstream.model.errors import CheckpointError, QueryError, SinkError
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.time_line import Stamp, TimeLine
from midstream.pipeline.outputs import RESULTS
from midstream.sinks import FileSink, restored
from midstream.sql.parse import bind_query
from midstream.units.user_operators import result_columns

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

    Raises a `QueryError` where there is no such query, and a `SinkError` where its results are not Parquet files.
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
            remedy=f"give the query a sink of files in the format {STREAMED_FORMAT}, or read its sink with "
            f"Spark's own source",
        )
    asked = query_of(entry) if isinstance(entry, QueryEntry) else bind_query(manifest, entry.statement)
    above = entry.operator if isinstance(entry, QueryEntry) else entry.above
    return CommittedResults(sink, result_columns(asked, above))


_FEW = 8
"""Steps up to which each one's folder is listed by itself."""


@dataclass(frozen=True)
class DeliveredResults:
    """The results of a query of a job, up to the last step that its sink has whole.

    A file shows as soon as it is there, on an object store the first of a step before the last: so a step counts only
    once all files are there that its manifest lists. Which steps a reader has read it notes by the stamp of the last.
    """

    checkpoint: Checkpoint
    query: str
    sink: FileSink

    def newest(self) -> Stamp | None:
        """Return the last step whose results are all there; None before the first.

        Steps are delivered in order, so it is the newest step or the one before.
        """
        manifest = self.checkpoint.manifests.latest()
        if manifest is None:
            return None
        last = manifest.step if self._has_all(manifest) else manifest.step - 1
        return manifest.time_line.stamp(last) if last >= 0 else None

    def files(self, after: Stamp | None, last: Stamp, *, partly: bool = False) -> tuple[tuple[int, str], ...]:
        """List the files of the steps after one and up to another, with the step of each. Steps that were given up have
        none.

        With `partly` they begin with the step `after` itself, which was read perhaps in part. Raises `CheckpointError`
        where a step that was read has been given up since, because the job went back.
        """
        line = self._time_line()
        for one in (after, last):
            if one is not None and not _counts(line, one):
                raise _given_up(one, self.checkpoint.url, line.job)
        steps = range(0 if after is None else after.step + (not partly), last.step + 1)
        return tuple(self.sink.files(steps, lambda stamp: _counts(line, stamp), one_by_one=len(steps) <= _FEW))

    def counts(self, stamp: Stamp) -> bool:
        """Return whether a step is still one of the job's."""
        return _counts(self._time_line(), stamp)

    def _time_line(self) -> TimeLine:
        return (self.checkpoint.manifests.latest() or self.checkpoint.manifest()).time_line

    def _has_all(self, manifest: Manifest) -> bool:
        stamp = manifest.time_line.stamp(manifest.step)
        due = [file for *output, file, _ in manifest.published.files if output == [RESULTS, self.query]]
        return not due or self.sink.has_all(stamp, due)


def _counts(line: TimeLine, stamp: Stamp) -> bool:
    # Before the first step nothing was read that could be given up.
    return stamp.step < 0 or line.has(stamp)


def _given_up(stamp: Stamp, place: str, job: str) -> CheckpointError:
    if stamp.job != job:
        return CheckpointError(
            f"the checkpoint belongs to job {job}, but the results read so far are from job {stamp.job}",
            place=place,
            remedy="restart the reading job with another checkpoint",
        )
    return CheckpointError(
        f"the other job went back and gave up step {stamp.step}, but this job has read the results of that step",
        place=place,
        remedy="also rewind the reading job to a step before it read these results: midstream rewind CKPT STEP",
    )
