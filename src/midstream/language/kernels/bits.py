"""Bits of integers over columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from midstream.language.kernels.datum import Datum

BITWISE = {"bit_and": pc.bit_wise_and, "bit_or": pc.bit_wise_or, "bit_xor": pc.bit_wise_xor}
"""By name what is done with the bits of two integers."""


def shift_right(_: pa.DataType, number: Datum, places: Datum) -> Datum:
    """Bits moved down; the sign stays. NULL where the integer has not so many bits."""
    return pc.shift_right(number, _within(number, places))


def _within(number: Datum, places: Datum) -> Datum:
    bits = number.type.bit_width
    inside = pc.and_(pc.greater_equal(places, pa.scalar(0, places.type)), pc.less(places, pa.scalar(bits, places.type)))
    return pc.if_else(inside, places, pa.scalar(None, places.type))
