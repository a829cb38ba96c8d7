"""Expressions of the language as Spark SQL, where both surely mean the same; None where that is not certain.

The result is evaluated by Spark on the packed union, before the shuffle.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.types as pt

from midstream.expr.evaluate import fails_itself
from midstream.expr.expression import Call, Column, Expression, Literal
from midstream.expr.linear import widens
from midstream.expr.types import family
from midstream.state.base_state import TIME

_COMPARISONS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECONDS_OF_DAY = 86_400_000_000

Slots = Callable[[Column], str]
"""The slot that a column is in."""


def condition(expression: Expression, slots: Slots) -> str | None:
    """Write a condition that every row passes that passes `expression`; of a conjunction, the parts that can be
    written."""
    if not isinstance(expression, Call):
        return None
    function, arguments = expression.function, expression.arguments
    if function == "and":
        sides = [side for a in arguments if (side := condition(a, slots)) is not None]
        return " AND ".join(f"({side})" for side in sides) or None
    if function == "or":
        return _all(" OR ", [condition(a, slots) for a in arguments])
    if function == "not" and isinstance(arguments[0], Call) and arguments[0].function == "is_null":
        inside = _plain(arguments[0].arguments[0], slots)
        return None if inside is None else f"{inside} IS NOT NULL"
    return _leaf(function, arguments, slots)


def _leaf(function: str, arguments: Sequence[Expression], slots: Slots) -> str | None:
    if function == "is_null":
        inside = _plain(arguments[0], slots)
        return None if inside is None else f"{inside} IS NULL"
    if not all(isinstance(a, Literal) for a in arguments[1:]):
        arguments, function = _turned(function, arguments)
    first, *others = arguments
    inside = _plain(first, slots)
    literals = [_literal(a) for a in others if isinstance(a, Literal) and a.type == first.type]
    if inside is None or len(literals) != len(others) or None in literals:
        return None
    if function in _COMPARISONS:
        return f"{inside} {_COMPARISONS[function]} {literals[0]}"
    if function == "between":
        return f"{inside} BETWEEN {literals[0]} AND {literals[1]}"
    if function == "in":
        return f"{inside} IN ({', '.join(str(one) for one in literals)})"
    if function == "like" and len(others) == 1 and isinstance(others[0], Literal) and "\\" not in str(others[0].value):
        return f"{inside} LIKE {literals[0]}"
    return None


def _turned(function: str, arguments: Sequence[Expression]) -> tuple[tuple[Expression, ...], str]:
    # `5 < k` becomes `k > 5`.
    if function in _COMPARISONS and len(arguments) == 2 and isinstance(arguments[0], Literal):
        mirrored = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(function, function)
        return (arguments[1], arguments[0]), mirrored
    return tuple(arguments), function


def _plain(expression: Expression, slots: Slots) -> str | None:
    # A column cast to a type that holds all its values, too.
    column, kind = _uncast(expression), expression.type
    if column is None or _rounds(expression) or (isinstance(expression, Call) and fails_itself(expression)):
        return None
    here, own = slots(column), column.type
    if family(own) == "timestamp":
        return _micros(here, own) if family(kind) == "timestamp" else None
    if own == kind:
        return here if here != TIME else None
    if family(own) == "integer" and family(kind) == "integer" and kind.bit_width >= own.bit_width:
        return f"CAST({here} AS BIGINT)" if pt.is_int64(kind) else here
    if family(own) in ("integer", "float") and pt.is_float64(kind):
        return f"CAST({here} AS DOUBLE)"
    return None


def _uncast(expression: Expression) -> Column | None:
    if isinstance(expression, Call) and expression.function == "cast":
        expression = expression.arguments[0]
    return expression if isinstance(expression, Column) else None


def _rounds(expression: Expression) -> bool:
    return isinstance(expression, Call) and family(expression.type) == "timestamp" and not widens(expression)


def _micros(here: str, own: pa.DataType) -> str:
    if here == TIME:
        return here
    if family(own) == "date":
        return f"try_multiply(CAST(unix_date({here}) AS BIGINT), {_MICROSECONDS_OF_DAY}L)"
    return f"unix_micros(CAST({here} AS TIMESTAMP))"


def _literal(literal: Literal) -> str | None:
    value = literal.value
    if value is None:
        return None
    match family(literal.type):
        case "boolean":
            return "TRUE" if value else "FALSE"
        case "integer":
            return f"CAST('{value}' AS BIGINT)"
        case "float":
            return f"{float(value)!r}D" if math.isfinite(value) else f"double('{value}')"
        case "decimal":
            assert isinstance(value, decimal.Decimal)
            return f"CAST('{value:f}' AS DECIMAL({literal.type.precision}, {literal.type.scale}))"
        case "text":
            return "decode(X'" + str(value).encode().hex() + "', 'UTF-8')"
        case "date":
            return f"DATE'{value.isoformat()}'" if value.year >= 1000 else None
        case "timestamp" if isinstance(value, datetime.datetime):
            return f"{_microseconds_of(value)}L"
    return None


def _microseconds_of(value: datetime.datetime) -> int:
    naive = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value
    return (naive - _EPOCH) // datetime.timedelta(microseconds=1)


def _all(word: str, parts: Sequence[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return word.join(f"({part})" for part in known) if len(known) == len(parts) else None
