"""Rows that queries of a higher level read, between the Spark jobs of a step: the tasks of one keep them, those of the
next read them.

They are chunks like those of states, but no manifest lists them: they are removed with what a step has left behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from midstream.expr.expression import Expression
from midstream.model.ids import LaneId
from midstream.model.manifest import ChunkRef, Manifest
from midstream.model.schema import StreamSchema
from midstream.runtime.lane_key import slots
from midstream.runtime.result_operator import Answer
from midstream.state.base_state import TIME
from midstream.state.chunk_store import ChunkStore, store_chunk
from midstream.units.answers import AnswerTimes, rows_of


@dataclass(frozen=True)
class KeptRows:
    """Rows of a stream in a chunk: what one lane answered to a `query`, or without one, what a task was brought."""

    stream: str
    query: str
    origin: str
    chunk: ChunkRef
    times: AnswerTimes = field(default_factory=AnswerTimes)


def kept_rows(store: ChunkStore, step: int, stream: str, partition: int, rows: pa.RecordBatch, number: int) -> KeptRows:
    """Keep rows of a pushed stream, the chunk of this number in its partition."""
    chunk = store_chunk(store, f"partition{partition}/{step:08d}-rows{number}", rows)
    return KeptRows(stream, "", f"{partition:08d}-{number}", chunk)


def kept_answers(store: ChunkStore, manifest: Manifest, lane: LaneId, query: str, answer: Answer) -> list[KeptRows]:
    """Keep a lane's answers to a query once for each stream that has them; nothing where nobody reads them."""
    reading = [(n, s) for n, s in enumerate(manifest.streams.values()) if query in s.answers_of]
    found = []
    for number, stream in reading if len(answer.times) else ():
        rows = rows_of(stream, [answer])
        name = f"{lane}/{manifest.step:08d}-answers{number}-{stream.answers_of.index(query)}"
        found.append(KeptRows(stream.name, query, str(lane), store_chunk(store, name, rows), AnswerTimes.of(rows)))
    return found


def chunks_by_stream(streams: Mapping[str, StreamSchema], kept: Sequence[KeptRows]) -> dict[str, tuple[ChunkRef, ...]]:
    """Group the chunks by stream: those of answers in order of the queries and their lanes."""

    def place(one: KeptRows) -> tuple[int, str]:
        return streams[one.stream].answers_of.index(one.query) if one.query else 0, one.origin

    ordered = sorted(kept, key=place)
    return {name: tuple(one.chunk for one in ordered if one.stream == name) for name in {one.stream for one in kept}}


def rows_from(store: ChunkStore, chunks: Sequence[ChunkRef], nothing: pa.RecordBatch) -> pa.RecordBatch:
    """Read the rows that were kept in these chunks, in their order; `nothing` where there is none."""
    return pa.concat_batches([store.get(chunk) for chunk in chunks]) if chunks else nothing


def no_answers(stream: StreamSchema) -> pa.RecordBatch:
    """Make an empty batch of a stream of answers."""
    return pa.RecordBatch.from_pylist([], pa.schema([*stream.columns, (TIME, pa.int64())]))


def own_share(
    rows: pa.RecordBatch, key: Mapping[str, Expression], stream: str, lane: int, lanes: int
) -> pa.RecordBatch:
    """Select the rows of a stream that belong to a lane."""
    return rows.filter(pa.array(slots(key, stream, rows) % lanes == lane))


def even_share(rows: pa.RecordBatch, lane: int, lanes: int) -> pa.RecordBatch:
    """Select the rows of a stream that a lane sends on to nodes, where each lane sends about as many."""
    begin, end = (rows.num_rows * number // lanes for number in (lane, lane + 1))
    return rows.slice(begin, end - begin)
