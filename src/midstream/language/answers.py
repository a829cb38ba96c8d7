"""The answers of a query as a stream that other queries read, as `FROM winning_bids` names it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from midstream.language.cql_tokens import split_cql
from midstream.language.expression import TIME_COLUMN, Column
from midstream.language.query import Query
from midstream.language.select_list import select_of
from midstream.language.types import TIMESTAMP
from midstream.model.schema import StreamSchema

TIME_SHOWN = "result_time"
"""What the time of an answer is called in the stream, where its query gives it no name."""


def streams_named(text: str) -> tuple[str, ...]:
    """The names that stand in FROM and EXCEPT ON of a query, those of WITH left out; raises LanguageError.

    >>> streams_named("WITH x AS (SELECT k FROM A) SELECT * FROM x [RANGE 5 SECONDS], q0 [RANGE 5 SECONDS]")
    ('q0', 'A')
    """
    found = split_cql(text)
    tree = select_of(found)
    common = {table.alias.lower() for table in tree.find_all(exp.CTE)}
    names = [table.name for table in tree.find_all(exp.Table) if table.name.lower() not in common]
    return tuple(dict.fromkeys([*names, *(one.stream for one in found.subtrahends)]))


def answers_as_stream(name: str, query: Query, columns: pa.Schema, streams: Mapping[str, StreamSchema]) -> StreamSchema:
    """The stream of a query's answers, which have these `columns`.

    Its timestamp is the time of each answer, a TIMESTAMP without a zone: the column that the query selects as `_ts`,
    else one more, `result_time`. Where the query selects the timestamp of the only stream it reads, that is it, as its
    stream has it.
    """
    of_stream = _timestamp_selected(query, streams)
    shown = next((o.name for o in query.outputs if _is_time(o.expression)), "" if of_stream is None else of_stream[0])
    fields = [pa.field(TIME_SHOWN, TIMESTAMP) if f.name == TIME_COLUMN else f for f in columns]
    if not shown:
        fields.append(pa.field(TIME_SHOWN, TIMESTAMP))
    timestamp = TIME_SHOWN if shown in ("", TIME_COLUMN) else shown
    unit = of_stream[1] if of_stream is not None and shown == of_stream[0] else None
    if of_stream is None or shown != of_stream[0]:
        fields = [f.with_type(TIMESTAMP) if f.name == timestamp else f for f in fields]
    return StreamSchema(name, pa.schema(fields), timestamp, unit=unit, answers_of=(name,))


def _is_time(expression: object) -> bool:
    return isinstance(expression, Column) and (expression.alias, expression.name) == ("", TIME_COLUMN)


def _timestamp_selected(query: Query, streams: Mapping[str, StreamSchema]) -> tuple[str, str | None] | None:
    """The column that is the timestamp of the only stream a query reads, and its unit."""
    if not query.plain or len(query.sources) != 1:
        return None
    (source,) = query.sources
    stream = streams[source.stream]
    for output in query.outputs:
        expression = output.expression
        if isinstance(expression, Column) and (expression.alias, expression.name) == (source.alias, stream.timestamp):
            return output.name, stream.unit
    return None
