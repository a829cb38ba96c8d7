"""Sums, differences and products of whole numbers in 64 bits, and comparisons of them.

The type of `a - b` of two BIGINTs has room for every difference, and is a decimal therefore: sixteen bytes a number,
and a conversion at every operator. Few numbers need them. So such an expression is computed in 64 bits from its columns
to its end; where a value in between does not fit, it is computed by its types, from its parts that are known by then.
Either way gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.expression import Call, Expression, kept_with_call
from midstream.expr.functions import function_of
from midstream.expr.kernels.datum import Datum
from midstream.expr.kernels.exact import scale_of
from midstream.expr.kernels.logic import COMPARISONS
from midstream.expr.kernels.number import CHECKED
from midstream.expr.types import INT64, family

DIGITS_OF_BIGINT = 19

_COMPARING = COMPARISONS | {"between", "in"}


@kept_with_call
def is_whole(call: Call) -> bool:
    """Return whether an expression is arithmetic of whole numbers in decimals of 19 digits or more, or compares it.

    >>> from midstream.expr.expression import Column
    >>> a, e = Column(INT64, "A", "a"), Column(pa.decimal128(9, 2), "A", "e")
    >>> difference = Call(pa.decimal128(38, 0), "sub", (a, a))
    >>> is_whole(difference), is_whole(Call(pa.bool_(), "lt", (difference, difference)))
    (True, True)
    >>> is_whole(Call(pa.bool_(), "between", (difference, a, a)))
    True
    >>> is_whole(a), is_whole(Call(pa.decimal128(38, 2), "sub", (a, e)))
    (False, False)
    """
    if call.function in _COMPARING:
        return any(map(_is_wide, call.arguments)) and all(map(_has_no_point, call.arguments))
    return _is_wide(call)


def parts(expression: Expression) -> Iterator[Expression]:
    """What an expression that `is_whole` is made of, and that is something else: columns, literals, other calls."""
    if isinstance(expression, Call) and is_whole(expression):
        for argument in expression.arguments:
            yield from parts(argument)
    else:
        yield expression


def in_64_bits(expression: Call, datum: Callable[[Expression], Datum]) -> Datum | None:
    """The value of an expression that `is_whole`; None where a value in between does not fit into 64 bits.

    `datum` gives the values of its `parts`.
    """
    try:
        if expression.function in _COMPARING:
            narrow = [_narrow(argument, datum) for argument in expression.arguments]
            return function_of(expression.function).kernel(expression.type, *narrow)
        return pc.cast(_narrow(expression, datum), expression.type)
    except pa.ArrowInvalid:
        return None


def _is_wide(expression: Expression) -> bool:
    """Whether this is arithmetic whose type has all BIGINTs, and no digits behind a point."""
    type = expression.type
    return (
        isinstance(expression, Call)
        and expression.function in CHECKED
        and family(type) == "decimal"
        and type.precision >= DIGITS_OF_BIGINT
        and type.scale == 0
        and all(map(_has_no_point, expression.arguments))
    )


def _has_no_point(expression: Expression) -> bool:
    return family(expression.type) in ("integer", "decimal") and scale_of(expression.type) == 0


def _narrow(expression: Expression, datum: Callable[[Expression], Datum]) -> Datum:
    """The value as BIGINT; raises Arrow's error where one does not fit."""
    if isinstance(expression, Call) and _is_wide(expression):
        return CHECKED[expression.function](*(_narrow(argument, datum) for argument in expression.arguments))
    return pc.cast(datum(expression), INT64)
