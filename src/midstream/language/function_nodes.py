"""Which function a node of sqlglot's tree is, and where its arguments stand; and what Spark calls by other names."""

from __future__ import annotations

import math
from collections.abc import Callable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from midstream.language.coerce import cast, literal
from midstream.language.expression import Expression
from midstream.language.functions import call
from midstream.language.place import offset_of
from midstream.language.types import TIMESTAMP, family

Bind = Callable[[exp.Expr], Expression]

NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.RegexpLike: ("regexp_like", ("this", "expression")),
    exp.RegexpReplace: ("regexp_replace", ("this", "expression", "replacement", "modifiers")),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.ConcatWs: ("concat_ws", ("expressions",)),
    exp.Reverse: ("reverse", ("this",)),
    exp.Repeat: ("repeat", ("this", "times")),
    exp.Translate: ("translate", ("this", "from_", "to")),
    exp.StrPosition: ("position", ("this", "substr")),
    exp.StartsWith: ("starts_with", ("this", "expression")),
    exp.EndsWith: ("ends_with", ("this", "expression")),
    exp.Contains: ("contains", ("this", "expression")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.Ascii: ("ascii", ("this",)),
    exp.Chr: ("chr", ("expressions",)),
    exp.MD5: ("md5", ("this",)),
    exp.Sign: ("sign", ("this",)),
    exp.Sin: ("sin", ("this",)),
    exp.Cos: ("cos", ("this",)),
    exp.Tan: ("tan", ("this",)),
    exp.Asin: ("asin", ("this",)),
    exp.Acos: ("acos", ("this",)),
    exp.Atan: ("atan", ("this",)),
    exp.Atan2: ("atan2", ("this", "expression")),
    exp.Degrees: ("degrees", ("this",)),
    exp.Radians: ("radians", ("this",)),
    exp.Cbrt: ("cbrt", ("this",)),
    exp.IsNan: ("isnan", ("this",)),
    exp.IsInf: ("isinf", ("this",)),
    exp.BitwiseAnd: ("bit_and", ("this", "expression")),
    exp.BitwiseOr: ("bit_or", ("this", "expression")),
    exp.BitwiseXor: ("bit_xor", ("this", "expression")),
    exp.BitwiseRightShift: ("shift_right", ("this", "expression")),
    exp.BitwiseNot: ("bit_not", ("this",)),
    exp.TimeToStr: ("strftime", ("this", "format")),
    exp.TimeToUnix: ("epoch", ("this",)),
    exp.DateFromParts: ("make_date", ("year", "month", "day")),
    exp.LastDay: ("last_day", ("this",)),
    exp.Dayname: ("dayname", ("this",)),
    exp.Monthname: ("monthname", ("this",)),
    exp.WeekOfYear: ("week", ("this",)),
}
"""Nodes whose arguments stand one after the other."""


def _pad(node: exp.Expr, bind: Bind) -> Expression:
    fill = node.args.get("fill_pattern")
    name = "lpad" if node.args.get("is_left") else "rpad"
    return call(name, bind(node.this), bind(node.expression), bind(fill) if fill else literal(" "))


def _extracted(node: exp.Expr, bind: Bind) -> Expression:
    group = node.args.get("group")
    return call("regexp_extract", bind(node.this), bind(node.expression), bind(group) if group else literal(0))


def _unit(node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    name = unit.name.lower() if unit is not None else "day"
    return literal(name.removesuffix("s") if name != "s" else name)


def _truncated(node: exp.Expr, bind: Bind) -> Expression:
    return call("date_trunc", _unit(node), bind(node.this))


def _counted(node: exp.Expr, bind: Bind) -> Expression:
    """DATE_DIFF has its later moment first in the tree."""
    return call("date_diff", _unit(node), bind(node.expression), bind(node.this))


def _from_unix(node: exp.Expr, bind: Bind) -> Expression:
    """TO_TIMESTAMP of seconds or a text, and EPOCH_MS, which goes both ways."""
    value, scale = bind(node.this), node.args.get("scale")
    if scale is not None and scale.name == "3":
        return call("epoch_ms" if family(value.type) in ("timestamp", "date") else "make_timestamp_ms", value)
    return cast(value, TIMESTAMP) if family(value.type) == "text" else call("to_timestamp", value)


def _truncated_number(node: exp.Expr, bind: Bind) -> Expression:
    places = node.args.get("decimals")
    if places is None:
        return call("trunc", bind(node.this))
    power = literal(10.0 ** int(places.name))
    return call("ieee_div", call("trunc", call("mul", bind(node.this), power)), power)


def _if_there(node: exp.Expr, bind: Bind) -> Expression:
    other = node.args.get("false")
    there = call("not", call("is_null", bind(node.this)))
    return call("case", there, bind(node.args["true"]), bind(other) if other else literal(None))


def _date(node: exp.Expr, bind: Bind) -> Expression:
    return bind(exp.cast(node.this.copy(), "date"))


def _sha(node: exp.Expr, bind: Bind) -> Expression:
    return call("sha256", bind(node.this))


def _later(node: exp.Expr, bind: Bind) -> Expression:
    return call("add", bind(node.this), bind(node.expression))


HANDLERS: dict[type[exp.Expr], Callable[[exp.Expr, Bind], Expression]] = {
    exp.Pad: _pad,
    exp.RegexpExtract: _extracted,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateDiff: _counted,
    exp.UnixToTime: _from_unix,
    exp.Trunc: _truncated_number,
    exp.Nvl2: _if_there,
    exp.Date: _date,
    exp.TsOrDsToDate: _date,
    exp.SHA2: _sha,
    exp.DateAdd: _later,
    exp.Pi: lambda node, bind: literal(math.pi),
}
"""Nodes whose arguments must be put in order first."""


def other_name(node: exp.Expr) -> exp.Expr | None:
    """What a function is that DuckDB does not know by its name, as Spark has it; None where Spark has none either.

    >>> other_name(sqlglot.parse_one("DATE_FORMAT(ts, 'yyyy-MM')", read="duckdb")).sql("duckdb")
    "STRFTIME(CAST(ts AS TIMESTAMP), '%Y-%m')"
    """
    name, arguments = node.name.lower(), [a.copy() for a in node.expressions]
    if name in ("isnull", "isnotnull") and len(arguments) == 1:
        found: exp.Expr = exp.Is(this=arguments[0], expression=exp.Null())
        return found if name == "isnull" else exp.Not(this=found)
    if name == "date_part" and len(arguments) == 2 and arguments[0].is_string:
        return exp.Extract(this=exp.var(arguments[0].name), expression=arguments[1])
    if name == "date_sub" and len(arguments) == 2 and isinstance(arguments[1], exp.Interval):
        return exp.Sub(this=arguments[0], expression=arguments[1])
    if name == "isfinite" and len(arguments) == 1:
        whole = exp.Or(this=exp.IsNan(this=arguments[0]), expression=exp.IsInf(this=arguments[0].copy()))
        return exp.Not(this=exp.Paren(this=whole))
    try:
        text = sqlglot.transpile(node.sql("spark"), read="spark", write="duckdb")[0]
        found = sqlglot.parse_one(text, read="duckdb")
    except SqlglotError:
        return None
    if any(isinstance(part, exp.Anonymous) for part in found.walk()):
        return None
    start = offset_of(node)
    for part in found.walk():
        part.meta.clear()  # They stand where the name of the whole stands.
        if start is not None:
            part.meta["start"] = start
    return found
