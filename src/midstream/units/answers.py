"""Queries that read the answers of other queries: their streams, and at which level they run. Pure.

A query over pushed streams is of level 0, one that reads the answers of queries of level n of level n + 1. The levels
of a step run one after the other: what one answers, the next takes in within the same step. So a query that others read
needs no place for its answers, and no answer waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.logical.query import Query, query_of
from midstream.model.errors import (
    CheckpointError,
    InternalError,
    LanguageError,
    MidstreamError,
    QueryError,
    fault_located,
)
from midstream.model.ids import LaneId, StateKind
from midstream.model.manifest import Manifest, QueryEntry, StreamProgress
from midstream.model.schema import StreamSchema
from midstream.runtime.result_operator import Answer
from midstream.runtime.watermark import BEGINNING, Seen, watermarks
from midstream.sql.answer_streams import Answering, answers_as_stream, streams_named
from midstream.sql.parse import bind_query
from midstream.sql.parts import Statement
from midstream.sql.place import begin_of, place
from midstream.sql.scope import find_name
from midstream.state.base_state import TIME
from midstream.units.lane_step import LaneOutput
from midstream.units.user_operators import result_columns


def with_answers(manifest: Manifest, query: Statement, reader: str) -> Manifest:
    """Add a stream for each query whose answers a query is to read; raises QueryError where it cannot read them."""
    if not query.parts.queries and not any(name.lower() in query.sql.lower() for name in manifest.queries):
        return manifest
    return with_answers_of(manifest, streams_named(query), reader, query)


def with_answers_of(manifest: Manifest, names: Iterable[str], reader: str, whole: Statement | None = None) -> Manifest:
    """Add a stream for the queries of these names; others are passed over. `whole` is the query that has the names."""
    unions, parts = (whole.parts.unions, whole.parts.queries) if whole is not None else ({}, {})
    for name in names:
        known = find_name(name, manifest.queries)
        queries = unions.get(name) or (tuple(known) if len(known) == 1 else ())
        if find_name(name, manifest.streams) or not queries:
            continue
        for query in queries:
            _check_readable(manifest, query, reader)
        with fault_located(partial("query {}".format, reader)):
            places = (_place(parts[query]) if query in parts else "" for query in queries)
            answering = [_answering(manifest, query, place) for query, place in zip(queries, places, strict=True)]
            named = name if len(queries) > 1 else queries[0]
            stream = answers_as_stream(named, answering, manifest.streams)
        manifest = replace(manifest, streams={**manifest.streams, stream.name: stream})
    return manifest


def _place(part: Statement) -> str:
    return place(part.text, begin_of(part.tree))


def with_streams_changed(manifest: Manifest, before: Mapping[str, StreamSchema]) -> Manifest:
    """Bind the queries again for which streams, declared otherwise than `before`, mean something else now.

    `SELECT *` stands for other columns than before, so that streams of answers may have others too. A column that is
    named stands for what it stood for. The SELECTs of a UNION over several streams agree again once all of these are
    declared.
    """
    manifest = _bound_anew(manifest, before)
    below = set(before)
    for name in [stream.name for level in streams_by_level(manifest) for stream in level]:
        former = manifest.streams[name]
        if not below.isdisjoint(_read_for(manifest, former)):
            below.add(name)
        try:
            answering = [_answering(manifest, query, f"stream {name}") for query in former.answers_of]
            now = answers_as_stream(name, answering, manifest.streams)
        except LanguageError:
            continue
        if now.columns.names != former.columns.names:
            streams = {**manifest.streams, name: replace(former, columns=now.columns)}
            manifest = _bound_anew(replace(manifest, streams=streams), {name: former})
        elif name in below:
            # Of a join below a join, `*` stands for the columns of the streams that it joins, in their order.
            manifest = _bound_anew(manifest, {name: former})
    return manifest


def _bound_anew(manifest: Manifest, former: Mapping[str, StreamSchema]) -> Manifest:
    others = {name: _marked_otherwise(stream, manifest.streams[name]) for name, stream in former.items()}
    anew = {name for name, entry in manifest.queries.items() if _means_others(entry, others)}
    queries, trees = {**manifest.queries}, dict[str, Statement]()
    if not anew:
        return manifest
    for name, entry in reversed([*manifest.queries.items()]):  # Each before its parts, of which it has the trees.
        if anew.isdisjoint(_with_parts(manifest, name)):
            continue
        query = query_of(entry)
        tree: Statement = trees.get(name) or query.tree or Statement.of(entry.sql)
        query.keep(tree)  # For the next stream that is declared otherwise.
        trees |= tree.parts.queries
        if name not in anew:
            continue
        try:
            queries[name] = replace(entry, query=bind_query(manifest, tree).keep(tree))
        except LanguageError as error:
            if "*" in entry.sql:
                raise cannot_be_taken_up(name, error) from error
            # Its columns have names, which stand for what they stood for.
    return replace(manifest, queries=queries)


def _marked_otherwise(former: StreamSchema, now: StreamSchema) -> Set[str]:
    both = set(former.columns.names) & set(now.columns.names)
    return {name for name in both if former.columns.field(name).metadata != now.columns.field(name).metadata}


def _means_others(entry: QueryEntry, others: Mapping[str, Set[str]]) -> bool:
    query = query_of(entry)
    read = [source for source in query.sources if source.stream in others]
    return bool(read) and (
        "*" in entry.sql or any(not others[s.stream].isdisjoint(query.columns_of(s.alias)) for s in read)
    )


def _with_parts(manifest: Manifest, name: str) -> Set[str]:
    # The query, the parts that it reads, and those that these read.
    found, waiting = set[str](), [name]
    while waiting:
        found.add(one := waiting.pop())
        for stream in query_of(manifest.queries[one]).children:
            waiting += [query for query in manifest.streams[stream].answers_of if manifest.queries[query].part]
    return found


def cannot_be_taken_up(name: str, error: MidstreamError) -> CheckpointError:
    """Make the error of a query that was right, and is none over the present streams or predicates."""
    message = f"the checkpoint has a query that cannot be taken up: {error.message}"
    return CheckpointError(message, place=f"query {name}, {error.place}", remedy=error.remedy)


def _read_for(manifest: Manifest, stream: StreamSchema) -> Set[str]:
    # What the queries read whose answers a stream is.
    return {below for query in stream.answers_of for below in query_of(manifest.queries[query]).children}


def _answering(manifest: Manifest, name: str, place: str) -> Answering:
    entry = manifest.queries[name]
    return Answering(name, query_of(entry), result_columns(query_of(entry), entry.operator), place)


def without_unread(manifest: Manifest) -> Manifest:
    """Remove streams of answers that no query reads any more."""
    if not any(stream.answers_of for stream in manifest.streams.values()):
        return manifest
    read = {stream for entry in manifest.queries.values() for stream in query_of(entry).children}
    kept = {name: stream for name, stream in manifest.streams.items() if not stream.answers_of or name in read}
    progress = {name: one for name, one in manifest.progress.items() if name in kept}
    return manifest if len(kept) == len(manifest.streams) else replace(manifest, streams=kept, progress=progress)


def unread_part(manifest: Manifest) -> str | None:
    """Find a part that no query reads any more."""
    parts = (name for name, entry in manifest.queries.items() if entry.part)
    return next((name for name in parts if not readers(manifest, name)), None)


def readers(manifest: Manifest, name: str) -> tuple[str, ...]:
    """List the queries that read the answers of a query."""
    streams = {stream.name for stream in manifest.streams.values() if name in stream.answers_of}
    if not streams:
        return ()
    texts = ((reader, query_of(entry)) for reader, entry in manifest.queries.items())
    return tuple(reader for reader, query in texts if not streams.isdisjoint(query.children))


def unread(manifest: Manifest) -> Set[str]:
    """Return the queries whose answers no other reads."""
    return manifest.queries.keys() - {name for stream in manifest.streams.values() for name in stream.answers_of}


def refuse_if_read(manifest: Manifest, name: str, what: str) -> None:
    """Raise QueryError where other queries read the answers of a query."""
    if others := readers(manifest, name):
        raise QueryError(
            f"query {name!r} cannot be {what} while queries read its answers: {', '.join(others)}",
            place=f"query {name}",
            remedy=f"drop {'it' if len(others) == 1 else 'them'} first",
        )


def level_of(manifest: Manifest, query: Query, known: dict[str, int] | None = None) -> int:
    """Count how many queries, one reading the other's answers, are below a query; `known` are those below streams."""
    known = {} if known is None else known
    return max((_level_of_stream(manifest, stream, known) for stream in query.children), default=0)


def _level_of_stream(manifest: Manifest, stream: str, known: dict[str, int]) -> int:
    if stream not in known:
        queries = [query_of(manifest.queries[query]) for query in manifest.streams[stream].answers_of]
        known[stream] = max((1 + level_of(manifest, query, known) for query in queries), default=0)
    return known[stream]


def pushed_below(
    manifest: Manifest, streams: Iterable[str], known: dict[str, frozenset[str]] | None = None
) -> frozenset[str]:
    """Collect the pushed streams that the rows of streams are made of; `known` are those below streams of answers."""
    known = {} if known is None else known
    found: set[str] = set()
    for name in streams:
        stream = manifest.streams[name]
        if stream.answers_of and name not in known:
            known[name] = pushed_below(manifest, _read_for(manifest, stream), known)
        found |= known[name] if stream.answers_of else {name}
    return frozenset(found)


def streams_by_level(manifest: Manifest) -> list[list[StreamSchema]]:
    """List the streams of answers, by the level of the queries that may first read them; level 0 is empty."""
    found: list[list[StreamSchema]] = [[]]
    known: dict[str, int] = {}
    for stream in manifest.streams.values():
        if stream.answers_of:
            level = _level_of_stream(manifest, stream.name, known)
            found += [[] for _ in range(level + 1 - len(found))]
            found[level].append(stream)
    return found


@dataclass(frozen=True)
class AnswerTimes:
    """How many rows a step answered, and the least and greatest of their times; None where there are none."""

    count: int = 0
    least: int | None = None
    greatest: int | None = None

    @staticmethod
    def of(rows: pa.RecordBatch) -> AnswerTimes:
        """Measure a stream's rows."""
        times = np.asarray(rows.column(TIME))
        return AnswerTimes(len(times), int(times.min()), int(times.max())) if len(times) else AnswerTimes()

    def __add__(self, other: AnswerTimes) -> AnswerTimes:
        least = [time for time in (self.least, other.least) if time is not None]
        greatest = [time for time in (self.greatest, other.greatest) if time is not None]
        return AnswerTimes(self.count + other.count, min(least, default=None), max(greatest, default=None))


def rows_of(stream: StreamSchema, answers: Sequence[Answer]) -> pa.RecordBatch:
    """Concatenate the answers of a stream's queries as its rows, with `_ts`, one query's after the other's."""
    batches = [_rows(stream, answer) for answer in answers]
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _rows(stream: StreamSchema, answer: Answer) -> pa.RecordBatch:
    times = pa.array(answer.times, pa.int64())
    columns = [column.combine_chunks() for column in answer.table.columns]
    if len(columns) < len(stream.columns):
        columns.append(times.cast(stream.columns.field(stream.timestamp).type))
    if len(columns) != len(stream.columns):
        raise QueryError(
            f"the SELECTs of {stream.name!r} have different numbers of columns: {len(columns)}, {len(stream.columns)}",
            place=f"stream {stream.name}", remedy="declare the same columns for all streams, or name the columns",
        )  # fmt: skip
    fitted = [column.cast(field.type) for column, field in zip(columns, stream.columns, strict=True)]
    if stream.lateness:  # Its time is that of a source's rows, which came before.
        times = fitted[stream.columns.get_field_index(stream.timestamp)].cast(pa.int64())
        order = pc.array_sort_indices(times)
        fitted, times = [column.take(order) for column in fitted], times.take(order)
    return pa.RecordBatch.from_arrays([*fitted, times], names=[*stream.columns.names, TIME])


def answered(
    manifest: Manifest,
    progress: Mapping[str, StreamProgress],
    stream: StreamSchema,
    times: AnswerTimes,
    outputs: Mapping[LaneId, LaneOutput],
) -> tuple[StreamProgress, Seen]:
    """Compute the progress of a stream of answers after those of a step, and what was seen of them.

    A query never answers with an older time than the least watermark of its streams, and a row in its answer is no more
    than the stream's lateness older. Only what a migration holds back comes later: as long as something is, the
    watermark of the answers stands.
    """
    before, marks = progress.get(stream.name, StreamProgress()), watermarks(manifest.streams, progress)
    least = min(marks[below] for below in _read_for(manifest, stream))
    if times.least is not None and before.floor is not None and times.least < before.floor:
        raise InternalError(
            f"query {stream.name!r} gave an answer with a time before the query's watermark",
            place=f"stream {stream.name}",
            remedy="report this fault, with the query and its plan",
        )
    held = any(_holds_back(output, query) for query in stream.answers_of for output in outputs.values())
    floors = [
        mark
        for mark in (before.floor, None if held or least == BEGINNING else least - stream.lateness)
        if mark is not None
    ]
    seen = Seen(times.greatest, times.count)
    greatest = [time for time in (before.greatest, seen.greatest) if time is not None]
    after = replace(
        before,
        greatest=max(greatest, default=None),
        floor=max(floors, default=None),
        rows=before.rows + seen.rows,
    )
    return after, seen


def _holds_back(output: LaneOutput, query: str) -> bool:
    return any(
        state.kind is StateKind.HELD and state.owner == query and listing.live
        for state, listing in output.state.states.items()
    )


def _check_readable(manifest: Manifest, name: str, reader: str) -> None:
    entry, remedy = manifest.queries[name], "write its answers to files, and read those as a stream"
    if entry.operator is not None:
        raise QueryError(
            f"query {reader!r} cannot read the answers of query {name!r}, because {name!r} has a user operator",
            place=f"query {reader}",
            remedy=remedy,
        )
