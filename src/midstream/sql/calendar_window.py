"""Units of a calendar that rows are grouped by: `DATE_TRUNC('day', ts AT TIME ZONE 'Europe/Berlin')`, and no EVERY.

The days of a zone have 23, 24 or 25 hours, its months 28 to 31 days. A group is answered once the watermark has passed
the end of its unit, and its time is the last microsecond of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from midstream.expr.expression import TIME_COLUMN, Call, Column, Expression, Literal
from midstream.expr.linear import widens
from midstream.logical.query import Source
from midstream.model.errors import LanguageError
from midstream.model.schema import StreamSchema
from midstream.model.window import Window
from midstream.sql.bind import Binder
from midstream.sql.dialect import CqlText
from midstream.sql.place import error_at


@dataclass(frozen=True)
class CalendarWindow:
    """Units of the local time in a zone, such as days."""

    unit: str
    zone: str


def calendar_window(
    found: CqlText, tree: exp.Select, binder: Binder, sources: tuple[Source, ...], streams: Mapping[str, StreamSchema]
) -> tuple[tuple[Source, ...], CalendarWindow | None]:
    """Return the source with a window that keeps no rows, and the unit of a calendar that a query over one stream
    groups by, if it does; else the sources as they are, and None.
    """
    clause = tree.args.get("group")
    if clause is None or found.every is not None or len(sources) > 1 or sources[0].window is not None:
        return sources, None
    time = streams[sources[0].stream].timestamp
    window = None
    for node in calendar_units(tree):
        try:
            bound = binder.bind(node)
        except LanguageError:
            continue  # Who reads the groups says what is wrong.
        if (zone := _zone_of_local(bound)) is not None:
            unit = (
                bound.arguments[0].value if isinstance(bound, Call) and isinstance(bound.arguments[0], Literal) else ""
            )
            raise error_at(
                found.text,
                node,
                f"each {unit} would follow UTC, because AT TIME ZONE converts a TIMESTAMP without a zone to UTC",
                f"write DATE_TRUNC('{unit}', {time} AT TIME ZONE 'UTC' AT TIME ZONE '{zone}') if {time} is in UTC; "
                f"or declare {time} as TIMESTAMP WITH TIME ZONE",
            )
        window = window or _window(bound, time)
    if window is None:
        return sources, None
    # A row that has come is the operator's, which keeps it until its group is answered.
    return (replace(sources[0], window=Window("range", 0)),), window


def calendar_units(tree: exp.Select) -> list[exp.Expr]:
    """Return what GROUP BY has of DATE_TRUNC, where it names an item of the select list that item.

    >>> from sqlglot import parse_one
    >>> [one.sql() for one in calendar_units(parse_one("SELECT DATE_TRUNC('DAY', ts) AS d FROM A GROUP BY d, k"))]
    ["DATE_TRUNC('DAY', ts)"]
    """
    clause = tree.args.get("group")
    meant = [] if clause is None else [_meant(tree, node) for node in clause.expressions]
    return [node for node in meant if isinstance(node, exp.TimestampTrunc | exp.DateTrunc)]


def _meant(tree: exp.Select, node: exp.Expr) -> exp.Expr:
    """Return what an item of GROUP BY is: also the number or the name of an item of the select list."""
    items: list[exp.Expr] = tree.expressions
    if (
        isinstance(node, exp.Literal)
        and not node.is_string
        and node.name.isdigit()
        and int(node.name) in range(1, len(items) + 1)
    ):
        return items[int(node.name) - 1].unalias()
    if isinstance(node, exp.Column) and not node.table:
        return next((one.unalias() for one in items if one.alias == node.name), node)
    return node


def _window(bound: Expression, time: str) -> CalendarWindow | None:
    if not isinstance(bound, Call) or bound.function != "date_trunc":
        return None
    unit, inner = bound.arguments
    zone = "UTC"
    if isinstance(inner, Call) and inner.function == "at_time_zone" and inner.type.tz is None:
        named, inner = inner.arguments
        assert isinstance(named, Literal)
        zone = named.value
        if isinstance(inner, Call) and inner.function == "at_time_zone" and _is_utc(inner.arguments[0]):
            inner = inner.arguments[1]  # A TIMESTAMP, which is in UTC.
    while isinstance(inner, Call) and (inner.function == "moment" or (inner.function == "cast" and widens(inner))):
        (inner,) = inner.arguments
    is_time = isinstance(inner, Column) and inner.name in (time, TIME_COLUMN)
    return CalendarWindow(str(unit.value), zone) if is_time and isinstance(unit, Literal) else None


def _zone_of_local(bound: Expression) -> str | None:
    """Return the zone in which DATE_TRUNC takes a TIMESTAMP for local time, before it cuts that in UTC; else None."""
    inner = bound.arguments[1] if isinstance(bound, Call) and bound.function == "date_trunc" else None
    if not isinstance(inner, Call) or inner.function != "at_time_zone" or inner.type.tz is None:
        return None
    zone = inner.arguments[0]
    return str(zone.value) if isinstance(zone, Literal) else None


def _is_utc(zone: Expression) -> bool:
    return isinstance(zone, Literal) and zone.value == "UTC"
