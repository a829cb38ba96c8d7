"""Bits of integers over columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.kernels.datum import Datum, lift

BITWISE = {"bit_and": pc.bit_wise_and, "bit_or": pc.bit_wise_or, "bit_xor": pc.bit_wise_xor}
"""By name what is done with the bits of two integers."""


def shift_right(type: pa.DataType, number: Datum, places: Datum) -> Datum:
    """Bits moved down; the sign stays. 0 where the integer has not so many bits, as in DuckDB."""
    bits = type.bit_width
    # Arrow's own leaves a signed number as it is where all but its sign are moved out.
    return lift(
        lambda a, b: np.where((b >= 0) & (b < bits), np.right_shift(a, np.clip(b, 0, bits - 1)), a.dtype.type(0)),
        type,
        number,
        places,
    )
