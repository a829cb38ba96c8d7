"""The results of another job's query as a source, step by step, each file once."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from midstream.checkpoint.reader import Checkpoint
from midstream.engine.file_formats import file_rows
from midstream.engine.file_source import FileSource, first, known_options
from midstream.job.folders import Folders
from midstream.job.results import committed_results
from midstream.language.ddl import parse_ddl
from midstream.language.job_file import SourceSpec
from midstream.model.errors import InputError
from midstream.state.store.places import located, storage_at

RESULTS = "midstream"
"""The format of a stream that is the results of another job's query: `path` is that job's checkpoint."""

_STEP = re.compile(r"step=\d+")


@dataclass(frozen=True)
class ResultsSource(FileSource):
    """The files that a query's sink has put in place, in the order of their steps.

    The sink commits one step after the other and never changes a file that is in place. So only the newest step of
    which something was read can still have files to be read, and of the older ones none is looked for.
    """

    path: str
    format: str
    columns: pa.Schema
    options: Mapping[str, str]

    @staticmethod
    def of(name: str, spec: SourceSpec) -> ResultsSource:
        """The source of a stream of a job file; raises a `MidstreamError` where there is no such stream of results."""
        place = f"[streams.{name}]"
        options = known_options(spec, {"query"}, place)
        query = options.pop("query", None)
        if spec.path is None or query is None:
            raise InputError(
                f"stream {name!r} does not say whose results it reads",
                place=place,
                remedy='give the path of the job\'s checkpoint, and options = { query = "..." }',
            )
        folder = located(spec.path)
        found = committed_results(Folders(folder), Checkpoint.open(folder).manifest(), query)
        columns = found.columns if spec.schema is None else parse_ddl(spec.schema)
        return ResultsSource(found.sink.path, found.sink.format, columns, options)

    def waiting(self, read: Collection[str]) -> tuple[str, ...]:
        """The files of results that were not read, in the order of their steps, as many as a step takes."""
        storage = storage_at(self.path)
        begun = max((_folder(file) for file in read), default="")
        folders = sorted(name for name in storage.names() if _STEP.fullmatch(name) and name >= begun)
        files = [storage.place(f"{folder}/{file}") for folder in folders for file in sorted(storage.names(folder))]
        return first([file for file in files if file not in read], self.options)

    def read(self, files: Sequence[str]) -> pa.Table:
        """The rows of files, one file after the other."""
        storage, own = storage_at(self.path), len(self.path) + 1
        tables = [file_rows(storage.read(file[own:]), file, self.format, self.columns, self.options) for file in files]
        return pa.concat_tables(tables) if tables else self.columns.empty_table()

    def present(self) -> set[str]:
        """All files that there are."""
        storage = storage_at(self.path)
        return {storage.place(name) for name, _ in storage.walk()}


def _folder(file: str) -> str:
    return file.rsplit("/", 2)[1]
