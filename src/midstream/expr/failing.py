"""Which calls may fail to be evaluated: that overflow the widest type, or cast what cannot be cast.

Numbers are bounded by what they are made of, so that arithmetic of columns, whose types always have room for what may
come out, is not watched for nothing.
"""

from __future__ import annotations

import decimal

import pyarrow as pa
import pyarrow.types as is_

from midstream.expr.expression import Call, Expression, Literal, is_result_time
from midstream.expr.kernels.text import FEW
from midstream.expr.types import NUMBERS, TIMES, family


def overflows(call: Call) -> bool:
    """Whether a sum, difference, product, or change of sign may be too great for its type.

    >>> from midstream.expr.expression import Column
    >>> wide = Column(pa.decimal128(38, 0), "A", "x")
    >>> overflows(Call(pa.decimal128(38, 0), "add", (wide, wide)))
    True
    """
    kind = family(call.type)
    if kind in TIMES or kind == "duration":
        # The time of a result is one that rows have come with.
        return any(not isinstance(a, Literal) and not is_result_time(a) for a in call.arguments)
    return kind == "decimal" and _reach(call) > _most(call.type)


def divides_by_zero(call: Call) -> bool:
    """Whether a whole division, or its remainder, may be by zero, or of the least BIGINT by -1, which overflows."""
    divisor = call.arguments[1]
    return family(call.type) != "float" and not (isinstance(divisor, Literal) and divisor.value not in (0, -1))


def rounds_over(call: Call) -> bool:
    """Whether a rounded decimal may have a digit more than its type, or an integer be rounded to tens beyond it."""
    number, places = call.arguments
    if family(call.type) == "decimal":
        return reach(number) + 1 > _most(call.type)
    if family(call.type) != "integer" or not isinstance(places, Literal) or (places.value or 0) >= 0:
        return False
    return reach(number) + int(10**-places.value) // 2 >= _most(call.type)


def cast_fails(call: Call) -> bool:
    """Whether a cast may meet a value that the type does not have.

    >>> from midstream.expr.expression import Column
    >>> number = Column(pa.int64(), "A", "n")
    >>> [cast_fails(Call(type, "cast", (number,))) for type in (pa.float64(), pa.string(), pa.int32())]
    [False, False, True]
    >>> moment = Column(pa.timestamp("us"), "A", "ts")
    >>> [cast_fails(Call(pa.timestamp(unit), "cast", (moment,))) for unit in ("us", "ns")]
    [False, True]
    """
    (inner,) = call.arguments
    source, target = family(inner.type), family(call.type)
    if source == "null":
        return False
    if source == "binary" and target in ("text", "boolean"):
        return True
    if {source, target} <= TIMES and is_.is_timestamp(call.type) and call.type.unit == "ns":
        return not is_.is_timestamp(inner.type) or inner.type.unit != "ns"  # They reach from 1677 to 2262.
    if target in ("text", "binary", "boolean") and source != "text":
        return False
    if source == target == "text" or {source, target} == {"text", "binary"}:
        return False
    if source in ("integer", "decimal") and target in ("integer", "decimal"):
        if is_.is_unsigned_integer(call.type) and not is_.is_unsigned_integer(inner.type):
            return True
        rounding = target != "decimal" or (source == "decimal" and call.type.scale < inner.type.scale)
        return reach(inner) + int(rounding and source == "decimal") > _most(call.type)
    if source in NUMBERS and target == "float":
        return bool(is_.is_float64(inner.type) and is_.is_float32(call.type))
    # Dates and times of the years that a timestamp has are all the others' too.
    return not {source, target} <= {"date", "timestamp", "duration", "time", "boolean"}


def repeats_often(call: Call) -> bool:
    """Whether a text may be repeated so often that it becomes too long."""
    count = call.arguments[1]
    return not (isinstance(count, Literal) and (count.value is None or count.value <= FEW))


def replaces_by_row(call: Call) -> bool:
    """Whether what is replaced, or what stands for it, differs from row to row, so that a text may become too long."""
    return not all(isinstance(argument, Literal) for argument in call.arguments[1:])


def reach(expression: Expression) -> int:
    """No whole or decimal number that an expression gives is greater, or below its negative.

    >>> from midstream.expr.coerce import literal
    >>> reach(literal(-5))
    5
    """
    limit = _most(expression.type)
    if isinstance(expression, Literal):
        return limit if expression.value is None else min(limit, _up(abs(decimal.Decimal(expression.value))))
    return min(limit, _reach(expression)) if isinstance(expression, Call) else limit


def _reach(call: Call) -> int:
    """Return the same without regard to what the call's own type can hold."""
    inner = [reach(a) for a in call.arguments if family(a.type) in ("integer", "decimal")]
    if len(inner) == len(call.arguments):
        match call.function:
            case "add" | "sub":
                return inner[0] + inner[1]
            case "mul":
                return inner[0] * inner[1]
            case "neg" | "abs":
                return inner[0]
            case "cast":
                return inner[0] + 1
    return _most(call.type)


def _most(type: pa.DataType) -> int:
    """Return the limit of a whole or decimal type: no number is greater, or below its negative."""
    if family(type) == "decimal":
        return int(10 ** (type.precision - type.scale))
    signed = is_.is_signed_integer(type)
    return int(2 ** (type.bit_width - int(signed)))


def _up(number: decimal.Decimal) -> int:
    return int(number.to_integral_value(decimal.ROUND_CEILING))
