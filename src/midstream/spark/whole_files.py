"""Files of a folder of this machine, or ranges of a topic, each read whole by a task, as the embedded engine reads it.

Spark's source says which files a batch has, and brings their names alone. So files of every kind, and the faults of
files, come out alike on both hosts. Spark reads by itself what lies elsewhere, is of another format, or has an option
that the embedded engine does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from midstream.admission.admit import judge
from midstream.admission.reading import read_in, ways_of
from midstream.admission.refused_rows import CORRUPT, OFFSET, PARTITION, REASON, all_texts
from midstream.embedded.file_formats import BadFile
from midstream.embedded.file_source import FileSource
from midstream.embedded.folder_source import FolderSource
from midstream.model.schema import StreamSchema
from midstream.runtime.watermark import BEGINNING
from midstream.state.base_state import TIME
from midstream.state.rows import one_batch

_LOCAL = re.compile(r"^file:(//)?(?=/)")
"""How a path begins that Hadoop writes out: nothing else of it is quoted."""

EVERY_FOLDER = {"recursiveFileLookup": "true"}
"""Spark finds the files of all folders and no partitions, whose values are read off the names of files here: it fails
where a folder has files next to its partitions.
"""

_ROWS = 1 << 18
_BINARY = T.StructType(
    [
        T.StructField("path", T.StringType()),
        T.StructField("modificationTime", T.TimestampType()),
        T.StructField("length", T.LongType()),
        T.StructField("content", T.BinaryType()),
    ]
)


@dataclass(frozen=True)
class WholeFiles:
    """The files of a stream, by a DataFrame of their names, and how each is read."""

    frame: DataFrame
    source: FileSource

    @staticmethod
    def of(session: SparkSession, source: FolderSource, path: str, which: Mapping[str, str]) -> WholeFiles:
        """Return the files of a folder; the options `which` say which of them come when."""
        frame = session.readStream.format("binaryFile").schema(_BINARY).options(**which, **EVERY_FOLDER).load(path)
        return WholeFiles(frame, source)


@dataclass(frozen=True)
class FileReader:
    """Reads files by their names in a Python worker; `fields` is what it gives."""

    source: FileSource
    schema: StreamSchema
    fields: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files."""
        try:
            for batch in batches:
                for url in batch.column(0).to_pylist():
                    file = re.sub(_LOCAL, "", url)
                    if self.source.has(file):
                        yield from self._rows(self._read(file))
        finally:
            self.source.close()

    def _read(self, file: str) -> pa.Table:
        try:
            return self.source.read((file,))
        except BadFile as error:  # The driver finds it in Spark's own exception, by its line.
            raise BadFile(" ".join(error.message.split()), place=error.place, remedy=error.remedy) from None

    def _rows(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        names = self.schema.columns.names
        given = one_batch(table.select(names), f"stream {self.schema.name}")
        reading = read_in(self.schema, given, ways_of(self.schema, given.schema))
        unread = judge(reading.times, BEGINNING).dead
        found: dict[str, pa.Array] = {**reading.columns, TIME: reading.times}
        if unread is not None:
            found |= self._of_dead(table, np.flatnonzero(unread), reading.reasons)
        if self.schema.max_ahead is not None:  # Which rows are too far ahead is known only when the step begins.
            names = [name for name in self.source.beside if name != CORRUPT]
            found |= {given_name(name): table.column(name).combine_chunks() for name in names}
        if PARTITION in table.column_names:  # Each has a watermark.
            found[given_name(PARTITION)] = table.column(PARTITION).combine_chunks()
        rows = given.num_rows
        arrays = [
            found[one.name].cast(one.type, safe=False) if one.name in found else pa.nulls(rows, one.type)
            for one in self.fields
        ]
        yield from pa.Table.from_arrays(arrays, schema=self.fields).to_batches(_ROWS)

    def _of_dead(self, table: pa.Table, dead: Any, reasons: Any) -> dict[str, pa.Array]:
        """Return what only rows have that cannot be read: why, and their values as texts."""
        texts = all_texts(table.take(pa.array(dead)))
        places = np.full(table.num_rows, -1, np.int64)
        places[dead] = np.arange(len(dead))
        at = pa.array(places, mask=places < 0)
        found = {given_name(name): texts.column(name).combine_chunks().take(at) for name in texts.column_names}
        told = pa.array([reasons.get(row) for row in dead.tolist()], pa.string())
        return {**found, REASON: told.take(at)}


def given_name(column: str) -> str:
    """Name the column of the original values of a column that is read as another type.

    >>> given_name("k")
    '_given:k'
    """
    return f"_given:{column}"


def kind_beside(column: str) -> T.DataType:
    """Return the type of a column that dead letters show with those of the stream."""
    return {PARTITION: T.IntegerType(), OFFSET: T.LongType()}.get(column, T.StringType())
