"""Which values a cast is sure to refuse, found for whole columns at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.admission.iso_8601 import is_read, never

_WHOLE = pa.decimal128(38, 0)
_WITHOUT_GAPS = {pa.float32(): 1 << 24, pa.float64(): 1 << 53}
"""Up to where a float has all whole numbers, which is as far as Arrow casts to it."""

_TRUTH = r"(?i)^(true|false|0|1)$"
_FLOAT = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan(\(\w*\))?)$"
_DECIMAL = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"

_PARTS = r"^[+-]?0*(?P<whole>\d*)\.?(?P<part>\d*?)0*(?:[eE](?P<power>[+-]?\d{1,6}))?$"
"""A number without the zeros at its ends that count for nothing."""


def surely_unreadable(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Tell which values no cast to a type takes, as booleans; False where that is not known, and of NULL.

    It is known of texts for numbers, truth, days and times, of floats for integers, and of integers for integers and
    floats; not of rare texts, such as those by week or day of the year that are no times.

    >>> surely_unreadable(pa.array(["7", "x", None, "99999999999999999999"]), pa.int64()).to_pylist()
    [False, True, False, True]
    """
    if pt.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pt.is_string(values.type) or pt.is_large_string(values.type):
        found = _texts(values, kind)
    elif pt.is_integer(kind) and pt.is_floating(values.type):
        whole = pc.cast(pc.cast(values, kind, safe=False), pa.float64(), safe=False)
        found = pc.not_equal(pc.cast(values, pa.float64()), whole)
    elif pt.is_integer(values.type) and (pt.is_integer(kind) or kind in _WITHOUT_GAPS):
        found = _beyond(pc.cast(values, _WHOLE), kind)
    else:
        found = None
    return pc.fill_null(found, False) if found is not None else pa.repeat(pa.scalar(False), len(values))


def _texts(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if pt.is_integer(kind):
        return _no_integers(texts, kind)
    if pt.is_floating(kind):
        return _unlike(texts, _FLOAT)
    if pt.is_decimal(kind):
        return pc.or_(_unlike(texts, _DECIMAL), _too_long(texts, kind))
    if pt.is_boolean(kind):
        return _unlike(texts, _TRUTH)
    return never(texts, kind) if is_read(kind) else None


def _unlike(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.invert(pc.match_substring_regex(texts, pattern))


def _no_integers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    # Neither decimal digits of a number within the type, nor 0x and no more digits than it has.
    sign = "-?" if pt.is_signed_integer(kind) else ""
    short = pc.replace_substring_regex(texts, r"^(-?)0+(\d)", r"\1\2")
    decimal = pc.match_substring_regex(short, rf"^{sign}\d{{1,20}}$")
    beyond = pc.fill_null(_beyond(pc.cast(pc.if_else(decimal, short, None), _WHOLE), kind), True)
    return pc.and_(beyond, _unlike(texts, rf"^0[xX][0-9a-fA-F]{{1,{kind.bit_width // 4}}}$"))


def _beyond(whole: pa.Array, kind: pa.DataType) -> pa.Array:
    # A float has whole numbers without gaps up to a limit.
    if pt.is_floating(kind):
        most = _WITHOUT_GAPS[kind]
        least = -most
    else:
        signed = pt.is_signed_integer(kind)
        most = (1 << (kind.bit_width - signed)) - 1
        least = -most - 1 if signed else 0
    return pc.or_(pc.less(whole, pa.scalar(least, _WHOLE)), pc.greater(whole, pa.scalar(most, _WHOLE)))


def _too_long(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    # False of other texts than numbers.
    found = pc.extract_regex(texts, _PARTS)
    whole, part, power = (pc.fill_null(pc.struct_field(found, name), "") for name in ("whole", "part", "power"))
    moved = _counts(pc.cast(pc.replace_substring_regex(power, r"^\+?(-?)(\d*)$", r"\10\2"), pa.int64()))
    before, after = _length(whole), _length(part)
    before = np.where(before > 0, before, _length(pc.utf8_ltrim(part, "0")) - after) + moved
    after = np.where(after > 0, after, _length(pc.utf8_rtrim(whole, "0")) - _length(whole)) - moved
    is_zero = (_length(whole) == 0) & (_length(part) == 0)
    return pa.array(~is_zero & ((before > kind.precision - kind.scale) | (after > kind.scale)))


def _length(texts: pa.Array) -> npt.NDArray[np.int64]:
    return _counts(pc.utf8_length(texts))


def _counts(numbers: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(numbers, np.int64)
