"""The calls of aggregate functions: which node of the tree is which, over what, and what type it gives."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from midstream.expr.coerce import cast, name, plain
from midstream.expr.expression import TIME_COLUMN, Column, Expression
from midstream.expr.functions import call as called
from midstream.expr.types import BOOLEAN, DOUBLE, INT64, NUMBERS, TEXT, TIMESTAMP, WIDEST, family
from midstream.logical.query import BY_ANOTHER, FIRSTS, LISTS, AggregateCall
from midstream.model.errors import LanguageError
from midstream.sql.bind import Binder

FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
    exp.Quantile: "quantile_disc",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.CountIf: "count_if",
    exp.ArrayAgg: "array_agg",
    exp.ArrayUniqueAgg: "collect_set",
    exp.GroupConcat: "string_agg",
    exp.ArgMin: "arg_min",
    exp.ArgMax: "arg_max",
    exp.First: "first",
    exp.FirstValue: "first",
    exp.AnyValue: "first",
    exp.Last: "last",
    exp.LastValue: "last",
}

KNOWN = (
    "COUNT, COUNT_IF, SUM, AVG, MIN, MAX, MEDIAN, QUANTILE_CONT, QUANTILE_DISC, STDDEV, STDDEV_POP, VARIANCE, VAR_POP, "
    "BOOL_AND, BOOL_OR, ARRAY_AGG, STRING_AGG, ARG_MIN, ARG_MAX, FIRST, LAST or ANY_VALUE"
)
_QUANTILES = frozenset({"quantile_cont", "quantile_disc"})
_DISTINCT = frozenset({"count", *LISTS})
_SPARKS = {"COLLECT_LIST": "collect_list", "COLLECT_SET": "collect_set"}


def as_known(node: exp.Expr) -> exp.Expr:
    """A call of an aggregate that only Spark has under its name, marked as an aggregate; other nodes as they are."""
    function = _SPARKS.get(node.name.upper()) if isinstance(node, exp.Anonymous) else None
    if function is None or len(node.expressions) != 1:
        return node
    return exp.ArrayAgg(this=node.expressions[0].copy(), function=function)


def aggregate_call(node: exp.Expr, inner: Binder) -> AggregateCall | None:
    """The call that a node is, its parts bound by `inner`; None where it is none. Raises LanguageError."""
    condition: Expression | None = None
    without_null = False
    while isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(node, exp.Filter):
            condition = inner.condition(node.expression.this)
        without_null |= isinstance(node, exp.IgnoreNulls)
        node = node.this
    if isinstance(node, exp.WithinGroup):
        node = _within(node)
    function = node.args.get("function") or FUNCTIONS.get(type(node))
    if function is None:
        if condition is not None:
            raise LanguageError(f"{node.key.upper()} cannot have a FILTER", remedy=f"use FILTER with {KNOWN}")
        return None
    share: float | None = None
    if function in _QUANTILES:
        share, node = _share(node), node.copy()
        node.set("expression", None)
    argument, by, descending = _in_order(function, node, inner)
    without_null |= function in FIRSTS and node.args.get("expression") == exp.true()
    argument, distinct = _distinct(function, argument)
    value = _value(function, node, argument, inner)
    if function == "count_if" and value is not None:
        function, condition, value = "count", _both(condition, cast(value, BOOLEAN)), None
    if without_null:
        if function not in LISTS | FIRSTS or value is None:
            raise LanguageError(
                f"{function.upper()} cannot have IGNORE NULLS",
                remedy="leave IGNORE NULLS out: the function ignores NULLs",
            )
        condition = _both(condition, called("not", called("is_null", value)))
    if by is not None and family(by.type) in ("other", "null"):
        raise LanguageError(f"values of type {name(by.type)} have no order", remedy="order by a number, string or time")
    if distinct and by is not None and value is not None and by.text() != value.text():
        raise LanguageError(
            "a list with DISTINCT can be ordered only by its own values", remedy="order the list by its values"
        )
    distinct |= function == "collect_set"
    separator = _separator(node) if function == "string_agg" else None
    return AggregateCall(function, value, distinct, condition, share, by, descending, separator)


def _in_order(function: str, node: exp.Expr, inner: Binder) -> tuple[exp.Expr | None, Expression | None, bool]:
    """Return the argument of a call without its ORDER BY, the order of the rows, and whether it is descending."""
    argument, by = node.this, None
    if function in BY_ANOTHER:
        by = plain(inner.bind(node.expression))
    if function in FIRSTS:
        by = Column(inner.scope.time or TIMESTAMP, "", TIME_COLUMN)
    if not isinstance(argument, exp.Order) or function not in LISTS | FIRSTS:
        return argument, by, False
    first, *more = argument.expressions
    if more or first.args.get("nulls_first"):
        raise LanguageError(
            f"{function.upper()} can have one value in ORDER BY, and no NULLS FIRST",
            remedy="order by one value, without NULLS FIRST",
        )
    return argument.this, plain(inner.bind(first.this)), bool(first.args.get("desc"))


def _value(function: str, node: exp.Expr, argument: exp.Expr | None, inner: Binder) -> Expression | None:
    if node.expressions:
        raise LanguageError(f"{function.upper()} takes one argument", remedy=f"write {function.upper()}(x)")
    if argument is not None and not isinstance(argument, exp.Star):
        return plain(inner.bind(argument))
    if function != "count":
        raise LanguageError(f"{function.upper()} does not take *", remedy=f"write {function.upper()}(column)")
    return None


def _distinct(function: str, argument: exp.Expr | None) -> tuple[exp.Expr | None, bool]:
    if not isinstance(argument, exp.Distinct):
        return argument, False
    if function not in _DISTINCT or len(argument.expressions) != 1:
        raise LanguageError(
            "this call cannot have DISTINCT", remedy="use DISTINCT with one argument, in COUNT(DISTINCT x) or in a list"
        )
    return argument.expressions[0], True


def _separator(node: exp.Expr) -> str:
    given = node.args.get("separator")
    if given is None:
        return ","
    if not isinstance(given, exp.Literal) or not given.is_string:
        raise LanguageError("the separator of STRING_AGG must be a constant string", remedy="write STRING_AGG(x, ', ')")
    return str(given.name)


def _both(one: Expression | None, other: Expression) -> Expression:
    return other if one is None else called("and", one, other)


def _within(node: exp.Expr) -> exp.Expr:
    """`PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)` as `QUANTILE_CONT(x, 0.5)`, and LISTAGG likewise."""
    if isinstance(node.this, exp.GroupConcat):
        listed: exp.Expr = node.this.copy()
        listed.set("this", exp.Order(this=listed.this, expressions=[one.copy() for one in node.expression.expressions]))
        return listed
    if type(node.this) not in (exp.PercentileCont, exp.PercentileDisc):
        return node
    (ordered,) = node.expression.expressions
    share = node.this.this
    if ordered.args.get("desc"):
        number = _number(share)
        share = share if number is None else exp.Literal.number(1 - number)
    found: exp.Expr = type(node.this)(this=ordered.this.copy(), expression=share.copy())
    return found


def _share(node: exp.Expr) -> float:
    share = node.args.get("expression") or node.args.get("quantile")
    number = _number(share)
    if number is None or not 0 <= number <= 1:
        raise LanguageError(
            "the share of a quantile must be a number from 0 to 1", remedy="write QUANTILE_CONT(x, 0.9)"
        )
    return number


def _number(node: exp.Expr | None) -> float | None:
    try:
        return float(node.name) if isinstance(node, exp.Literal) and not node.is_string else None
    except ValueError:
        return None


def result_type(call: AggregateCall) -> pa.DataType:
    """COUNT and sums of INT are BIGINT, sums of BIGINT DECIMAL(38), AVG and MEDIAN DOUBLE, MIN,
    MAX, ARG_MIN, ARG_MAX, FIRST and LAST of their argument's type, lists lists of it.
    """
    if call.argument is None or call.function == "count":
        if call.distinct and call.argument is not None and family(call.argument.type) == "other":
            raise LanguageError(
                f"values of type {name(call.argument.type)} cannot be compared",
                remedy="use numbers, strings or times",
            )
        return INT64
    type = call.argument.type
    kind = family(type)
    if call.function in LISTS:
        if kind in ("other", "null"):
            raise LanguageError(
                f"a list cannot have values of type {name(type)}", remedy="use numbers, strings or times"
            )
        if call.function == "string_agg" and kind != "text":
            raise LanguageError(
                f"STRING_AGG cannot take a {name(type)}", remedy="cast the value: STRING_AGG(CAST(x AS VARCHAR), ',')"
            )
        return TEXT if call.function == "string_agg" else pa.list_(type)
    if call.function in BY_ANOTHER | FIRSTS | {"min", "max"}:
        if kind in ("other", "null"):
            raise LanguageError(
                f"{call.function.upper()} cannot take a {name(type)}", remedy="use numbers, strings or times"
            )
        return type
    if call.function == "quantile_disc" and kind not in ("other", "null"):
        return type
    if call.function in ("bool_and", "bool_or"):
        if kind != "boolean":
            raise LanguageError(f"{call.function.upper()} cannot take a {name(type)}", remedy="use a condition")
        return BOOLEAN
    if kind not in NUMBERS:
        raise LanguageError(f"{call.function.upper()} cannot take a {name(type)}", remedy="use numbers")
    if call.function == "sum":
        if kind == "integer" and type.bit_width == 64:
            return WIDEST
        return {"integer": INT64, "float": DOUBLE}.get(kind) or pa.decimal128(38, type.scale)
    return DOUBLE
