"""Text functions over columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.kernels.datum import Datum, by_row, is_scalar
from midstream.expr.types import BOOLEAN

_FAR = 2**63 - 1


def arrow_pattern(pattern: str, escape: str = "") -> str | None:
    """A LIKE pattern as Arrow writes it, where backslash escapes; None if the pattern ends in its escape.

    >>> arrow_pattern("a!%_b\\\\", "!")
    'a\\\\%_b\\\\\\\\'
    """
    result, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if escape and character == escape:
            at += 1
            if at == len(pattern):
                return None
            result += f"\\{pattern[at]}" if pattern[at] in "%_\\" else pattern[at]
        else:
            result += "\\\\" if character == "\\" else character
        at += 1
    return result


def like(ignore_case: bool) -> Callable[..., Datum]:
    """The kernel of LIKE or ILIKE: text, pattern and, if given, escape character."""

    def one(text: Datum, pattern: str, escape: str) -> Datum:
        translated = arrow_pattern(pattern, escape)
        if translated is None:
            return pc.if_else(pc.is_valid(text), False, pa.scalar(None, BOOLEAN))
        return pc.match_like(text, translated, ignore_case=ignore_case)

    def kernel(_: pa.DataType, text: Datum, pattern: Datum, escape: Datum | None = None) -> Datum:
        mark = escape.as_py() if escape is not None else ""
        if is_scalar(pattern):
            return one(text, pattern.as_py(), mark) if pattern.is_valid else by_row(lambda t: None, BOOLEAN, text)
        if is_scalar(text):
            text = pa.repeat(text, len(pattern))
        # One vectorised match per different pattern.
        found = np.full(len(pattern), None, dtype=object)
        codes = pc.dictionary_encode(pattern)
        places = pc.fill_null(codes.indices, -1).to_numpy(zero_copy_only=False)
        for code, value in enumerate(codes.dictionary.to_pylist()):
            rows = np.flatnonzero(places == code)
            found[rows] = one(text.take(pa.array(rows)), value, mark).to_pylist()
        return pa.array(found, BOOLEAN)

    return kernel


def substring(type: pa.DataType, text: Datum, start: Datum, length: Datum | None = None) -> Datum:
    """SUBSTRING with SQL's positions: 1 is the first character, a negative start counts from the end."""
    fixed = start.as_py() if is_scalar(start) and start.is_valid else None
    if fixed is not None and fixed > 0 and (length is None or (is_scalar(length) and (length.as_py() or -1) >= 0)):
        stop = None if length is None else min(fixed - 1 + length.as_py(), _FAR)
        return pc.utf8_slice_codeunits(text, fixed - 1, stop)
    if length is None:
        return by_row(lambda t, s: cut(t, s, None), type, text, start)
    return by_row(cut, type, text, start, length)


def cut(text: str, start: int, length: int | None) -> str:
    """The part of a text from a position of SQL on.

    >>> cut("hello", 2, 3), cut("hello", -3, 2), cut("hello", 0, 3)
    ('ell', 'll', 'he')
    """
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else -1)
    end = len(text) if length is None else begin + length
    if end < begin:
        begin, end = end, begin
    return text[max(begin, 0) : max(end, 0)]


_BLANKS = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def trim(function: Callable[..., Datum]) -> Callable[..., Datum]:
    """The kernel of TRIM, LTRIM or RTRIM; the characters default to the blanks of Unicode, and no others."""

    def kernel(type: pa.DataType, text: Datum, characters: Datum | None = None) -> Datum:
        return function(text, characters=_BLANKS if characters is None else characters.as_py() or "")

    return kernel


def join(_: pa.DataType, *parts: Datum) -> Datum:
    """`||`: NULL if a part is NULL."""
    empty = pa.scalar("" if pa.types.is_string(parts[0].type) or pa.types.is_large_string(parts[0].type) else b"")
    return pc.binary_join_element_wise(*parts, empty.cast(parts[0].type))


def concat(_: pa.DataType, *parts: Datum) -> Datum:
    """CONCAT: NULL counts as the empty text."""
    empty = pa.scalar("", parts[0].type)
    return pc.binary_join_element_wise(*parts, empty, null_handling="replace", null_replacement="")


def length(type: pa.DataType, text: Datum) -> Datum:
    """The number of characters, or of bytes."""
    binary = pa.types.is_binary(text.type) or pa.types.is_large_binary(text.type)
    return (pc.binary_length(text) if binary else pc.utf8_length(text)).cast(type)
