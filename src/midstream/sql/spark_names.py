"""Functions by the names and arguments that Spark and others have for them, as DuckDB has them."""

from __future__ import annotations

from collections.abc import Callable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from midstream.model.errors import LanguageError
from midstream.sql.place import offset_of
from midstream.sql.sql_tree import sql_of

_SHAPES = {
    "timestampdiff": "TIMESTAMPDIFF(HOUR, earlier, later)",
    "datediff": "DATEDIFF(later, earlier), or DATEDIFF('hour', earlier, later)",
    "date_diff": "DATE_DIFF('hour', earlier, later), or DATE_DIFF(later, earlier)",
}


def other_name(node: exp.Expr) -> exp.Expr | None:
    """What a function is that DuckDB does not know by its name, as Spark has it; None where Spark has none either.

    Raises LanguageError for a difference of times with too many arguments or too few.

    >>> other_name(sqlglot.parse_one("DATE_FORMAT(ts, 'yyyy-MM')", read="duckdb")).sql("duckdb")
    "STRFTIME(CAST(ts AS TIMESTAMP), '%Y-%m')"
    """
    name, arguments = node.name.lower(), [argument.copy() for argument in node.expressions]
    rewrite = _REWRITES.get((name, len(arguments)))
    found = None if rewrite is None else rewrite(*arguments)
    if found is not None:
        return found
    if name in _SHAPES:
        raise LanguageError(f"{name.upper()} cannot take {len(arguments)} arguments", remedy=f"write {_SHAPES[name]}")
    return _transpiled(node)


def _transpiled(node: exp.Expr) -> exp.Expr | None:
    """Return a function of Spark's as sqlglot translates it; None where it does not."""
    try:
        text = sqlglot.transpile(node.sql("spark"), read="spark", write="duckdb")[0]
        found = sqlglot.parse_one(text, read="duckdb")
    except (SqlglotError, ValueError):  # A JSON path that sqlglot has read and cannot write is a ValueError.
        return None
    if any(isinstance(part, exp.Anonymous) for part in found.walk()):
        return None
    start = offset_of(node)
    for part in found.walk():
        part.meta.clear()  # They stand where the name of the whole stands.
        if start is not None:
            part.meta["start"] = start
    return found


def _part(name: exp.Expr, time: exp.Expr) -> exp.Expr | None:
    return exp.Extract(this=exp.Var(this=name.name), expression=time) if name.is_string else None


def _earlier(time: exp.Expr, length: exp.Expr) -> exp.Expr | None:
    return exp.Sub(this=time, expression=length) if isinstance(length, exp.Interval) else None


def _unit(node: exp.Expr) -> exp.Var:
    """Return the word that a node is, such as HOUR; what is none is refused as a unit that nobody knows."""
    return exp.Var(this=(node.name if node.is_string else node.name or sql_of(node)).upper())


def _elapsed(unit: exp.Expr, earlier: exp.Expr, later: exp.Expr) -> exp.Expr:
    return exp.TimestampDiff(this=later, expression=earlier, unit=_unit(unit))


def _boundaries(unit: exp.Expr, earlier: exp.Expr, later: exp.Expr) -> exp.Expr:
    return exp.DateDiff(this=later, expression=earlier, unit=_unit(unit))


def _days(later: exp.Expr, earlier: exp.Expr) -> exp.Expr:
    return exp.DateDiff(this=exp.cast(later, "date"), expression=exp.cast(earlier, "date"), unit=exp.var("DAY"))


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value, expression=exp.Null())


def _to_utc(time: exp.Expr, zone: exp.Expr) -> exp.Expr:
    moment = exp.AtTimeZone(this=exp.cast(time, "timestamp"), zone=zone)
    return exp.AtTimeZone(this=moment, zone=exp.Literal.string("UTC"))


def _is_finite(number: exp.Expr) -> exp.Expr:
    either = exp.Or(this=exp.IsNan(this=number), expression=exp.IsInf(this=number.copy()))
    return exp.Not(this=exp.Paren(this=either))


_REWRITES: dict[tuple[str, int], Callable[..., exp.Expr | None]] = {
    ("isnull", 1): _is_null,
    ("isnotnull", 1): lambda value: exp.Not(this=_is_null(value)),
    ("date_part", 2): _part,
    ("date_sub", 2): _earlier,
    ("unix_timestamp", 1): lambda time: exp.cast(exp.Floor(this=exp.TimeToUnix(this=time)), "bigint"),
    ("split_index", 3): lambda text, mark, at: exp.SplitPart(this=text, delimiter=mark, part_index=at + 1),
    ("timestampdiff", 3): _elapsed,
    ("date_sub", 3): _elapsed,
    ("datesub", 3): _elapsed,
    ("datediff", 3): _boundaries,
    ("date_diff", 3): _boundaries,
    ("datediff", 2): _days,
    ("date_diff", 2): _days,
    ("cardinality", 1): lambda array: exp.ArraySize(this=array),
    ("isfinite", 1): _is_finite,
    ("timezone", 2): lambda zone, time: exp.AtTimeZone(this=time, zone=zone),
    ("from_utc_timestamp", 2): lambda time, zone: exp.AtTimeZone(this=exp.cast(time, "timestamptz"), zone=zone),
    ("to_utc_timestamp", 2): _to_utc,
}
"""By name and number of arguments what sqlglot does not translate, or not as it is meant; None where it may."""
