"""What travels between the stages of a step: few parcels, most with an Arrow batch, and how a task sends them.

The JVM moves them as they are, one for each sender, receiver and kind, and never looks into them. Where all tasks see
the store's files, large bodies go by files and the shuffle carries only their names: a body that goes through the
shuffle is pickled, copied into the JVM, compressed, written, and all of that backwards.
"""

from __future__ import annotations

import gc
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from midstream.model.errors import MidstreamError
from midstream.pipeline.lane_task import failure
from midstream.ring.columns import Visits, Words
from midstream.ring.joined_rows import JoinedRows
from midstream.ring.late_rows import LateRows
from midstream.storage.files import FileStore, pieces_written
from midstream.storage.unsynced import Unsynced

END = 1 << 20
"""The stage after the last one: the driver."""

REPORT, STOP = "report", "stop"
"""Kinds of parcels: what a task reports, and that a task has failed, so that no later one need begin."""

_MOMENT, _LOW, _HIGH, _ORIGIN = "moment", "low", "high", "origin"


@dataclass(frozen=True)
class Parcel:
    """Something for a partition, to be opened in a stage: its kind, the query it is of, and further words; `file` names
    the file of its body, where that has one.
    """

    to: int
    stage: int
    kind: str
    query: str = ""
    words: tuple[Any, ...] = ()
    body: bytes | pa.Buffer = b""
    file: str = ""

    @property
    def head(self) -> str:
        """All but the body, as text; parcels of equal heads come from different senders."""
        return json.dumps([self.kind, self.query, *self.words])

    def later(self, stage: int) -> Parcel:
        """Return the parcel, to be opened in a later stage."""
        return replace(self, stage=stage)


def in_order(parcels: Iterable[Parcel]) -> list[Parcel]:
    """Sort parcels into an order that does not depend on which came first."""
    return sorted(parcels, key=lambda parcel: (parcel.head, parcel.file, parcel.body))


def packed(batch: pa.RecordBatch) -> bytes:
    """Write a batch in Arrow's own form."""
    return b"".join(pieces_written(lambda sink: pa.ipc.new_stream(sink, batch.schema), batch))


def unpacked(body: bytes | pa.Buffer) -> pa.RecordBatch:
    """Read a packed batch."""
    return pa.ipc.open_stream(pa.py_buffer(body)).read_next_batch()


def packed_words(words: Words) -> bytes:
    """Write whole numbers in Arrow's own form."""
    return packed(pa.RecordBatch.from_arrays([pa.array(words, pa.int64())], names=["words"]))


def unpacked_words(body: bytes | pa.Buffer) -> Words:
    """Read packed whole numbers."""
    return np.asarray(unpacked(body).column(0).to_numpy(), np.int64)


def packed_visits(joined: JoinedRows, visits: Visits) -> tuple[bytes, list[tuple[str, int]]]:
    """Pack the partial results that visit a node, each with its visit.

    Returns: the bytes, and by source how many columns it has, which `unpacked_visits` needs.
    """
    going = joined.take(visits.partial)
    arrays, names, parts = [], [], []
    for label, part in going.parts.items():
        parts.append((label, len(part.names)))
        arrays += part.columns()
        names += part.names
    words = {_MOMENT: going.moment, _LOW: visits.low, _HIGH: visits.high}
    if going.origin is not None:
        words[_ORIGIN] = going.origin
    arrays += [pa.array(one) for one in words.values()]
    return packed(pa.RecordBatch.from_arrays(arrays, names=[*names, *words])), parts


def unpacked_visits(body: bytes | pa.Buffer, node: int, parts: Sequence[Sequence[Any]]) -> tuple[JoinedRows, Visits]:
    """Read the partial results that visit a node, and their visits."""
    batch, found, at = unpacked(body), dict[str, LateRows](), 0
    for label, count in parts:
        own = slice(at, at + count)
        found[label] = LateRows.of(pa.RecordBatch.from_arrays(batch.columns[own], names=batch.schema.names[own]))
        at += count
    moment, low, high, *origin = (np.asarray(column.to_numpy(), np.int64) for column in batch.columns[at:])
    every = np.arange(len(moment))
    return JoinedRows(found, moment, *origin), Visits(every, np.full(len(every), node), low, high)


def reported(partition: int, report: Mapping[str, Any]) -> Parcel:
    """Pack what a task reports, for the driver."""
    return Parcel(partition, END, REPORT, body=json.dumps(report).encode())


def stopped(partitions: int, stage: int) -> list[Parcel]:
    """Make the parcels that tell all partitions that a task has failed before this stage."""
    return [Parcel(partition, stage, STOP) for partition in range(partitions)]


def unpacked_report(body: bytes | pa.Buffer) -> dict[str, Any]:
    """Read what a task reported."""
    found: dict[str, Any] = json.loads(bytes(body))
    return found


LEAST = 256 << 10
"""Smaller bodies go with their parcels."""

FOLDER = "parcels"
"""Where they lie among an epoch's chunks."""


@dataclass(frozen=True)
class ParcelFiles:
    """The files of a step's parcels, in its store: of bodies of `least` bytes or more.

    Nobody needs them after the step, so none is made to survive the loss of power; those of a driver that has died go
    with a sweep of the store.
    """

    store: FileStore
    step: int
    least: int

    @staticmethod
    def of(store: FileStore, step: int) -> ParcelFiles | None:
        """Choose the files of a store; None if it has no files that are as quick as memory."""
        return ParcelFiles(store, step, LEAST) if store.storage.renames_folders else None

    def written(self, parcels: Iterable[Parcel], partition: int) -> list[Parcel]:
        """Write the large bodies of the parcels that a partition sends to files."""
        store, token = self.store.synced_with(Unsynced()), secrets.token_hex(4)
        found = []
        for number, parcel in enumerate(parcels):
            if parcel.file:
                found.append(replace(parcel, body=b""))
            elif parcel.stage != END and len(parcel.body) >= self.least:
                # Parcels of equal heads come from different partitions: their names put them in order.
                label = f"{FOLDER}/{self.step:08d}-{parcel.stage}.{partition:06d}.{number}.{token}"
                found.append(replace(parcel, body=b"", file=store.put_bytes(label, parcel.body)))
            else:
                found.append(parcel)
        return found

    def read(self, parcels: Iterable[Parcel]) -> list[Parcel]:
        """Read the bodies of the parcels that are in files."""
        return [replace(one, body=self.store.get_bytes(one.file)) if one.file else one for one in parcels]

    def remove(self) -> None:
        """Remove all of them, once the step's job has ended, however it did."""
        self.store.remove_folder(FOLDER)


def addressed(
    parcels: Sequence[Parcel], partition: int, stage: int, partitions: int, files: ParcelFiles | None
) -> list[tuple[int, Parcel]]:
    """Address parcels to the partitions that open them in a `stage` or later, with large bodies in `files`."""
    try:
        going = files.written(parcels, partition) if files else parcels
    except MidstreamError as error:
        going = [reported(partition, failure(error)), *stopped(partitions, stage)]
    return [(parcel.to, parcel) for parcel in going]


def place_of_task() -> tuple[int, bool]:
    """Return the partition of the task that runs here, and whether Spark had begun it before.

    What an earlier attempt has staged is in no report.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), context.attemptNumber() > 0


@cache
def leave_loaded_code_alone() -> None:
    """Take what is loaded by now out of garbage collection; call this when a first task is done.

    Spark has its workers collect garbage after every task. To look through all that numpy, Arrow and this package
    consist of takes 20 to 40 ms of processor time, while the driver works or the next task waits.
    """
    gc.collect()
    gc.freeze()
