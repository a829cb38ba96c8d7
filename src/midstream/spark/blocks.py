"""How a step's rows reach the lanes: as Arrow from the source's partitions on, split by lane there, in blocks.

Spark makes Arrow batches of the rows, each once, with the slot of every lane group beside them. A task of the source's
partition sorts a batch by lane, and sends to each partition of lanes one block of each stream and group. Blocks are
parcels: large ones go by files where all tasks see the store's files, else through the shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import Accumulator
from pyspark.accumulators import AccumulatorParam

from midstream.runtime.watermark import LAST_TIME, Seen, StepClock
from midstream.spark.layout import ARRIVALS, STREAM, slot_column
from midstream.spark.parcel import (
    Parcel,
    ParcelFiles,
    addressed,
    leave_loaded_code_alone,
    packed,
    place_of_task,
    unpacked,
)
from midstream.spark.unpack import Share, StreamSlots
from midstream.state.base_state import TIME
from midstream.step.admission.admit import judge


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

    `groups` has for each lane group how many lanes it has, and the numbers of the streams that it reads. Rows of a
    stream that none reads go to a group after the last one, in which they are looked at but not joined. `read` adds up
    the rows, for the driver to say how many there are while the step is under way.
    """

    schema: pa.Schema
    streams: tuple[StreamSlots, ...]
    groups: tuple[tuple[int, frozenset[int]], ...]
    partitions: int
    clock: StepClock
    files: ParcelFiles | None
    read: Accumulator[int] | None = None

    def __call__(self, batches: Iterable[bytes]) -> list[tuple[int, Parcel]]:
        """Return the blocks by the partitions of lanes that they go to; what was seen goes to the first one."""
        partition, _ = place_of_task()
        seen: dict[str, Seen] = {}
        parcels: list[Parcel] = []
        for number, body in enumerate(batches):
            for stream, rows in _by_stream(pa.ipc.read_record_batch(pa.py_buffer(body), self.schema)):
                own = self.streams[stream].name
                most = self.clock.ceilings.get(own, LAST_TIME)
                seen[own] = seen.get(own, Seen()) + judge(rows.column(TIME), self.clock.before[own], most).seen
                parcels += self._blocks((partition, number), stream, rows)
        if self.read is not None:
            self.read.add(sum(one.rows for one in seen.values()))
        told = {name: [one.greatest, one.rows, one.late, one.rejected] for name, one in seen.items()}
        parcels.append(Parcel(0, ARRIVAL, SEEN, words=(partition, told)))
        leave_loaded_code_alone()
        return addressed(parcels, partition, ARRIVAL, self.partitions, self.files)

    def _blocks(self, origin: tuple[int, int], stream: int, rows: pa.RecordBatch) -> Iterator[Parcel]:
        columns = self.streams[stream].slots
        names = [n for n in rows.schema.names if n == TIME or n in columns or n.startswith(ARRIVALS)]
        first, own = 0, rows.select(names)
        for group, (lanes, streams) in enumerate(self.groups):
            if stream in streams:
                slots = rows.column(slot_column(group))
                yield from self._sorted(origin, (group, stream), own, slots, lanes, first)
            first += lanes
        if not any(stream in streams for _, streams in self.groups):
            slots = rows.column(slot_column(len(self.groups)))
            yield from self._sorted(origin, (len(self.groups), stream), own, slots, 0, 0)

    def _sorted(
        self,
        origin: tuple[int, int],
        group: tuple[int, int],
        rows: pa.RecordBatch,
        slots: pa.Array,
        lanes: int,
        first: int,
    ) -> Iterator[Parcel]:
        # `first` is the number of the group's first lane among those of all groups, which take turns over partitions.
        # The rows of no lanes at all are dealt out by their slots.
        if slots.null_count:  # No query of the group can use these.
            kept = slots.is_valid()
            rows, slots = rows.filter(kept), slots.drop_null()
        words = slots.to_numpy().astype(np.int32)
        lane = words % lanes if lanes else np.zeros_like(words)
        places = (first + lane) if lanes else words % self.partitions
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
                runs.append([int(found[at]) - first if lanes else 0, int(sizes[found[at]])])
                rows_of += runs[-1][1]
                at += 1
            body = packed(rows.slice(begin, rows_of))
            yield Parcel(to, ARRIVAL, BLOCK, words=(*origin, *group, runs), body=body)
            begin += rows_of


def _by_stream(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    owners = batch.column(STREAM).to_numpy()
    if not len(owners):
        return
    if owners[0] == owners[-1] and (owners == owners[0]).all():
        yield int(owners[0]), batch
        return
    for stream in np.unique(owners).tolist():
        yield stream, batch.filter(pa.array(owners == stream))


def seen_of(parcels: Iterable[Parcel]) -> list[dict[str, Seen]]:
    """Read what tasks have seen of each stream, of parcels that came to the first partition."""
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
