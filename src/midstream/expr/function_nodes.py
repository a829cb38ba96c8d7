"""Which function a node of sqlglot's tree is, and where its arguments stand."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from sqlglot import exp

from midstream.expr.coerce import cast, literal
from midstream.expr.expression import Expression, Literal
from midstream.expr.kernels.json import path_of
from midstream.expr.rules import MOST_PLACES, PLACES
from midstream.expr.types import TIMESTAMP, family
from midstream.model.errors import LanguageError


class Builder(Protocol):
    """Makes expressions: of a node of the tree, and of a function applied to arguments."""

    def bind(self, node: exp.Expr) -> Expression:
        """Bind a node to a typed expression; raises LanguageError."""

    def call(self, name: str, *arguments: Expression) -> Expression:
        """Apply a function of the catalogue to arguments; raises LanguageError."""


_ONE, _TWO = ("this",), ("this", "expression")

NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.EQ: ("eq", _TWO),
    exp.NEQ: ("ne", _TWO),
    exp.LT: ("lt", _TWO),
    exp.LTE: ("le", _TWO),
    exp.GT: ("gt", _TWO),
    exp.GTE: ("ge", _TWO),
    exp.NullSafeNEQ: ("distinct", _TWO),
    exp.Between: ("between", ("this", "low", "high")),
    exp.In: ("in", ("this", "expressions")),
    exp.Not: ("not", _ONE),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Nullif: ("nullif", _TWO),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Least: ("least", ("this", "expressions")),
    exp.Add: ("add", _TWO),
    exp.Sub: ("sub", _TWO),
    exp.Mul: ("mul", _TWO),
    exp.Div: ("div", _TWO),
    exp.Mod: ("mod", _TWO),
    exp.IntDiv: ("intdiv", _TWO),
    exp.Pow: ("power", _TWO),
    exp.Neg: ("neg", _ONE),
    exp.Abs: ("abs", _ONE),
    exp.Sqrt: ("sqrt", _ONE),
    exp.Exp: ("exp", _ONE),
    exp.Ln: ("ln", _ONE),
    exp.Floor: ("floor", _ONE),
    exp.Ceil: ("ceil", _ONE),
    exp.Round: ("round", ("this", "decimals")),
    exp.DPipe: ("join", _TWO),
    exp.Concat: ("concat", ("expressions",)),
    exp.Lower: ("lower", _ONE),
    exp.Upper: ("upper", _ONE),
    exp.Length: ("length", _ONE),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Year: ("year", _ONE),
    exp.Quarter: ("quarter", _ONE),
    exp.Month: ("month", _ONE),
    exp.Week: ("week", _ONE),
    exp.Day: ("day", _ONE),
    exp.DayOfMonth: ("day", _ONE),
    exp.DayOfWeek: ("dayofweek", _ONE),
    exp.DayOfYear: ("dayofyear", _ONE),
    exp.Hour: ("hour", _ONE),
    exp.Minute: ("minute", _ONE),
    exp.Second: ("second", _ONE),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.RegexpLike: ("regexp_like", _TWO),
    exp.RegexpReplace: ("regexp_replace", ("this", "expression", "replacement", "modifiers")),
    exp.Left: ("left", _TWO),
    exp.Right: ("right", _TWO),
    exp.ConcatWs: ("concat_ws", ("expressions",)),
    exp.Reverse: ("reverse", _ONE),
    exp.Repeat: ("repeat", ("this", "times")),
    exp.Translate: ("translate", ("this", "from_", "to")),
    exp.StrPosition: ("position", ("this", "substr")),
    exp.StartsWith: ("starts_with", _TWO),
    exp.EndsWith: ("ends_with", _TWO),
    exp.Contains: ("contains", _TWO),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.Ascii: ("ascii", _ONE),
    exp.Chr: ("chr", ("expressions",)),
    exp.MD5: ("md5", _ONE),
    exp.Sign: ("sign", _ONE),
    exp.Sin: ("sin", _ONE),
    exp.Cos: ("cos", _ONE),
    exp.Tan: ("tan", _ONE),
    exp.Asin: ("asin", _ONE),
    exp.Acos: ("acos", _ONE),
    exp.Atan: ("atan", _ONE),
    exp.Atan2: ("atan2", _TWO),
    exp.Degrees: ("degrees", _ONE),
    exp.Radians: ("radians", _ONE),
    exp.Cbrt: ("cbrt", _ONE),
    exp.IsNan: ("isnan", _ONE),
    exp.IsInf: ("isinf", _ONE),
    exp.BitwiseAnd: ("bit_and", _TWO),
    exp.BitwiseOr: ("bit_or", _TWO),
    exp.BitwiseXor: ("bit_xor", _TWO),
    exp.BitwiseRightShift: ("shift_right", _TWO),
    exp.BitwiseNot: ("bit_not", _ONE),
    exp.TimeToStr: ("strftime", ("this", "format")),
    exp.TimeToUnix: ("epoch", _ONE),
    exp.DateFromParts: ("make_date", ("year", "month", "day")),
    exp.LastDay: ("last_day", _ONE),
    exp.Dayname: ("dayname", _ONE),
    exp.Monthname: ("monthname", _ONE),
    exp.WeekOfYear: ("week", _ONE),
    exp.Split: ("split", _TWO),
    exp.ArraySize: ("array_length", _ONE),
    exp.ArrayContains: ("list_contains", _TWO),
}
"""Nodes whose arguments stand one after the other."""


def _pad(node: exp.Expr, build: Builder) -> Expression:
    fill = node.args.get("fill_pattern")
    name = "lpad" if node.args.get("is_left") else "rpad"
    return build.call(
        name, build.bind(node.this), build.bind(node.expression), build.bind(fill) if fill else literal(" ")
    )


def _extracted(node: exp.Expr, build: Builder) -> Expression:
    group = node.args.get("group")
    return build.call(
        "regexp_extract", build.bind(node.this), build.bind(node.expression), build.bind(group) if group else literal(0)
    )


def _unit(node: exp.Expr) -> Expression:
    unit = node.args.get("unit")
    name = unit.name.lower() if unit is not None else "day"
    return literal(name.removesuffix("s") if name != "s" else name)


def _truncated(node: exp.Expr, build: Builder) -> Expression:
    return build.call("date_trunc", _unit(node), build.bind(node.this))


_MONDAY = datetime(2000, 1, 3)
"""When one of DuckDB's buckets begins."""


def _bucket(node: exp.Expr, build: Builder) -> Expression:
    given = node.args.get("unit") or node.args.get("zone")
    origin = _moment(_MONDAY) if given is None else build.bind(given)
    if isinstance(origin, Literal) and isinstance(origin.value, timedelta):
        origin = _moment(_MONDAY + origin.value)
    return build.call("time_bucket", build.bind(node.this), build.bind(node.expression), origin)


def _moment(moment: datetime) -> Literal:
    return Literal(TIMESTAMP, moment)


def _counted(node: exp.Expr, build: Builder) -> Expression:
    # DATE_DIFF has its later moment first in the tree.
    return build.call("date_diff", _unit(node), build.bind(node.expression), build.bind(node.this))


def _from_unix(node: exp.Expr, build: Builder) -> Expression:
    # The node is TO_TIMESTAMP of seconds or a text, or EPOCH_MS, which goes both ways.
    value, scale = build.bind(node.this), node.args.get("scale")
    if scale is not None and scale.name == "3":
        return build.call("epoch_ms" if family(value.type) in ("timestamp", "date") else "make_timestamp_ms", value)
    return cast(value, TIMESTAMP) if family(value.type) == "text" else build.call("to_timestamp", value)


def _truncated_number(node: exp.Expr, build: Builder) -> Expression:
    places = node.args.get("decimals")
    if places is None:
        return build.call("trunc", build.bind(node.this))
    known = build.bind(places)
    if not isinstance(known, Literal) or not isinstance(known.value, int) or abs(known.value) > MOST_PLACES:
        raise LanguageError("TRUNC needs a constant number of decimal places from -300 to 300", remedy=PLACES)
    power = literal(10.0 ** abs(known.value))
    first, then = ("mul", "div") if known.value >= 0 else ("div", "mul")
    return build.call(then, build.call("trunc", build.call(first, build.bind(node.this), power)), power)


def _in_json(name: str) -> Callable[[exp.Expr, Builder], Expression]:
    def handler(node: exp.Expr, build: Builder) -> Expression:
        path = node.expression
        known = (exp.JSONPathKey, exp.JSONPathSubscript)
        parts = path.expressions[1:] if isinstance(path, exp.JSONPath) else []
        steps = [part.this for part in parts if isinstance(part, known) and isinstance(part.this, str | int)]
        if not isinstance(path, exp.JSONPath) or len(steps) < len(parts):
            raise LanguageError("a JSON path must be a constant", remedy="write keys and positions, as in '$.a[0].b'")
        return build.call(name, build.bind(node.this), literal(path_of(steps)))

    return handler


def _whole_units(node: exp.Expr, build: Builder) -> Expression:
    # TIMESTAMPDIFF has its later moment first in the tree.
    return build.call("timestampdiff", _unit(node), build.bind(node.expression), build.bind(node.this))


def _if_there(node: exp.Expr, build: Builder) -> Expression:
    other = node.args.get("false")
    there = build.call("not", build.call("is_null", build.bind(node.this)))
    return build.call("case", there, build.bind(node.args["true"]), build.bind(other) if other else literal(None))


def _date(node: exp.Expr, build: Builder) -> Expression:
    if node.this is None:
        raise LanguageError("DATE needs an argument", remedy="write DATE(x)")
    return build.bind(exp.cast(node.this.copy(), "date"))


def _sha(node: exp.Expr, build: Builder) -> Expression:
    return build.call("sha256", build.bind(node.this))


def _later(node: exp.Expr, build: Builder) -> Expression:
    return build.call("add", build.bind(node.this), build.bind(node.expression))


HANDLERS: dict[type[exp.Expr], Callable[[exp.Expr, Builder], Expression]] = {
    exp.Pad: _pad,
    exp.RegexpExtract: _extracted,
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateBin: _bucket,
    exp.DateDiff: _counted,
    exp.UnixToTime: _from_unix,
    exp.Trunc: _truncated_number,
    exp.Nvl2: _if_there,
    exp.JSONExtractScalar: _in_json("json_extract_string"),
    exp.JSONExtract: _in_json("json_extract"),
    exp.TimestampDiff: _whole_units,
    exp.Initcap: lambda node, build: build.call("initcap", build.bind(node.this)),
    exp.Date: _date,
    exp.TsOrDsToDate: _date,
    exp.SHA2: _sha,
    exp.DateAdd: _later,
    exp.AtTimeZone: lambda node, build: build.call(
        "at_time_zone", build.bind(node.args["zone"]), build.bind(node.this)
    ),
    exp.Pi: lambda node, build: literal(math.pi),
}
"""Nodes whose arguments must be put in order first."""
