"""A partition's rows taken apart into lanes and streams; runs in a Python worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from midstream.runtime.lane_key import SLOTS
from midstream.state.base_state import SLOT, TIME, count_column

Words = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Carried:
    """How one stream's columns are found again: name, slot and declared type of each, and the slot of unread
    timestamps.
    """

    name: str
    timestamp: str
    columns: tuple[tuple[str, str, pa.DataType], ...]
    raw: str | None


@dataclass(frozen=True)
class Share:
    """The rows of one stream in one lane, as they came."""

    stream: Carried
    rows: pa.RecordBatch
    tags: Words


def shares(
    batches: Iterable[pa.RecordBatch], streams: Sequence[Carried], lanes: Mapping[int, int], stream_bits: int
) -> dict[tuple[int, int, int], Share]:
    """The partition's rows by (group, lane, stream number); `lanes` gives for each group how many lanes it has."""
    table = pa.Table.from_batches(arrived) if (arrived := list(batches)) else None
    if table is None or not table.num_rows:
        return {}
    whole = table.combine_chunks().to_batches()[0]
    tags = whole.column("_tag").to_numpy()
    slot_bits = SLOTS.bit_length() - 1
    group, stream = tags >> (slot_bits + stream_bits), (tags >> slot_bits) & ((1 << stream_bits) - 1)
    counts = np.array([lanes.get(g, 1) for g in range(int(group.max()) + 1)], np.int32)
    code = ((group * SLOTS + (tags & (SLOTS - 1)) % counts[group]) << stream_bits) + stream
    sizes = np.bincount(code)
    found = np.flatnonzero(sizes)
    # Few different ones, so they fit sixteen bits, which numpy sorts by radix.
    ranks = np.zeros(len(sizes), np.int16 if len(found) < 2**15 else np.int32)
    ranks[found] = np.arange(len(found))
    order = np.argsort(ranks[code], kind="stable")
    ends = np.cumsum(sizes[found])
    result = {}
    for at, one in enumerate(found.tolist()):
        rows = order[ends[at - 1] if at else 0 : ends[at]]
        own = streams[one & ((1 << stream_bits) - 1)]
        key = (one >> stream_bits) // SLOTS, (one >> stream_bits) % SLOTS, one & ((1 << stream_bits) - 1)
        chosen = whole if len(rows) == whole.num_rows else _take(whole, own, rows)
        result[key] = Share(own, chosen, tags if len(rows) == len(tags) else tags[rows])
    return result


def inputs(share: Share, chosen: npt.NDArray[np.bool_] | None, counted: Sequence[str], slotted: bool) -> pa.RecordBatch:
    """A share as a lane's input: declared columns, `_ts`, `_slot` and arrival numbers; `chosen` marks the admitted
    rows.
    """
    rows, tags = share.rows, share.tags
    if chosen is not None:
        rows, tags = rows.filter(pa.array(chosen)), tags[chosen]
    columns = declared(share.stream, rows)
    columns[TIME] = rows.column(TIME)
    if slotted:
        columns[SLOT] = pa.array((tags & (SLOTS - 1)).astype(np.int16))
    columns |= {count_column(stream): rows.column(count_column(stream)) for stream in counted}
    return pa.RecordBatch.from_pydict(columns)


def declared(stream: Carried, rows: pa.RecordBatch) -> dict[str, pa.Array]:
    """The stream's own columns, of the types it was declared with."""
    return {name: as_declared(rows.column(slot), kind) for name, slot, kind in stream.columns}


def as_declared(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a slot as the declared type; a timestamp told by its microseconds costs nothing."""
    if values.type == kind:
        return values
    if pt.is_timestamp(kind) and pt.is_int64(values.type):
        return values.view(pa.timestamp("us")).cast(kind) if kind.unit != "us" else values.view(kind)
    return values.cast(kind)


def nothing(stream: Carried, counted: Sequence[str], slotted: bool) -> pa.RecordBatch:
    """A lane's input where a stream brought no row."""
    fields = [(name, kind) for name, _, kind in stream.columns] + [(TIME, pa.int64())]
    fields += [(SLOT, pa.int16())] * slotted + [(count_column(other), pa.int64()) for other in counted]
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for _, kind in fields], schema=pa.schema(fields))


def _take(whole: pa.RecordBatch, stream: Carried, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
    slots = {slot for _, slot, _ in stream.columns} | ({stream.raw} if stream.raw else set())
    names = [n for n in whole.schema.names if n == TIME or n in slots or n.startswith("_count:")]
    return whole.select(names).take(pa.array(rows))
