"""Arithmetic over columns: what fails is NULL."""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.language.datum import Datum, Values, build, by_row, lift, restore, storage, storage_type, valid, values
from midstream.language.types import family

_EXACT = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP, traps=[decimal.InvalidOperation])
_CHECKED: dict[str, Callable[..., Datum]] = {
    "add": pc.add_checked,
    "sub": pc.subtract_checked,
    "mul": pc.multiply_checked,
    "neg": pc.negate_checked,
    "abs": pc.abs_checked,
}
_PYTHON: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "abs": operator.abs,
}
_DECIMAL: dict[str, Callable[..., Any]] = {
    "add": _EXACT.add,
    "sub": _EXACT.subtract,
    "mul": _EXACT.multiply,
    "neg": _EXACT.minus,
    "abs": _EXACT.abs,
    "mod": _EXACT.remainder,
}


def arithmetic(name: str) -> Callable[..., Datum]:
    """The kernel of +, -, *, unary minus or ABS; dates, times and durations count as the numbers they are stored as."""

    def kernel(type: pa.DataType, *data: Datum) -> Datum:
        if family(type) == "decimal":
            return _decimals(name, type, *data)
        if family(type) == "float":
            return _CHECKED[name](*data)
        stored = [storage(d).cast(storage_type(type)) for d in data]
        try:
            return restore(_CHECKED[name](*stored), type)
        except pa.ArrowInvalid:
            return restore(_wide(_PYTHON[name], stored), type)

    return kernel


def _wide(function: Callable[..., Any], data: list[Datum]) -> Datum:
    """The slow way after an overflow: Python's integers find the rows that failed."""
    numbers = np.asarray(function(*(values(d).astype(object) for d in data)), dtype=object)
    bounds = np.iinfo(data[0].type.to_pandas_dtype())
    fits = np.asarray((numbers >= bounds.min) & (numbers <= bounds.max), dtype=bool)
    mask = valid(*data)
    kept = np.where(fits, numbers, 0).astype(bounds.dtype)
    return build(kept, fits if mask is None else fits & mask, data[0].type)


def _decimals(name: str, type: pa.DataType, *data: Datum) -> Datum:
    try:
        found = _CHECKED[name](*data)
        if found.type == type:
            return found
    except (KeyError, pa.ArrowInvalid):
        pass
    limit = decimal.Decimal(10) ** (type.precision - type.scale)
    exponent = decimal.Decimal(1).scaleb(-type.scale)

    def one(*row: decimal.Decimal) -> decimal.Decimal | None:
        number = _EXACT.quantize(_DECIMAL[name](*row), exponent)
        return number if abs(number) < limit else None

    return by_row(one, type, *data)


def divide(type: pa.DataType, left: Datum, right: Datum) -> Datum:
    """True division of two floats; NULL where the divisor is zero."""
    divisor = values(right)
    return lift(lambda a, _: a / divisor, type, left, right, ok=divisor != 0)


def divide_whole(type: pa.DataType, left: Datum, right: Datum) -> Datum:
    """Division of two integers, cut towards zero."""
    divisor = values(right)
    least = np.iinfo(divisor.dtype).min
    ok = np.asarray((divisor != 0) & ~((divisor == -1) & (values(left) == least) & (least < 0)))

    def cut(a: Values, b: Values) -> Values:
        safe = np.where(ok, b, 1).astype(b.dtype)
        return np.asarray((a - np.fmod(a, safe)) // safe)

    return lift(cut, type, left, right, ok=ok)


def remainder(type: pa.DataType, left: Datum, right: Datum) -> Datum:
    """The remainder, with the sign of the dividend; NULL where the divisor is zero."""
    if family(type) == "decimal":
        return _decimals("mod", type, left, right)
    divisor = values(right)
    safe = np.where(divisor == 0, 1, divisor).astype(divisor.dtype)
    return lift(lambda a, _: np.fmod(a, safe), type, left, right, ok=np.asarray(divisor != 0))


def real(
    function: Callable[[Values], Values], domain: Callable[[Values], Values] | None = None
) -> Callable[..., Datum]:
    """The kernel of a real function of one number; NULL outside its domain."""

    def kernel(type: pa.DataType, number: Datum) -> Datum:
        given = values(number)
        with np.errstate(all="ignore"):
            return lift(function, type, number, ok=None if domain is None else np.asarray(domain(given)))

    return kernel


def power(type: pa.DataType, base: Datum, exponent: Datum) -> Datum:
    """A power; NULL for zero to a negative power and for a root of a negative number."""
    a, b = values(base), values(exponent)
    fails = ((a == 0) & (b < 0)) | ((a < 0) & np.isfinite(a) & np.isfinite(b) & (b != np.trunc(b)))
    return lift(np.power, type, base, exponent, ok=np.asarray(~fails))


def _half_away(numbers: Values) -> Values:
    """C's round(): halves go away from zero."""
    whole = np.trunc(numbers)
    return np.asarray(np.where(np.abs(numbers - whole) >= 0.5, whole + np.copysign(1, numbers), whole))


def round_to(type: pa.DataType, number: Datum, digits: Datum) -> Datum:
    """A number rounded to so many decimal places, halves away from zero."""
    places = digits.as_py()
    if family(type) == "float":
        scale = math.pow(10.0, abs(places))

        def rounded(a: Values) -> Values:
            scaled = _half_away(a * scale) / scale if places >= 0 else _half_away(a / scale) * scale
            return np.asarray(np.where(np.isfinite(scaled), scaled, a if places >= 0 else 0.0), dtype=a.dtype)

        return lift(rounded, type, number)
    if family(type) == "integer":
        return number if places >= 0 else by_row(lambda n: _round_whole(n, -places), type, number)
    exponent = decimal.Decimal(1).scaleb(-places)
    limit = decimal.Decimal(10) ** (type.precision - type.scale)

    def one(row: decimal.Decimal) -> decimal.Decimal | None:
        found = _EXACT.quantize(row, exponent)
        return found if abs(found) < limit else None

    return by_row(one, type, number)


def _round_whole(number: int, places: int) -> int:
    unit = int(10**places)
    size = (abs(number) + unit // 2) // unit * unit
    return size if number >= 0 else -size


def whole(function: Callable[[Values], Values], mode: str) -> Callable[..., Datum]:
    """The kernel of FLOOR or CEIL."""

    def kernel(type: pa.DataType, number: Datum) -> Datum:
        if family(type) == "float":
            return lift(function, type, number)
        rounding = decimal.Context(prec=100, rounding=mode)
        return by_row(lambda n: rounding.quantize(n, decimal.Decimal(1)), type, number)

    return kernel
