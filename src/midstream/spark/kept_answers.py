"""Answers that other queries read, between the two Spark jobs of a step: the tasks of one keep them, those of the next
read them.

They are chunks like those of states, but no manifest lists them: they are removed with what a step has left behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from midstream.language.expression import Expression
from midstream.model.ids import LaneId
from midstream.model.manifest import ChunkRef, Manifest
from midstream.model.schema import StreamSchema
from midstream.runtime.lane_key import slots
from midstream.runtime.result_operator import Answer
from midstream.state.base_state import SLOT, TIME
from midstream.state.store.base import ChunkStore, store_chunk
from midstream.step.answers import AnswerTimes, rows_of


@dataclass(frozen=True)
class KeptAnswers:
    """What one lane answered to a query, as rows of a stream that others read."""

    stream: str
    query: str
    lane: LaneId
    chunk: ChunkRef
    times: AnswerTimes


def kept_answers(store: ChunkStore, manifest: Manifest, lane: LaneId, query: str, answer: Answer) -> list[KeptAnswers]:
    """Keep a lane's answers to a query once for each stream that has them; nothing where nobody reads them."""
    reading = [(n, s) for n, s in enumerate(manifest.streams.values()) if query in s.answers_of]
    found = []
    for number, stream in reading if len(answer.times) else ():
        rows = rows_of(stream, [answer])
        name = f"{lane}/{manifest.step:08d}-answers{number}-{stream.answers_of.index(query)}"
        found.append(KeptAnswers(stream.name, query, lane, store_chunk(store, name, rows), AnswerTimes.of(rows)))
    return found


def chunks_by_stream(
    streams: Mapping[str, StreamSchema], answers: Sequence[KeptAnswers]
) -> dict[str, tuple[ChunkRef, ...]]:
    """The chunks of each stream's rows, in order of its queries and their lanes."""
    ordered = sorted(answers, key=lambda one: (streams[one.stream].answers_of.index(one.query), one.lane))
    return {name: tuple(one.chunk for one in ordered if one.stream == name) for name in {a.stream for a in answers}}


def answers_from(store: ChunkStore, stream: StreamSchema, chunks: Sequence[ChunkRef]) -> pa.RecordBatch:
    """The rows of a stream that were kept in these chunks, in their order."""
    schema = pa.schema([*stream.columns, (TIME, pa.int64())])
    found = pa.Table.from_batches([store.get(chunk).cast(schema) for chunk in chunks], schema=schema)
    return (found.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema)])[0]


def own_share(
    rows: pa.RecordBatch, key: Mapping[str, Expression], stream: str, lane: int, lanes: int
) -> pa.RecordBatch:
    """The rows of a stream that belong to a lane, with their slots."""
    found = slots(key[stream], rows, spread_nulls=len(key) > 1)
    slotted = rows.append_column(SLOT, pa.array(found))
    return slotted.filter(pa.array(np.asarray(found) % lanes == lane))
