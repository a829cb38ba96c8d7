"""A partition's share of files that its task reads by itself: the rows that the exchange would have brought.

Each task reads every file and takes the rows of its own lanes, by the very hash that Spark's exchange deals rows out
by: so from one step to the next either way may be taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from midstream.language.expression import Column, Expression
from midstream.language.types import TIMESTAMP
from midstream.runtime.lane_key import SLOTS
from midstream.runtime.watermark import Seen
from midstream.spark.unpack import Share, StreamSlots
from midstream.state.base_state import TIME
from midstream.step.admission.admit import judge


@dataclass(frozen=True)
class BatchFiles:
    """By stream the files of a batch, in the order of Spark's log, and what their footers tell.

    That is how many `rows` they have in all, and the `greatest` event time of each stream, where all of its files
    tell.
    """

    of: Mapping[str, tuple[str, ...]]
    rows: int
    greatest: Mapping[str, int]


Slots = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_BLOCK = 1 << 16
"""So many numbers are hashed at a time, so that what is found on the way stays in the processor's cache."""
_RUN = 1 << 14
"""Hashes that are kept are those of so many numbers in a row, from a multiple of it on."""
_SEED = 42
_PRIMES = tuple(
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)


@dataclass(frozen=True)
class Dealt:
    """How the rows of streams are dealt out to a group's lanes: by the slot of a key, `evenly` by their event times, or
    all to one lane.

    `keys` are columns of whole numbers, by stream.
    """

    lanes: int
    streams: frozenset[str]
    keys: Mapping[str, Expression] | None
    evenly: bool = False

    @property
    def is_by_numbers(self) -> bool:
        """Whether the slots can be found here."""
        return self.keys is None or all(isinstance(k, Column) and pt.is_integer(k.type) for k in self.keys.values())

    def slots(self, stream: str, rows: FileRows) -> Slots:
        """The slot of each row."""
        if self.evenly:
            return xxhash64(rows.times.fill_null(0).to_numpy()) & (SLOTS - 1)
        if self.keys is None:
            return np.zeros(len(rows), np.int64)
        key = self.keys[stream]
        assert isinstance(key, Column)
        values = rows.columns[key.name].cast(pa.int64())
        found = hashed(values.fill_null(0).to_numpy())
        if values.null_count:
            # Rows without a key join nothing and are spread by their time; but they make up a group of GROUP BY.
            alone = len(self.keys) == 1
            without = np.full(len(rows), _SEED, np.int64) if alone else xxhash64(rows.times.fill_null(0).to_numpy())
            found = np.where(values.is_null().to_numpy(zero_copy_only=False), without, found)
        return found & (SLOTS - 1)


@dataclass(frozen=True)
class FileRows:
    """The rows of a stream's files."""

    stream: StreamSlots
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.times)

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """The columns that are carried, and the timestamp."""
        names = list(dict.fromkeys([self.stream.timestamp, *(name for name, _, _ in self.stream.columns)]))
        tables = [pq.ParquetFile(path, memory_map=True).read(names, use_threads=False) for path in self.files]
        table = pa.concat_tables(map(_without_zones, tables))
        return {name: table.column(name).combine_chunks() for name in names}

    @cached_property
    def times(self) -> pa.Array:
        """The event times, in microseconds."""
        return self.columns[self.stream.timestamp].view(pa.int64())

    def share(self, rows: Slots | None, slots: Slots) -> Share:
        """Some of the rows, or all, as a lane's share."""
        slotted = {slot: self.columns[name] for name, slot, _ in self.stream.columns if slot != TIME}
        batch = pa.RecordBatch.from_pydict({**slotted, TIME: self.times})
        if rows is None:
            return Share(self.stream, batch, slots)
        return Share(self.stream, batch.take(pa.array(rows)), slots[rows])


def _without_zones(table: pa.Table) -> pa.Table:
    """The table with its times as they are stored: files of one stream may differ in that."""
    kinds = [pa.timestamp(field.type.unit) if pt.is_timestamp(field.type) else field.type for field in table.schema]
    return table.cast(pa.schema([field.with_type(kind) for field, kind in zip(table.schema, kinds, strict=True)]))


def shares_of_files(
    files: BatchFiles,
    streams: Sequence[StreamSlots],
    groups: Sequence[Dealt],
    lanes: Sequence[tuple[int, int]],
    *,
    counts_unread: bool,
) -> dict[tuple[int, int, int], Share]:
    """The rows of a partition's `lanes` by (group, lane, stream number); one partition `counts_unread` streams too."""
    found: dict[tuple[int, int, int], Share] = {}
    for number, stream in enumerate(streams):
        if not files.of.get(stream.name):
            continue
        rows = FileRows(stream, files.of[stream.name])
        if counts_unread and not any(stream.name in group.streams for group in groups):
            found[len(groups), 0, number] = rows.share(None, np.zeros(len(rows), np.int64))
        slots: dict[int, Slots] = {}
        for group, lane in lanes:
            dealt = groups[group]
            if stream.name not in dealt.streams:
                continue
            if group not in slots:
                slots[group] = dealt.slots(stream.name, rows)
            own = None if dealt.lanes == 1 else np.flatnonzero(slots[group] % dealt.lanes == lane)
            if own is None or len(own):
                found[group, lane, number] = rows.share(own, slots[group])
    return {place: share for place, share in found.items() if share.rows.num_rows}


def newest_in_files(files: BatchFiles, timestamps: Mapping[str, str], watermarks: Mapping[str, int]) -> dict[str, Seen]:
    """Of each stream the greatest event time of the rows that enter, and whether there are any.

    Where the files' footers do not tell, the timestamps are read.
    """
    found = {}
    for name, timestamp in timestamps.items():
        if name in files.greatest:
            enters = files.greatest[name] >= watermarks[name]
            found[name] = Seen(files.greatest[name], 1) if enters else Seen()
            continue
        bare = StreamSlots(name, timestamp, (), (), None, TIMESTAMP)
        own = files.of[name]
        found[name] = judge(FileRows(bare, own).times, watermarks[name]).seen if own else Seen()
    return found


def hashed(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The hash of each number; of numbers that lie close together each different one is hashed once."""
    if not len(values):
        return xxhash64(values)
    first, end = int(values.min()) // _RUN, int(values.max()) // _RUN + 1
    if 2 * len(values) < (end - first) * _RUN:
        return xxhash64(values)
    return _hashes(first, end).take(values - first * _RUN)


@lru_cache(maxsize=4)
def _hashes(first: int, end: int) -> npt.NDArray[np.int64]:
    """The hashes of all numbers of these runs: keys of the next step are mostly among them too."""
    return xxhash64(np.arange((end - first) * _RUN) + first * _RUN)


def xxhash64(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Spark's `xxhash64` of BIGINTs.

    >>> xxhash64(np.array([0, 7])).tolist()
    [-5252525462095825812, -2864211556195259663]
    """
    found = np.empty(len(values), np.uint64)
    words = np.ascontiguousarray(values).view(np.uint64)
    for begin in range(0, len(words), _BLOCK):
        found[begin : begin + _BLOCK] = _mixed(words[begin : begin + _BLOCK])
    return found.view(np.int64)


def _mixed(words: Words) -> Words:
    one, two, three, four, five = _PRIMES
    with np.errstate(over="ignore"):
        words = np.uint64(_SEED) + five + np.uint64(8) ^ _rotated(words * two, 31) * one
        words = _rotated(words, 27) * one + four
        words = (words ^ (words >> np.uint64(33))) * two
        words = (words ^ (words >> np.uint64(29))) * three
        return words ^ (words >> np.uint64(32))


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
