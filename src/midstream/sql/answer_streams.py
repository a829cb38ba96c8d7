"""The answers of a query as a stream that other queries read, as `FROM winning_bids` names it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from midstream.expr.coerce import name as name_of
from midstream.expr.expression import TIME_COLUMN
from midstream.expr.types import family
from midstream.logical.implied_windows import near_times
from midstream.logical.query import Query
from midstream.logical.result_time import time_of
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.sql.dialect import CqlText
from midstream.sql.moments import marked, time_told
from midstream.sql.parts import Statement
from midstream.sql.scope import NOT_STARRED
from midstream.sql.select_list import select_of
from midstream.sql.set_operations import NUMBER, operation_of

TIME_SHOWN = "result_time"
"""What the time of an answer is called in the stream, where its query gives it no name."""


def streams_named(query: Statement) -> tuple[str, ...]:
    """The names that stand in FROM and EXCEPT ON of a query, those of WITH left out; raises LanguageError.

    >>> text = "WITH x AS (SELECT k FROM A) SELECT * FROM x [RANGE 5 SECONDS], q0 [RANGE 5 SECONDS]"
    >>> streams_named(Statement.of(text))
    ('q0', 'A')
    """
    tree = select_of(query.text, query.parts.whole)
    common = {table.alias.lower() for table in tree.find_all(exp.CTE)}
    names = [table.name for table in tree.find_all(exp.Table) if table.name.lower() not in common]
    return tuple(dict.fromkeys([*names, *(one.stream for one in CqlText.of(query.text, tree).subtrahends)]))


@dataclass(frozen=True)
class Answering:
    """A query whose answers are read: its name, what it asks, the columns of its answers, and its `place` in a text, if
    it stands in one.
    """

    name: str
    query: Query
    columns: pa.Schema
    place: str = ""


def answers_as_stream(name: str, answering: Sequence[Answering], streams: Mapping[str, StreamSchema]) -> StreamSchema:
    """The stream of the answers of one query, or of the SELECTs of a UNION or its like, with columns of equal types.

    Its timestamp is the time of each answer: the column that the query selects as `_ts`, else one more, `result_time`,
    of the type of `_ts`. Where the query selects the timestamp of the only stream it reads, that is it, as its stream
    has it; where it calls the event time of a source's rows `_ts`, it is that, and the stream is late by as much as an
    answer may come after the row. Where only some of the SELECTs have times with a zone, all are given one. Raises
    LanguageError where they differ otherwise.
    """
    first, *others = answering
    shown = {one.query.event_time(streams) for one in answering}
    of_time = dict(set.intersection(*(_places_of_time(one, streams) for one in answering))).keys()
    place, unit = shown.pop() if len(shown) == 1 else (None, None)
    time = time_of(one.query.time if place is None else one.columns.field(place).type for one in answering)
    types = _types(first, place, time)
    for other in others:
        if _types(other, place, time) != types:
            operation = (operation_of(name) or name).upper()
            raise LanguageError(
                f"the SELECTs of {operation} have columns of different types: {_told(first)} and {_told(other)}",
                place=other.place,
                remedy="cast the columns to the same types",
            )
    given = first.columns.names
    names = [_free(TIME_SHOWN, given) if name == TIME_COLUMN else name for name in given]
    near = {} if others else {n: how for n, how in near_times(first.query, streams).items() if n != place}
    fields = marked([pa.field(name, kind) for name, kind in zip(names, types, strict=True)], of_time, near)
    if place is None:
        place = len(fields)
        fields.append(pa.field(_free(TIME_SHOWN, names), time, metadata=NOT_STARRED))
    timed = [one.query.timed for one in answering if one.query.timed is not None and one.query.timed[0] == place]
    lateness = max((late for _, late in timed), default=0)
    queries = tuple(one.name for one in answering)
    return StreamSchema(name, pa.schema(fields), fields[place].name, lateness, unit=unit, answers_of=queries)


def _free(name: str, names: Iterable[str]) -> str:
    """Return a name that no other is, except for case: with `_` behind it where it is taken."""
    taken = {other.lower() for other in names}
    while name.lower() in taken:
        name += "_"
    return name


def _types(one: Answering, place: int | None, time: pa.DataType) -> list[pa.DataType]:
    types: list[pa.DataType] = list(one.columns.types)
    if place is not None and family(types[place]) == "timestamp" and types[place].tz is None:
        types[place] = pa.timestamp(types[place].unit, time.tz)
    return types


def _places_of_time(one: Answering, streams: Mapping[str, StreamSchema]) -> set[tuple[int, tuple[str, ...]]]:
    told = ((n, time_told(one.query, output.expression, streams)) for n, output in enumerate(one.query.outputs))
    return {(place, how) for place, how in told if how}


def _told(one: Answering) -> str:
    return ", ".join(name_of(field.type) for field in one.columns if field.name != NUMBER)
