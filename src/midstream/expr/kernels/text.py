"""Text functions over columns."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.kernels.datum import Datum, by_row, is_scalar
from midstream.expr.types import BOOLEAN
from midstream.model.schema import uuids_of

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


Kernel = Callable[..., Datum]


def uuid(type: pa.DataType, text: Datum) -> Datum:
    """A text as UUIDs are kept; NULL where it is none."""
    return uuids_of(text)


def constants(*data: Datum) -> list[Any] | None:
    """The values of data that stand for every row and are not NULL; None where one is no such."""
    if all(is_scalar(datum) and datum.is_valid for datum in data):
        return [datum.as_py() for datum in data]
    return None


def by_arrow(fast: Callable[..., Datum | None], slow: Callable[..., Any]) -> Kernel:
    """A kernel that asks `fast` where all but the first argument are constants, and `slow` row by row otherwise, or
    where `fast` gives None.
    """

    def kernel(type: pa.DataType, text: Datum, *others: Datum) -> Datum:
        known = constants(*others)
        found = None if known is None else fast(text, *known)
        return by_row(slow, type, text, *others) if found is None else found.cast(type)

    return kernel


def rows_of(function: Callable[..., Any]) -> Kernel:
    """A kernel that asks a Python function about each row."""
    return lambda type, *data: by_row(function, type, *data)


def each_different(function: Callable[[str], Any]) -> Kernel:
    """A kernel that asks a Python function about each different text."""

    def kernel(type: pa.DataType, text: Datum) -> Datum:
        if is_scalar(text):
            return by_row(function, type, text)
        codes = pc.dictionary_encode(text)
        found = pa.array([function(value) for value in codes.dictionary.to_pylist()], type)
        return found.take(codes.indices)

    return kernel


LONGEST = 1 << 20
"""A text of which a row says how long it becomes has so many characters at most; there is no longer one."""
FEW = 1_000
"""A text may be repeated so often, as a constant, however long it is."""


def _replace(text: str, old: str, new: str) -> str | None:
    grown = len(text) + (text.count(old) * (len(new) - len(old)) if old else 0)
    if grown > max(LONGEST, len(text)):
        return None
    return text.replace(old, new) if old else text


replace = by_arrow(lambda text, old, new: pc.replace_substring(text, old, new) if old else text, _replace)
starts_with = by_arrow(lambda text, part: pc.starts_with(text, part), str.startswith)
ends_with = by_arrow(lambda text, part: pc.ends_with(text, part), str.endswith)
contains = by_arrow(lambda text, part: pc.match_substring(text, part), lambda text, part: part in text)


def _left(text: str, count: int) -> str:
    return text[:count]


def _right(text: str, count: int) -> str:
    if count >= 0:
        return text[len(text) - count :] if count < len(text) else text
    return text[-count:]


left = by_arrow(lambda text, count: pc.utf8_slice_codeunits(text, 0, count) if count >= 0 else None, _left)
right = by_arrow(lambda text, count: pc.utf8_slice_codeunits(text, -count, None) if count > 0 else None, _right)


def _repeat(text: str, count: int) -> str | None:
    return None if count > FEW and len(text) * count > LONGEST else text * max(count, 0)


def _all_repeated(text: Datum, count: int) -> Datum | None:
    """Repeat all texts in one call; None if one result, or all together, may be too long."""
    if is_scalar(text) or count > FEW or (pc.sum(pc.binary_length(text)).as_py() or 0) * count >= 1 << 31:
        return None
    return pc.binary_repeat(text, max(count, 0))


repeat = by_arrow(_all_repeated, _repeat)


WIDEST = 1_000
"""Texts that are padded to more characters are so row by row."""


def padded(at_front: bool) -> Kernel:
    """The kernel of LPAD or RPAD: texts that are longer are cut off at their end."""

    def one(text: str, width: int, fill: str) -> str | None:
        missing = max(width, 0) - len(text)
        if missing <= 0:
            return text[: max(width, 0)]
        if not fill or width > LONGEST:
            return None
        filling = (fill * (missing // len(fill) + 1))[:missing]
        return filling + text if at_front else text + filling

    def all_at_once(text: Datum, width: int, fill: str) -> Datum | None:
        if is_scalar(text) or not fill or not 0 <= width <= WIDEST:
            return None
        fillings = pa.array([(fill * missing)[:missing] for missing in range(width + 1)], text.type)
        filling = fillings.take(pc.max_element_wise(pc.subtract(width, pc.utf8_length(text)), 0, skip_nulls=False))
        both = (filling, text) if at_front else (text, filling)
        return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*both, ""), 0, width)

    return by_arrow(all_at_once, one)


MOST_PARTS = (1 << 31) - 1
"""So many parts a text may have at most."""


def _part(text: str, separator: str, number: int) -> str:
    parts = text.split(separator) if separator else list(text)
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if number and 0 <= at < len(parts) else ""


def _parts(text: Datum, separator: str, number: int) -> Datum | None:
    if is_scalar(text) or not separator or not 0 < abs(number) <= MOST_PARTS:
        return None
    # What is behind the part need not be divided.
    lists = pc.split_pattern(text, separator, max_splits=number if number > 0 else None)
    offsets = lists.offsets.to_numpy().astype(np.int64)
    begin, end = offsets[:-1], offsets[1:]
    at = begin + number - 1 if number > 0 else end + number
    found = pc.fill_null(lists.values.take(pa.array(at, mask=(at < begin) | (at >= end))), "")
    return pc.if_else(pc.is_null(text), pa.scalar(None, text.type), found)


split_part = by_arrow(_parts, _part)
"""A part of a text between separators, from 1 on; from the end where the number is negative."""

split = by_arrow(
    lambda text, separator: pc.split_pattern(text, separator) if separator else None,
    lambda text, separator: text.split(separator) if separator else list(text) or [""],
)


def _capitalized(text: str | None) -> str | None:
    return None if text is None else " ".join(word[:1].upper() + word[1:].lower() for word in text.split(" "))


capitalized = each_different(_capitalized)
"""Each word, between blanks, with a capital first letter and the others small, as Spark's INITCAP has it."""


def translate(text: str, old: str, new: str) -> str:
    """Characters of `old` replaced by those at the same places of `new`, or taken out where there is none.

    >>> translate("abcab", "ab", "x")
    'xcx'
    """
    table: dict[int, str | None] = {}
    for at, character in enumerate(old):
        table.setdefault(ord(character), new[at] if at < len(new) else None)
    return text.translate(table)


def concat_ws(_: pa.DataType, separator: Datum, *parts: Datum) -> Datum:
    """The parts that are not NULL with the separator between them; NULL where that is NULL."""
    first, *others = parts
    # A row of which every part is NULL is left out by Arrow, not empty.
    nothing = pc.is_null(pc.coalesce(*parts))
    joined = pc.binary_join_element_wise(
        pc.if_else(nothing, pa.scalar("", first.type), first),
        *others,
        pc.fill_null(separator.cast(first.type), ""),
        null_handling="skip",
    )
    there = pc.is_valid(separator)
    return pc.if_else(there, joined, pa.scalar(None, joined.type))


_ZERO_WIDTH_JOINER = "\u200d"


def _joins(character: str, before: str) -> bool:
    if unicodedata.category(character) in ("Mn", "Me", "Mc") or character == _ZERO_WIDTH_JOINER:
        return True
    return before == _ZERO_WIDTH_JOINER or "\U0001f3fb" <= character <= "\U0001f3ff"


def _reversed(text: str | None) -> str | None:
    """A text from its end to its beginning, marks staying on the letters that they are on.

    >>> _reversed("e\\u0301a") == "ae\\u0301"
    True
    """
    if text is None:
        return None
    begins = [at for at in range(len(text)) if not at or not _joins(text[at], text[at - 1])]
    ends = [*begins[1:], len(text)]
    return "".join(text[begin:end] for begin, end in zip(begins[::-1], ends[::-1], strict=True)) if begins else ""


def reverse(type: pa.DataType, text: Datum) -> Datum:
    """A text from its end to its beginning."""
    if is_scalar(text) or not pc.all(pc.string_is_ascii(text), min_count=0).as_py():
        return each_different(_reversed)(type, text)
    return pc.utf8_reverse(text)


position = rows_of(lambda text, part: text.find(part) + 1)
code_of = rows_of(lambda text: ord(text[0]) if text else 0)


def _character(code: int) -> str:
    text = chr(code)
    text.encode()
    return text


character = rows_of(_character)
md5 = each_different(
    lambda text: None if text is None else hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
)
sha256 = each_different(lambda text: None if text is None else hashlib.sha256(text.encode()).hexdigest())
