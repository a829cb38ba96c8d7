"""Rows of one event time as a group: GROUP BY or PARTITION BY a column that says which time it is, and no EVERY.

Of the answers of a query with a window to group by, `window_end` is such a column: so the answers of a window are
ranked, or summed up again, as soon as they are there. Of any stream the timestamp is one.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from midstream.expr.expression import TIME_COLUMN, Call, Column, Expression, Literal
from midstream.logical.query import GROUPED, Aggregate, Query, Source
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.model.window import Window
from midstream.sql.bind import Binder
from midstream.sql.dialect import CqlText
from midstream.sql.group_window import GroupWindow

_SAYS_TIME = "says time"
"""What a field of the answers of a query says of itself where its values are equal only at equal times."""

_MOMENT = Window("range", 0)


def columns_of_time(stream: StreamSchema) -> frozenset[str]:
    """The columns of a stream that are equal only in rows of equal event time.

    >>> columns_of_time(StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts"))
    frozenset({'ts'})
    """
    told = ((f.name, (f.metadata or {}).get(b"midstream", b"").decode()) for f in stream.columns)
    return frozenset((stream.timestamp, *(name for name, said in told if said.startswith(_SAYS_TIME))))


def moments(
    found: CqlText,
    tree: exp.Select,
    binder: Binder,
    sources: tuple[Source, ...],
    streams: Mapping[str, StreamSchema],
) -> tuple[tuple[Source, ...], GroupWindow | None]:
    """The source with the window that keeps the rows of one moment, and this as a window to group by, where a query
    over one stream groups by a column that says the time; else the sources as they are, and None.
    """
    clause = tree.args.get("group")
    if clause is None or found.every is not None or len(sources) > 1 or sources[0].window is not None:
        return sources, None
    known = columns_of_time(streams[sources[0].stream]) | {TIME_COLUMN}
    if not any(_column(binder, node) in known for node in clause.expressions):
        return sources, None
    return (replace(sources[0], window=_MOMENT),), GroupWindow(1, 1, tree)


def _column(binder: Binder, node: exp.Expr) -> str:
    """Return the name of the stream's column that an expression is; empty where it is another."""
    if not isinstance(node, exp.Column):
        return ""
    try:
        bound = binder.bind(node)
    except LanguageError:
        return ""  # Perhaps the name of an item of the select list.
    if isinstance(bound, Call) and bound.function == "moment":
        (bound,) = bound.arguments
    return bound.name if isinstance(bound, Column) else ""


def time_told(query: Query, expression: Expression, streams: Mapping[str, StreamSchema]) -> tuple[str, ...]:
    """How an output of a query says the time of an answer, so that it is equal only in answers of equal time: of two
    queries too, where both say it in one way. Empty where it does not.
    """
    time = expression
    if isinstance(expression, Call) and expression.function in ("add", "sub"):
        left, right = expression.arguments
        time = left if isinstance(right, Literal) else expression
    if isinstance(time, Column) and time.alias == "" and time.name == TIME_COLUMN:
        return (expression.text(),)
    if not isinstance(expression, Column) or len(query.sources) > 1:
        return ()
    (source,), aggregate, shown = query.sources, query.on_top, expression
    if not isinstance(aggregate, Aggregate) and not query.by_row:
        return ()
    if isinstance(aggregate, Aggregate):
        if aggregate.every != 1 or aggregate.session is not None or source.window != _MOMENT:
            return ()
        if shown.alias == GROUPED:
            group = next((e for n, e in enumerate(aggregate.groups) if shown.name == f"g{n}"), None)
            shown = group if isinstance(group, Column) else shown
    stream = streams[source.stream]
    if shown.alias != source.alias or shown.name not in columns_of_time(stream):
        return ()
    return ("timestamp", stream.unit or "") if shown.name == stream.timestamp else (source.stream, shown.name)


def marked(fields: Sequence[pa.Field], places: Container[int], more: Mapping[int, str]) -> list[pa.Field]:
    """The fields, those at these places marked as saying the time, and with what `more` says of them by place."""
    found = list[pa.Field]()
    for n, field in enumerate(fields):
        said = [*([_SAYS_TIME] if n in places else []), *([more[n]] if n in more else [])]
        found.append(field.with_metadata({"midstream": " ".join(said)}) if said and not field.metadata else field)
    return found
