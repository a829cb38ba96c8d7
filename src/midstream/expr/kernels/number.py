"""Arithmetic over columns: by IEEE 754 of floats; of other numbers, what fails is NULL."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.kernels.datum import Datum, Values, by_row, is_scalar, lift, restore, storage, storage_type, values
from midstream.expr.kernels.exact import EXACT, HALF_AWAY, fitted, rounded, scale_of, widened
from midstream.expr.types import INT64, decimal_of, family

CHECKED: dict[str, Callable[..., Datum]] = {
    "add": pc.add_checked,
    "sub": pc.subtract_checked,
    "mul": pc.multiply_checked,
    "neg": pc.negate_checked,
    "abs": pc.abs_checked,
}
_BY_ROW: dict[str, Callable[..., Any]] = {
    "mul": EXACT.multiply, "mod": EXACT.remainder, "intdiv": EXACT.divide_int
}  # fmt: skip


def arithmetic(name: str) -> Callable[..., Datum]:
    """The kernel of +, -, *, unary minus or ABS; dates, times and durations count as the numbers they are stored as."""

    def kernel(type: pa.DataType, *data: Datum) -> Datum:
        if family(type) == "float":
            return CHECKED[name](*data)
        if family(type) == "decimal" and all(family(d.type) == "integer" for d in data):
            return _of_integers(name, type, data)
        stored_as = type if family(type) == "decimal" else storage_type(type)
        stored = data if family(type) == "decimal" else [_as(stored_as, storage(d)) for d in data]
        try:
            found = CHECKED[name](*stored)
            if found.type == stored_as:
                return restore(found, type)
        except pa.ArrowInvalid:
            pass
        return restore(_widely(name, stored_as, stored), type)

    return kernel


def _as(type: pa.DataType, datum: Datum) -> Datum:
    # Arrow's cast to the type that a column has already takes as long as a sum of a few hundred numbers.
    return datum if datum.type == type else datum.cast(type)


def _of_integers(name: str, type: pa.DataType, data: Sequence[Datum]) -> Datum:
    """Arithmetic of integers whose result is a decimal, as which few results need be computed."""
    try:
        return pc.cast(CHECKED[name](*(pc.cast(d, pa.int64()) for d in data)), type)
    except pa.ArrowInvalid:
        return _widely(name, type, data)


def _widely(name: str, type: pa.DataType, data: Sequence[Datum]) -> Datum:
    """Arithmetic after an overflow: in decimals of twice the width, so that only the rows that fail are NULL."""
    exact = [decimal_of(d.type) for d in data]
    most = 76
    if name == "mul" and sum(e.precision for e in exact) >= most:
        # pyarrow has no type for a product of so many digits, and few numbers have all that their type would let them.
        most = 37
    try:
        wide = [d.cast(pa.decimal256(min(e.precision, most), e.scale)) for d, e in zip(data, exact, strict=True)]
    except pa.ArrowInvalid:
        if most == 76:
            raise
        return _by_row(name, type, *data)
    return fitted(type, CHECKED[name](*wide))


def _by_row(name: str, type: pa.DataType, *data: Datum) -> Datum:
    limit = decimal.Decimal(10) ** (type.precision - type.scale)
    exponent = decimal.Decimal(1).scaleb(-type.scale)

    def one(*row: decimal.Decimal) -> decimal.Decimal | None:
        number = EXACT.quantize(_BY_ROW[name](*row), exponent)
        return number if number.copy_abs() < limit else None

    return by_row(one, type, *data)


def divide(type: pa.DataType, left: Datum, right: Datum) -> Datum:
    """True division of two floats: infinity or NaN where the divisor is zero."""
    return lift(lambda a, b: a / b, type, left, right)


def power(type: pa.DataType, base: Datum, exponent: Datum) -> Datum:
    """A power: infinity for zero to a negative power, NaN for a root of a negative number."""
    return lift(np.float_power, type, base, exponent)  # `np.power` takes 0.5 for a square root, which has no -inf.


def divide_whole(type: pa.DataType, left: Datum, right: Datum) -> Datum:
    """Division of two whole numbers, cut towards zero."""
    if family(type) == "decimal":
        narrow = _narrowed(left, right)
        return _by_row("intdiv", type, left, right) if narrow is None else divide_whole(INT64, *narrow).cast(type)
    divisor = values(right)
    least = np.iinfo(divisor.dtype).min
    ok = np.asarray((divisor != 0) & ~((divisor == -1) & (values(left) == least) & (least < 0)))

    def cut(a: Values, b: Values) -> Values:
        safe = np.where(ok, b, 1).astype(b.dtype)
        return np.asarray((a - np.fmod(a, safe)) // safe)

    return lift(cut, type, left, right, ok=ok)


def remainder(type: pa.DataType, left: Datum, right: Datum) -> Datum:
    """The remainder, with the sign of the dividend; where the divisor is zero, NULL, or NaN of floats."""
    if family(type) == "float":
        return lift(np.fmod, type, left, right)
    if family(type) == "decimal":
        # pyarrow divides decimals, but rounds the quotient, which no remainder survives.
        scale = max(scale_of(left.type), scale_of(right.type))
        narrow = _narrowed(left, right, scale=scale)
        if narrow is None:
            return _by_row("mod", type, left, right)
        return _with_point(remainder(INT64, *narrow), scale).cast(type)
    divisor = values(right)
    safe = np.where(divisor == 0, 1, divisor).astype(divisor.dtype)
    return lift(lambda a, _: np.fmod(a, safe), type, left, right, ok=np.asarray(divisor != 0))


def _narrowed(*data: Datum, scale: int = 0) -> list[Datum] | None:
    """Decimals times ten to the power of the scale, as BIGINT; None where one is not a whole number or does not fit."""
    if any(scale_of(d.type) > scale for d in data):
        return None
    try:
        return [pc.cast(_digits(pc.cast(d, pa.decimal128(38, scale))), INT64) for d in data]
    except pa.ArrowInvalid:
        return None


def _digits(number: Datum) -> Datum:
    """Return a decimal without its point: 1.25 as 125; on the same memory."""
    whole = pa.decimal128(number.type.precision, 0)
    if is_scalar(number):
        return pa.scalar(EXACT.scaleb(number.as_py(), number.type.scale) if number.is_valid else None, whole)
    return pa.Array.from_buffers(whole, len(number), number.buffers(), offset=number.offset)


def _with_point(digits: Datum, scale: int) -> Datum:
    wide, type = pc.cast(digits, pa.decimal128(38, 0)), pa.decimal128(38, scale)
    if is_scalar(wide):
        return pa.scalar(EXACT.scaleb(wide.as_py(), -scale) if wide.is_valid else None, type)
    return pa.Array.from_buffers(type, len(wide), wide.buffers(), offset=wide.offset)


def real(function: Callable[[Values], Values]) -> Callable[..., Datum]:
    """The kernel of a real function of one number; NaN outside its domain."""
    return lambda type, number: lift(function, type, number)


def round_to(type: pa.DataType, number: Datum, digits: Datum) -> Datum:
    """A number rounded to so many decimal places, halves away from zero; NULL where the result does not fit."""
    places = digits.as_py()
    if family(type) != "float":
        return number if places >= scale_of(number.type) else fitted(type, rounded(number, places))
    return _round_doubles(number.cast(pa.float64()), places).cast(type)


def _round_doubles(number: Datum, places: int) -> Datum:
    try:
        return pc.round(number, places, round_mode=HALF_AWAY)
    except pa.ArrowInvalid:
        # It multiplies by a power of ten, and refuses where that is infinite: those have no such digits to round.
        scaled = pc.is_finite(pc.multiply(number, 10.0**places))
        return pc.if_else(scaled, pc.round(pc.if_else(scaled, number, 0.0), places, HALF_AWAY), number)


def whole(function: Callable[[Datum], Datum]) -> Callable[..., Datum]:
    """The kernel of FLOOR or CEIL, pyarrow's `function`."""

    def kernel(type: pa.DataType, number: Datum) -> Datum:
        return function(number) if family(type) == "float" else fitted(type, function(widened(number)))

    return kernel


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
