"""How a step's rows reach the lanes: as Arrow from the source's partitions on, split by lane there, in blocks.

Spark makes Arrow batches of the rows, each once. A task of the source's partition hashes the lane keys, sorts a batch
by lane, and sends to each partition of lanes one block of each stream and group. Blocks are parcels: large ones go by
files where all tasks see the store's files, else through the shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import count

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import Accumulator
from pyspark.accumulators import AccumulatorParam

from midstream.admission.admit import greatest_by_partition, judge
from midstream.admission.reading import whole_or_null
from midstream.admission.refused_rows import PARTITION
from midstream.runtime.lane_key import slots, slots_of
from midstream.runtime.watermark import LAST_TIME, Seen, StepClock
from midstream.spark.exchange import Group
from midstream.spark.layout import ARRIVALS, TaskReader, by_stream, kept_column
from midstream.spark.parcel import (
    Parcel,
    ParcelFiles,
    addressed,
    leave_loaded_code_alone,
    packed,
    place_of_task,
    unpacked,
)
from midstream.spark.unpack import Share, StreamSlots, as_declared
from midstream.state.base_state import TIME


class RowsRead(AccumulatorParam[int]):
    """Adds up the rows that the tasks of a job read. On the driver `tell` is given the sum as it grows."""

    def __init__(self, tell: Callable[[int], None] | None = None) -> None:
        self._tell = tell

    def zero(self, value: int) -> int:
        """Return what tasks begin with."""
        return 0

    def addInPlace(self, value1: int, value2: int) -> int:  # So it is called by Spark.
        """Add what a task has read."""
        if self._tell is not None:
            self._tell(value1 + value2)
        return value1 + value2

    def __getstate__(self) -> dict[str, None]:
        return {"_tell": None}


ARRIVAL = 0
"""The stage in which blocks are opened: that of the lanes."""

BLOCK, SEEN = "block", "seen"
"""Kinds of parcels: rows of a stream for lanes of a group, and what a task has seen of each stream."""


@dataclass(frozen=True)
class Split:
    """Sends the rows of a source's partition to the lanes; called with Arrow batches of the `schema`, as bytes.

    Rows of a stream that none of the `groups` reads go to a group after the last one, in which they are looked at but
    not joined. `read` adds up the rows, for the driver to say how many there are while the step is under way. Rows of
    streams that have `readers`, by their numbers, are read here. What was seen is reported to the first partition of
    lanes, or `everywhere`.
    """

    schema: pa.Schema
    streams: tuple[StreamSlots, ...]
    groups: tuple[Group, ...]
    partitions: int
    clock: StepClock
    files: ParcelFiles | None
    read: Accumulator[int] | None = None
    readers: tuple[TaskReader | None, ...] = ()
    everywhere: bool = False

    def __call__(self, batches: Iterable[bytes]) -> list[tuple[int, Parcel]]:
        """Return the blocks by the partitions of lanes that they go to."""
        partition, _ = place_of_task()
        seen: dict[str, Seen] = {}
        parcels: list[Parcel] = []
        number = count()  # Blocks of one origin are put together in this order.
        for body in batches:
            for stream, rows in self._read(pa.ipc.read_record_batch(pa.py_buffer(body), self.schema)):
                own = self.streams[stream].name
                seen[own] = seen.get(own, Seen()) + self._seen(self.streams[stream], rows)
                parcels += self._blocks((partition, next(number)), stream, rows)
        if self.read is not None:
            self.read.add(sum(one.rows for one in seen.values()))
        counts = {name: astuple(one) for name, one in seen.items()}
        receivers = range(self.partitions if self.everywhere else 1)
        parcels += [Parcel(to, ARRIVAL, SEEN, words=(partition, counts)) for to in receivers]
        leave_loaded_code_alone()
        return addressed(parcels, partition, ARRIVAL, self.partitions, self.files)

    def _read(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        for stream, brought in by_stream(batch):
            reader = self.readers[stream] if self.readers else None
            yield from ((stream, rows) for rows in ([brought] if reader is None else reader(brought)))

    def _seen(self, stream: StreamSlots, rows: pa.RecordBatch) -> Seen:
        times = rows.column(TIME)
        judged = judge(times, self.clock.before[stream.name], self.clock.ceilings.get(stream.name, LAST_TIME))
        partitions = dict(stream.originals).get(PARTITION)
        if partitions is None:
            return judged.seen
        return replace(judged.seen, parts=greatest_by_partition(rows.column(partitions), times, judged.entering))

    def _blocks(self, origin: tuple[int, int], stream: int, rows: pa.RecordBatch) -> Iterator[Parcel]:
        columns, name = self.streams[stream].slots, self.streams[stream].name
        names = [n for n in rows.schema.names if n == TIME or n in columns or n.startswith(ARRIVALS)]
        first, own = 0, rows.select(names)
        for number, group in enumerate(self.groups):
            if name in group.streams:
                mark = kept_column(number)
                kept = own.filter(rows.column(mark)) if mark in rows.schema.names else own
                yield from self._sorted(origin, (number, stream), kept, first + self._lanes(group, stream, kept), first)
            first += group.lanes
        if not any(name in group.streams for group in self.groups):
            dealt = np.mod(own.column(TIME).fill_null(0).to_numpy(), self.partitions)
            yield from self._sorted(origin, (len(self.groups), stream), own, dealt, None)

    def _lanes(self, group: Group, stream: int, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        if group.lanes == 1:
            return np.zeros(rows.num_rows, np.int64)
        if group.keys is None:
            found = slots_of(rows.column(TIME).fill_null(0).to_numpy())
        else:
            own = self.streams[stream]
            read = {column.name: column.type for column in group.keys[own.name].columns()}
            # Rows with damaged texts come to be dead letters, in any lane; until then nothing must stumble over them.
            keys = {
                name: whole_or_null(as_declared(rows.column(slot), read[name]))
                for name, slot, _ in own.columns
                if name in read
            }
            found = slots(group.keys, own.name, pa.RecordBatch.from_pydict({**keys, TIME: rows.column(TIME)}))
        return found.astype(np.int64) % group.lanes

    def _sorted(
        self,
        origin: tuple[int, int],
        group: tuple[int, int],
        rows: pa.RecordBatch,
        places: npt.NDArray[np.int64],
        first: int | None,
    ) -> Iterator[Parcel]:
        # `places` number the lanes of all groups in a row, which take turns over partitions; those of the group begin
        # with `first`. Where there is none, they number partitions.
        sizes = np.bincount(places)
        found = np.flatnonzero(sizes)
        if len(found) > 1:
            found = found[np.argsort(found % self.partitions, kind="stable")]
            ranks = np.zeros(len(sizes), np.int16 if len(found) < 2**15 else np.int32)  # numpy sorts few by radix.
            ranks[found] = np.arange(len(found))
            rows = rows.take(pa.array(np.argsort(ranks[places], kind="stable")))
        begin = at = 0
        while at < len(found):
            to, runs, rows_of = int(found[at]) % self.partitions, list[list[int]](), 0
            while at < len(found) and int(found[at]) % self.partitions == to:
                runs.append([0 if first is None else int(found[at]) - first, int(sizes[found[at]])])
                rows_of += runs[-1][1]
                at += 1
            body = packed(rows.slice(begin, rows_of))
            yield Parcel(to, ARRIVAL, BLOCK, words=(*origin, *group, runs), body=body)
            begin += rows_of


def seen_of(parcels: Iterable[Parcel]) -> list[dict[str, Seen]]:
    """Read what tasks have seen of each stream from the parcels of a partition."""
    told = (parcel.words[1] for parcel in parcels if parcel.kind == SEEN)
    return [{name: Seen(*values) for name, values in one.items()} for one in told]


def summed(told: Iterable[Mapping[str, Seen]], streams: Iterable[str]) -> dict[str, Seen]:
    """Sum up what tasks have seen of these streams."""
    found = {name: Seen() for name in streams}
    for one in told:
        for name, seen in one.items():
            found[name] = found[name] + seen
    return found


def shares(
    parcels: Sequence[Parcel], streams: Sequence[StreamSlots], files: ParcelFiles | None
) -> dict[tuple[int, int, int], Share]:
    """Put blocks together to the rows of each (group, lane, stream number), in the order of the source's partitions."""
    blocks = [parcel for parcel in parcels if parcel.kind == BLOCK]
    pieces: dict[tuple[int, int, int], list[pa.RecordBatch]] = {}
    for parcel in sorted(files.read(blocks) if files else blocks, key=lambda one: one.words):
        (*_, group, stream, runs), begin = parcel.words, 0
        rows = unpacked(parcel.body)
        for lane, size in runs:
            pieces.setdefault((group, lane, stream), []).append(rows.slice(begin, size))
            begin += size
    return {
        (group, lane, stream): Share(streams[stream], own[0] if len(own) == 1 else pa.concat_batches(own))
        for (group, lane, stream), own in pieces.items()
    }
