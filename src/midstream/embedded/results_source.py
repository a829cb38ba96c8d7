"""The results of another job's query as a source, step by step, each file once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from midstream.checkpoint.reader import Checkpoint
from midstream.embedded.file_formats import file_rows
from midstream.embedded.file_source import FileSource, known_options, most_files
from midstream.model.time_line import Stamp
from midstream.pipeline.results import DeliveredResults, committed_results
from midstream.sinks import FileSink
from midstream.sql.ddl import parse_ddl
from midstream.sql.job_specs import OF_A_JOB, SourceSpec, read_results
from midstream.storage.places import located, storage_at


class ResultsSource(FileSource):
    """The files that a query's sink has put in place, in the order of their steps.

    What was read is known by the stamps that the files bear in their names. The sink commits one step after the other
    and never changes a file that is in place: so what is looked for begins with the newest step of which something was
    read, and with what this object has seen since. Raises `CheckpointError` where a step that was read has been given
    up, because the other job went back.
    """

    name = OF_A_JOB
    on_spark = "midstream.spark.result_frames:frame_of"

    def __init__(self, delivered: DeliveredResults, columns: pa.Schema, options: Mapping[str, str]) -> None:
        self.columns = columns
        self._delivered, self._options = delivered, options
        self._storage = storage_at(delivered.sink.path)
        self._looked: Stamp | None = None
        self._found: list[str] = []

    @staticmethod
    def of(name: str, spec: SourceSpec, known: pa.Schema | None = None) -> ResultsSource:
        """Make the source of a stream; raises a `MidstreamError` where there is no such stream of results."""
        given = known_options(spec, {"query"}, f"[streams.{name}]")
        path, query, options = read_results(name, replace(spec, options=given))
        checkpoint = Checkpoint.open(located(path))
        found = committed_results(checkpoint.folders, checkpoint.manifest(), query)
        columns = found.columns if spec.schema is None else parse_ddl(spec.schema)
        return ResultsSource(DeliveredResults(checkpoint, query, found.sink), columns, options)

    @classmethod
    def for_spark(cls, name: str, spec: SourceSpec) -> ResultsSource:
        """Make the source of a stream, which tells its columns: Spark's file source takes more options than this."""
        super().for_spark(name, spec)
        query = {key: value for key, value in spec.options.items() if key == "query"}
        return cls.of(name, replace(spec, options=query))

    @property
    def most(self) -> int | None:
        """How many files a step takes at most; None for all."""
        return most_files(self._options)

    def waiting(self, read: Collection[str]) -> tuple[str, ...]:
        """List the files of results that were not read, in the order of their steps."""
        begun = max((self._stamp(file) for file in read), key=lambda stamp: stamp.step, default=None)
        last = self._delivered.newest()
        if last is None or last != self._looked:
            self._look(begun, last or Stamp("", "", -1))
        self._found = [file for file in self._found if file not in read]
        return tuple(self._found)

    def read(self, files: Sequence[str]) -> pa.Table:
        """Read the rows of files, one file after the other."""
        format = self._delivered.sink.format
        tables = [
            file_rows(self._storage.read(self._own(file)), file, format, self.columns, self._options) for file in files
        ]
        return pa.concat_tables(tables) if tables else self.columns.empty_table()

    def forgettable(self, read: Mapping[str, int], kept: Collection[int]) -> set[str]:
        """List the files of older steps than the newest that was read from, now and at each of the `kept` steps."""
        steps = {file: self._stamp(file).step for file in read}
        newest = {max((steps[file] for file, at in read.items() if at <= step), default=-1) for step in kept}
        newest.add(max(steps.values(), default=-1))
        return {file for file in read if steps[file] not in newest}

    def _look(self, begun: Stamp | None, last: Stamp) -> None:
        # The files of steps that were looked at before are known, if those steps still count.
        looked = self._looked if self._looked is not None and self._delivered.counts(self._looked) else None
        if looked is None:
            self._found = self._places(self._delivered.files(begun, last, partly=True))
        elif last.step > looked.step:
            self._found += self._places(self._delivered.files(looked, last))
        else:
            return
        self._looked = last

    def _places(self, found: Sequence[tuple[int, str]]) -> list[str]:
        return [self._storage.place(name) for _, name in found]

    def _stamp(self, file: str) -> Stamp:
        return FileSink.stamp_of(self._own(file))

    def _own(self, file: str) -> str:
        # Below the sink's root.
        return "/".join(file.rsplit("/", 2)[1:])
