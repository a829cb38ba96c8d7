"""Which files a micro-batch brings, where every stream of the job is nothing but a folder of Parquet files here.

What Spark reads crosses the JVM as rows, is tagged, shuffled and turned into Arrow before a task sees it; Arrow reads
the same file in a fraction of that time. Which files are new, and which batch brings which, stays Spark's to say: by
its offsets and by the log of its file source.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from midstream.engine.folder_source import FolderSource
from midstream.model.schema import has_texts
from midstream.runtime.watermark import FIRST_TIME, LAST_TIME
from midstream.spark.file_rows import BatchFiles
from midstream.spark.layout import StepLayout
from midstream.spark.sources import JobStream
from midstream.spark.whole_files import EVERY_FOLDER, local_path
from midstream.step.admission.reading import is_whole

MOST_BYTES, MOST_FILES = 256 << 20, 256
"""Every task reads all files of a batch: with more than this the rows had better be dealt out."""

_OPTIONS = {"path", "maxfilespertrigger", "maxbytespertrigger", "latestfirst", "maxfileage"}
"""Options, in small letters, that say which files come when, and nothing of how they are read."""


@dataclass(frozen=True)
class PlainFiles:
    """The folders of a job's streams, and Spark's `log` of what each batch takes from them."""

    streams: tuple[JobStream, ...]
    log: str

    @staticmethod
    def of(streams: Sequence[JobStream], log: str) -> PlainFiles | None:
        """Find the folders of a job; None where a stream is anything else, or more than its folder."""
        plain = all(map(_is_plain, streams)) and _are_apart([stream.frame for stream in streams])
        return PlainFiles(tuple(streams), log) if plain else None

    def of_batch(self, number: int, layout: StepLayout) -> BatchFiles | None:
        """Find the files of a batch. None where Spark had better read them, or it is not known which they are."""
        try:
            found, rows, greatest = dict[str, tuple[str, ...]](), 0, dict[str, int]()
            for source, stream in enumerate(self.streams):
                paths = found[stream.schema.name] = self._paths(source, number)
                footers = [self._footer(stream, path, layout) for path in paths]
                rows += sum(footer.num_rows for footer in footers)
                told = [_greatest(footer, stream.schema.timestamp) for footer in footers]
                newest = [one for one in told if one is not None]
                if told and len(newest) == len(told):
                    greatest[stream.schema.name] = max(newest)
            every = [path for paths in found.values() for path in paths]
            few = len(every) <= MOST_FILES and sum(map(os.path.getsize, every)) <= MOST_BYTES
        except (OSError, ValueError, LookupError, TypeError, pa.ArrowException):
            return None  # If something is wrong with the files, Spark reports it.
        return BatchFiles(found, rows, greatest) if few else None

    def _paths(self, source: int, number: int) -> tuple[str, ...]:
        last = self._end(source, number - 1) if number else -1
        found = (p for at in range(last + 1, self._end(source, number) + 1) for p in self._entries(source, at))
        files = self.streams[source].files
        return tuple(path for path in found if files is None or files.source.has(path))

    @staticmethod
    def _footer(stream: JobStream, path: str, layout: StepLayout) -> pq.FileMetaData:
        # Raises where the file cannot be read as it is.
        if "=" in os.path.dirname(path):
            raise ValueError(f"{path} may be in a partition, whose name has values")
        footer = pq.read_metadata(path)
        known = footer.schema.to_arrow_schema()
        needed = [stream.schema.timestamp, *layout.slots[stream.schema.name]]
        if not all(_is_alike(known.field(name).type, stream.schema.columns.field(name).type) for name in needed):
            raise ValueError(f"{path} has other types than are declared")
        if _has_old_calendar(known.metadata or {}):
            raise ValueError(f"{path} counts days by another calendar")
        texts = [name for name in needed if has_texts(known.field(name).type)]
        if texts and not all(map(is_whole, _chunks(path, texts))):
            raise ValueError(f"{path} has texts that are no UTF-8")
        return footer

    def _end(self, source: int, batch: int) -> int:
        # The number of the last entry that a batch, or one before it, has taken; -1 for none.
        with open(f"{self.log}/offsets/{batch}", encoding="utf-8") as file:
            line = file.read().splitlines()[2:][source]
        return -1 if line == "-" else int(json.loads(line)["logOffset"])

    def _entries(self, source: int, number: int) -> list[str]:
        # Some entries hold all those before as well.
        path = f"{self.log}/sources/{source}/{number}"
        with open(path if os.path.exists(path) else f"{path}.compact", encoding="utf-8") as file:
            # Those that hold all before grow with the job: only the lines of this entry are read.
            entries = [json.loads(line) for line in file if f'"batchId":{number}' in line]
        return [local_path(entry["path"]) for entry in entries if entry["batchId"] == number]


def _is_alike(given: pa.DataType, declared: pa.DataType) -> bool:
    # Times of another zone are stored alike.
    times = pa.types.is_timestamp(given) and pa.types.is_timestamp(declared)
    return bool(given == declared or (times and given.unit == declared.unit))


def _chunks(path: str, names: Sequence[str]) -> Iterator[pa.Array]:
    for batch in pq.ParquetFile(path, memory_map=True).iter_batches(columns=names, use_threads=False):
        yield from batch.columns


def _greatest(footer: pq.FileMetaData, timestamp: str) -> int | None:
    # None where the file does not show it, or it is no event time.
    at = footer.schema.names.index(timestamp)
    told = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
    if not told or not all(one is not None and one.has_min_max and one.physical_type == "INT64" for one in told):
        return None
    greatest = max(int(one.max_raw) for one in told)
    return greatest if FIRST_TIME <= greatest <= LAST_TIME else None


def _has_old_calendar(metadata: Mapping[bytes, bytes]) -> bool:
    # Old versions of Spark counted old days by the Julian calendar, which Spark sets right.
    version = metadata.get(b"org.apache.spark.version", b"3")
    return b"org.apache.spark.legacyDateTime" in metadata or version.split(b".")[0] in (b"1", b"2")


def _is_plain(stream: JobStream) -> bool:
    # The Parquet files of a folder, as they are; the time is a timestamp in microseconds.
    kind = stream.schema.columns.field(stream.schema.timestamp).type
    if stream.has_own_timestamp or not (pa.types.is_timestamp(kind) and kind.unit == "us"):
        return False
    try:
        if stream.files is not None:
            source = stream.files.source
            is_parquet = isinstance(source, FolderSource) and source.format == "parquet"
            return is_parquet and _scans(stream.frame, "binaryfile", EVERY_FOLDER)
        return not stream.is_read and _scans(stream.frame, "parquet")
    except Exception:  # If the JVM answers anything else, Spark reads the stream.
        return False


def _are_apart(frames: Sequence[DataFrame]) -> bool:
    # Spark makes one source of those that are equal.
    plans: list[Any] = [frame._jdf.queryExecution().analyzed() for frame in frames]
    return not any(one.equals(other) for at, one in enumerate(plans) for other in plans[:at])


def _scans(frame: DataFrame, format: str, more: Collection[str] = ()) -> bool:
    plan: Any = frame._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "StreamingRelation":
        return False
    source = plan.dataSource()
    pairs, options = source.options().iterator(), set[str]()
    while pairs.hasNext():
        options.add(str(pairs.next()._1()).lower())
    return str(source.className()).lower() == format and options <= {*_OPTIONS, *map(str.lower, more)}
