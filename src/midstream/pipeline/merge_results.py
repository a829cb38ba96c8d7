"""The results of a query, a file or more for each step, merged into few, also while the job runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

import pyarrow as pa

from midstream.checkpoint.reader import Checkpoint
from midstream.model.errors import SinkError
from midstream.model.time_line import Stamp
from midstream.pipeline.results import DeliveredResults, committed_results
from midstream.sinks import FileSink
from midstream.sinks.formats import parquet_rows, written
from midstream.sinks.merged import MergedPart, MergedResults, kept
from midstream.storage.places import storage_at

FULL = 128 << 20
"""Bytes from which on a file is not merged with what comes after."""


@dataclass(frozen=True)
class Merging:
    """What merging did: how many files of steps it read, and which files have the rows now."""

    read: int
    parts: tuple[MergedPart, ...]
    merged: MergedResults


def merge_results(checkpoint: Checkpoint, query: str, full: int = FULL) -> Merging:
    """Merge what a query has delivered since its results were merged last.

    Next to the folder `PATH` of its sink the rows of all steps are then in the few files of `PATH.merged`; the sink's
    own stay, since the job may go back. Killed at any moment it has done so, or changed nothing that a reader sees; it
    may be called again, also by two at once. A file has about `full` bytes. Raises a `SinkError` where the results are
    no Parquet files.
    """
    found = committed_results(checkpoint.folders, checkpoint.manifest(), query)
    delivered, merged = DeliveredResults(checkpoint, query, found.sink), MergedResults.of(found.sink.path)
    while True:
        newest = merged.newest()  # First: where the job goes back from here on, another list comes before ours.
        old, last = kept(newest.parts, delivered.counts), delivered.newest()
        files = () if last is None else delivered.files(old[-1].through if old else None, last)
        if not files and len(old) == len(newest.parts):
            merged.show()
            return Merging(0, old, merged)
        fill = old[-1:] if files and old and old[-1].bytes < full else ()
        pieces = chain((_of_part(merged, part) for part in fill), _of_steps(found.sink, files))
        try:
            new = [_written(merged, newest.number + 1, group) for group in _grouped(pieces, full)]
        except FileNotFoundError as error:
            if merged.newest().number == newest.number:
                raise SinkError(
                    "a file of merged results is missing",
                    place=merged.storage.url,
                    remedy="remove this folder and merge again: midstream then rebuilds the folder from the folders of "
                    "steps",
                ) from error
            continue  # Others have merged twice meanwhile, and what they replaced was removed.
        parts = (*old[: len(old) - len(fill)], *new)
        if merged.add(newest.number + 1, parts):
            return Merging(len(files), parts, merged)


@dataclass(frozen=True)
class _Piece:
    """The rows of some steps in a row, from `first` on, and how many bytes they have as files."""

    first: int
    through: Stamp
    table: pa.Table
    bytes: int


def _of_part(merged: MergedResults, part: MergedPart) -> _Piece:
    table = parquet_rows(merged.storage.read(part.file), merged.storage.place(part.file))
    return _Piece(part.first, part.through, table, part.bytes)


def _of_steps(sink: FileSink, files: Iterable[tuple[int, str]]) -> Iterator[_Piece]:
    storage = storage_at(sink.path)
    for step, group in groupby(files, key=lambda file: file[0]):
        names = [name for _, name in group]
        try:
            data = [storage.read(name) for name in names]
        except FileNotFoundError as error:
            raise SinkError(
                f"the results of step {step} were removed while midstream read them",
                place=storage.place(names[0]),
                remedy="if the job has gone back, merge again; delete a step's folder only after the step is merged",
            ) from error
        table = pa.concat_tables(
            [parquet_rows(one, storage.place(name)) for one, name in zip(data, names, strict=True)]
        )
        yield _Piece(step, sink.stamp_of(names[0]), table, sum(one.size for one in data))


def _grouped(pieces: Iterable[_Piece], full: int) -> Iterator[list[_Piece]]:
    # A file ends when it is full, or when the next piece has other columns because the query was changed.
    group = list[_Piece]()
    for piece in pieces:
        if group and (sum(one.bytes for one in group) >= full or piece.table.schema != group[-1].table.schema):
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def _written(merged: MergedResults, number: int, group: Sequence[_Piece]) -> MergedPart:
    table = pa.concat_tables([piece.table for piece in group])
    data = written(table, "parquet")
    file = merged.write(number, data)
    return MergedPart(file, group[0].first, table.num_rows, data.size, group[-1].through)
