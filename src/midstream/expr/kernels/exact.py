"""Exact numbers, integers and decimals, rounded and fitted into a type; what does not fit is NULL.

pyarrow does both, with two traps. `round`, `floor` and `ceil` give 0 where the result has a digit more than its type
(99.99 in DECIMAL(4, 2)): so they work on wider decimals here. And a cast refuses the whole column for one value: so
values out of range are made NULL before it.
"""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from midstream.expr.kernels.datum import Datum
from midstream.expr.types import family

HALF_AWAY = "half_towards_infinity"
"""pyarrow's name for rounding halves away from zero, as SQL does."""

EXACT = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP, traps=[decimal.InvalidOperation])
"""Decimal arithmetic of Python that loses nothing at the widths of SQL, for what pyarrow cannot do."""

_ROOM = 2


def scale_of(type: pa.DataType) -> int:
    """The digits behind the point of an integer or decimal type."""
    return int(type.scale) if family(type) == "decimal" else 0


def widened(number: Datum) -> Datum:
    """The same numbers as decimals, with room for two digits more.

    >>> widened(pa.scalar(decimal.Decimal("99.99"))).type
    Decimal128Type(decimal128(38, 2))
    """
    type = number.type
    if family(type) == "integer":
        return pc.cast(number, pa.decimal128(38, 0))
    if not is_.is_decimal256(type) and type.precision + _ROOM <= 38:
        return pc.cast(number, pa.decimal128(38, type.scale))
    if type.precision + _ROOM > 76:
        number = fitted(pa.decimal256(76 - _ROOM, type.scale), number)
    return pc.cast(number, pa.decimal256(76, type.scale))


def rounded(number: Datum, places: int) -> Datum:
    """Exact numbers, widened and rounded to so many places behind the point, halves away from zero.

    >>> rounded(pa.scalar(decimal.Decimal("99.95")), 1)
    <pyarrow.Decimal128Scalar: Decimal('100.00')>
    """
    wide = widened(number)
    # Beyond the room, where pyarrow refuses to round, nothing is left of any number.
    return pc.round(wide, max(places, 1 + wide.type.scale - wide.type.precision), round_mode=HALF_AWAY)


def fitted(type: pa.DataType, number: Datum) -> Datum:
    """Decimals, with no more digits behind the point than `type` has, as that type; NULL where they do not fit.

    >>> fitted(pa.int8(), pa.array([decimal.Decimal("127"), decimal.Decimal("128")])).to_pylist()
    [127, None]
    """
    least, most = (_nearest(bound, number.type) for bound in _range(type))
    inside = pc.and_(pc.greater_equal(number, least), pc.less_equal(number, most))
    return pc.cast(pc.if_else(inside, number, pa.scalar(None, number.type)), type)


def to_exact(type: pa.DataType, number: Datum) -> Datum:
    """Exact numbers as another exact type, rounded halves away from zero where that has fewer digits."""
    if scale_of(type) >= scale_of(number.type):
        try:
            return pc.cast(number, type)
        except pa.ArrowInvalid:
            pass
    return fitted(type, rounded(number, scale_of(type)))


def _range(type: pa.DataType) -> tuple[decimal.Decimal, decimal.Decimal]:
    if family(type) == "integer":
        bounds = np.iinfo(type.to_pandas_dtype())
        return decimal.Decimal(bounds.min), decimal.Decimal(bounds.max)
    most = decimal.Decimal(10**type.precision - 1).scaleb(-type.scale, EXACT)
    # Minus would round to the digits of the context.
    return most.copy_negate(), most


def _nearest(bound: decimal.Decimal, type: pa.DataType) -> pa.Scalar:
    least, most = _range(type)
    cut = min(max(bound, least), most).quantize(decimal.Decimal(1).scaleb(-type.scale), decimal.ROUND_DOWN, EXACT)
    return pa.scalar(cut, type)
