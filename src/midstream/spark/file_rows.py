"""A partition's share of files that its task reads by itself: the rows that the exchange would have brought.

Each task reads every file and takes the rows of its own lanes. From one step to the next either way may be taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from midstream.engine.file_formats import of_file
from midstream.language.expression import Expression
from midstream.language.types import TIMESTAMP
from midstream.runtime.lane_key import Slots, slots, slots_of
from midstream.runtime.watermark import LAST_TIME, Seen, StepClock
from midstream.spark.unpack import Share, StreamSlots, as_declared
from midstream.state.base_state import TIME
from midstream.step.admission.admit import judge
from midstream.step.admission.outputs import FILE


@dataclass(frozen=True)
class BatchFiles:
    """By stream the files of a batch, in the order of Spark's log, and what their footers tell.

    That is how many `rows` they have in all, and the `greatest` event time of each stream, where all of its files
    tell.
    """

    of: Mapping[str, tuple[str, ...]]
    rows: int
    greatest: Mapping[str, int]


@dataclass(frozen=True)
class Dealt:
    """How the rows of streams are dealt out to a group's lanes: by the slot of a key, `evenly` by their event times, or
    all to one lane.

    `keys` are by stream.
    """

    lanes: int
    streams: frozenset[str]
    keys: Mapping[str, Expression] | None
    evenly: bool = False

    def slots(self, stream: str, rows: FileRows) -> Slots:
        """Return the slot of each row."""
        if self.evenly:
            return slots_of(rows.times.fill_null(0).to_numpy())
        if self.keys is None:
            return np.zeros(len(rows), np.int16)
        return slots(self.keys, stream, rows.batch)


@dataclass(frozen=True)
class FileRows:
    """The rows of a stream's files."""

    stream: StreamSlots
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.times)

    @property
    def _names_files(self) -> bool:
        """Tell whether dead letters say which file they are of."""
        return any(name == FILE for name, _ in self.stream.originals)

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """The columns that are carried, and the timestamp."""
        names = list(dict.fromkeys([self.stream.timestamp, *(name for name, _, _ in self.stream.columns)]))
        tables = [pq.ParquetFile(path, memory_map=True).read(names, use_threads=False) for path in self.files]
        if self._names_files:
            tables = [of_file(table, path) for table, path in zip(tables, self.files, strict=True)]
            names.append(FILE)
        table = pa.concat_tables(map(_without_zones, tables)).unify_dictionaries()
        return {name: table.column(name).combine_chunks() for name in names}

    @cached_property
    def times(self) -> pa.Array:
        """The event times, in microseconds."""
        return self.columns[self.stream.timestamp].view(pa.int64())

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows as they were declared, with their event times."""
        columns = {name: as_declared(self.columns[name], kind) for name, _, kind in self.stream.columns}
        return pa.RecordBatch.from_pydict({**columns, TIME: self.times})

    def share(self, rows: npt.NDArray[np.int64] | None = None) -> Share:
        """Take some of the rows, or all, as a lane's share."""
        slotted = {slot: self.columns[name] for name, slot, _ in self.stream.columns if slot != TIME}
        if self._names_files:
            slotted[dict(self.stream.originals)[FILE]] = self.columns[FILE]
        batch = pa.RecordBatch.from_pydict({**slotted, TIME: self.times})
        return Share(self.stream, batch if rows is None else batch.take(pa.array(rows)))


def _without_zones(table: pa.Table) -> pa.Table:
    # Times are cast to how they are stored: files of one stream may differ in that.
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
    """Read the rows of a partition's `lanes` by (group, lane, stream number).

    One partition `counts_unread` streams too.
    """
    found: dict[tuple[int, int, int], Share] = {}
    for number, stream in enumerate(streams):
        if not files.of.get(stream.name):
            continue
        rows = FileRows(stream, files.of[stream.name])
        if counts_unread and not any(stream.name in group.streams for group in groups):
            found[len(groups), 0, number] = rows.share()
        found_slots: dict[int, Slots] = {}
        for group, lane in lanes:
            dealt = groups[group]
            if stream.name not in dealt.streams:
                continue
            if dealt.lanes == 1:
                found[group, lane, number] = rows.share()
                continue
            if group not in found_slots:
                found_slots[group] = dealt.slots(stream.name, rows)
            own = np.flatnonzero(found_slots[group] % dealt.lanes == lane)
            if len(own):
                found[group, lane, number] = rows.share(own)
    return {place: share for place, share in found.items() if share.rows.num_rows}


def newest_in_files(files: BatchFiles, timestamps: Mapping[str, str], clock: StepClock) -> dict[str, Seen]:
    """Find of each stream the greatest event time of the rows that enter, and whether there are any.

    Where the files' footers do not show it, the timestamps are read.
    """
    found = {}
    for name, timestamp in timestamps.items():
        mark, most = clock.before[name], clock.ceilings.get(name, LAST_TIME)
        if name in files.greatest and files.greatest[name] <= most:
            enters = files.greatest[name] >= mark
            found[name] = Seen(files.greatest[name], 1) if enters else Seen()
            continue
        bare = StreamSlots(name, timestamp, (), (), None, TIMESTAMP)
        own = files.of[name]
        found[name] = judge(FileRows(bare, own).times, mark, most).seen if own else Seen()
    return found
