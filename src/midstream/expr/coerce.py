"""Type checking: casts put in so that the arguments of a function have the types it works on."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa

from midstream.expr.expression import Call, Expression, Literal
from midstream.expr.kernels.cast import cast as cast_datum
from midstream.expr.types import (
    DOUBLE,
    INT64,
    TEXT,
    common,
    decimal_of,
    family,
    working_type,
)
from midstream.model.errors import LanguageError

_MOST_DIGITS = 300
"""A number of so many digits is in the range of a DOUBLE."""
_READ_FROM_TEXT = frozenset({"date", "time", "timestamp", "binary"})


def scalar(literal: Literal) -> pa.Scalar:
    """The Arrow scalar of a literal."""
    return pa.scalar(literal.value, literal.type)


def literal(value: Any) -> Literal:
    """The literal of a Python value, of the smallest usual type: INTEGER, BIGINT, DECIMAL, DOUBLE, VARCHAR.

    >>> literal(5).type, literal(2**40).type, literal(decimal.Decimal("0.50")).type
    (DataType(int32), DataType(int64), Decimal128Type(decimal128(2, 2)))
    """
    if isinstance(value, bool) or value is None or isinstance(value, bytes):
        return Literal(pa.scalar(value).type, value)
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return Literal(pa.int32() if -(2**31) <= value < 2**31 else INT64, value)
        return Literal(pa.decimal128(38, 0), decimal.Decimal(value)) if abs(value) < 10**38 else literal(float(value))
    if isinstance(value, decimal.Decimal):
        _, digits, exponent = value.as_tuple()
        scale = max(-int(exponent), 0)
        precision = max(len(digits) + max(int(exponent), 0), scale, 1)
        return Literal(pa.decimal128(precision, scale), value) if precision <= 38 else literal(float(value))
    return Literal(DOUBLE if isinstance(value, float) else TEXT, value)


def number(text: str) -> Literal:
    """The literal of a number without a sign, as a query writes it; raises LanguageError where no type has it.

    >>> number("2.50").value, number("1e3").value, number("7").value
    (Decimal('2.50'), 1000.0, 7)
    """
    try:
        if "e" not in text.lower() and len(text) <= _MOST_DIGITS:
            return literal(int(text) if text.isdigit() else decimal.Decimal(text))
        found = literal(float(text))
    except (ValueError, decimal.InvalidOperation):
        raise LanguageError(f"{text[:60]!r} is not a number", remedy="write a number such as 0.5 or 1e5") from None
    if found.value == float("inf"):
        remedy = "write a number below 1.8e308, such as 0.5 or 1e5"
        raise LanguageError(f"{text[:20]} is outside the range of DOUBLE", remedy=remedy)
    return found


def cast(expression: Expression, type: pa.DataType) -> Expression:
    """The expression as another type; a literal is cast at once, and must survive it."""
    if expression.type == type:
        return expression
    if not isinstance(expression, Literal):
        return Call(type, "cast", (expression,))
    try:
        value = cast_datum(type, scalar(expression)).as_py()
    except OverflowError:
        value = None  # A moment of which Python has no value.
    if value is None and expression.value is not None:
        raise LanguageError(
            f"{expression.value!r} is not a valid {name(type)}", remedy=f"write a literal of type {name(type)}"
        )
    return Literal(type, value)


def name(type: pa.DataType) -> str:
    """A type as messages name it, in the words of SQL."""
    words = {
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INTEGER",
        INT64: "BIGINT",
        pa.float32(): "FLOAT",
    }
    words |= {DOUBLE: "DOUBLE", TEXT: "VARCHAR", pa.bool_(): "BOOLEAN", pa.binary(): "BLOB", pa.date32(): "DATE"}
    kind = family(type)
    if kind == "decimal":
        return f"DECIMAL({type.precision}, {type.scale})"
    if kind in ("timestamp", "time", "duration"):
        return {"timestamp": "TIMESTAMP", "time": "TIME", "duration": "INTERVAL"}[kind]
    return words.get(type, str(type))


def plain(expression: Expression) -> Expression:
    """The expression in the type that functions work on."""
    return cast(expression, working_type(expression.type))


def unify(expressions: tuple[Expression, ...], *, comparing: bool = False) -> tuple[Expression, ...]:
    """The expressions, all cast to one type; literals adapt to what stands next to them.

    Raises LanguageError if they have no common type.
    """
    plains = tuple(plain(e) for e in expressions)
    target: pa.DataType | None = None
    for expression in [e for e in plains if not isinstance(e, Literal)] + [e for e in plains if isinstance(e, Literal)]:
        if target is None:
            target = expression.type
        elif isinstance(expression, Literal):
            target = _meet(target, _adapted(expression, target, comparing and len(plains) == 2))
        else:
            target = _meet(target, expression.type)
    assert target is not None
    if family(target) == "null":
        target = pa.bool_()
    return tuple(_settle(e, target) for e in plains)


def _settle(expression: Expression, target: pa.DataType) -> Expression:
    if isinstance(expression, Literal) and expression.value is None:
        return Literal(target, None)
    return cast(expression, target)


def _meet(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    found = common(left, right)
    if found is None:
        raise LanguageError(
            f"{name(left)} and {name(right)} cannot be compared or combined",
            remedy="CAST one value to the type of the other",
        )
    return found


def _adapted(item: Literal, target: pa.DataType, comparing: bool) -> pa.DataType:
    mine, other = family(item.type), family(target)
    if item.value is None:
        return target
    if mine == "text" and other in _READ_FROM_TEXT:
        return target
    if mine == "integer" and other == "integer":
        bits, low = target.bit_width, pa.types.is_signed_integer(target)
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if low else (0, 2**bits - 1)
        return target if least <= item.value <= most else item.type
    if mine == "integer" and other == "decimal":
        return literal(decimal.Decimal(item.value)).type
    if mine == "decimal" and other == "integer" and comparing and abs(item.value) < 10**9 and item.type.scale <= 6:
        # Doubles near 10^9 are closer together than 10^-6: the comparison is exact, and much faster than decimals.
        return DOUBLE
    return item.type


def arithmetic_type(function: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of a sum, difference, product or remainder of two numbers."""
    joint = _meet(left, right)
    if family(joint) != "decimal":
        return joint
    a, b = decimal_of(left), decimal_of(right)
    if function == "mul":
        scale = a.scale + b.scale
        return DOUBLE if scale > 38 else pa.decimal128(min(a.precision + b.precision + 1, 38), scale)
    if function == "mod":
        return joint
    scale = max(a.scale, b.scale)
    return pa.decimal128(min(max(a.precision - a.scale, b.precision - b.scale) + 1 + scale, 38), scale)
