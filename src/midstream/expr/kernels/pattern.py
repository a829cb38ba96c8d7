"""Regular expressions over columns, as RE2 has them, which is DuckDB's; the pattern is a constant."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr.kernels.datum import Datum
from midstream.model.errors import LanguageError

_GROUP = "found"
_NO_GROUP = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
"""A text that is quoted, a character that is, or a class of them: no bracket in it begins a group."""
_BEGINNING = re.compile(r"\((\?P?<[^>=!]*>)?(?!\?)")


def check(pattern: str) -> None:
    """Raise a `LanguageError` where a text is not a regular expression."""
    try:
        pc.match_substring_regex(pa.scalar(""), pattern)
    except pa.ArrowInvalid as error:
        raise LanguageError(
            f"{pattern!r} is not a regular expression: {str(error).split(':')[-1].strip()}",
            remedy="write a pattern in the syntax of RE2",
        ) from error


def check_group(pattern: str, number: int) -> None:
    """Raise a `LanguageError` where a regular expression has no group of a number, or none that can be told apart."""
    with_name = named(pattern, number)
    check(with_name)
    if _GROUP not in [field.name for field in pc.extract_regex(pa.scalar(""), with_name).type]:
        raise LanguageError(
            f"cannot find group {number} of {pattern!r}", remedy="write the group in plain brackets: (...)"
        )


def check_replacement(pattern: str, replacement: str, *_: str) -> None:
    """Raise a `LanguageError` where a text cannot stand for a match."""
    try:
        pc.replace_substring_regex(pa.scalar(""), pattern, replacement)
    except pa.ArrowInvalid as error:
        raise LanguageError(
            f"{replacement!r} cannot replace a match: {str(error).split(':')[-1].strip(' .')}",
            remedy="write \\0 to \\9 for what the groups have matched, and \\\\ for a backslash",
        ) from error


def matches(_: pa.DataType, text: Datum, pattern: Datum) -> Datum:
    """Whether a part of a text matches."""
    return pc.match_substring_regex(text, pattern.as_py())


def replaced(_: pa.DataType, text: Datum, pattern: Datum, replacement: Datum, options: Datum | None = None) -> Datum:
    """The first match replaced, or with the option `g` all of them; `\\1` is the first group."""
    most = None if options is not None and "g" in options.as_py() else 1
    flags = "(?i)" if options is not None and "i" in options.as_py() else ""
    return pc.replace_substring_regex(text, flags + pattern.as_py(), replacement.as_py(), max_replacements=most)


def extracted(_: pa.DataType, text: Datum, pattern: Datum, group: Datum) -> Datum:
    """What a group of the first match is, or with 0 the whole match; the empty text where nothing matches."""
    found = pc.struct_field(pc.extract_regex(text, named(pattern.as_py(), group.as_py())), _GROUP)
    return pc.if_else(pc.is_valid(text), pc.coalesce(found, pa.scalar("", found.type)), pa.scalar(None, found.type))


def named(pattern: str, number: int) -> str:
    """The pattern with a name for one of its groups, and no other.

    >>> named("(a)(?:b)([)(])", 2), named("a+", 0)
    ('(?:a)(?:b)(?P<found>[)(])', '(?P<found>a+)')
    """
    pieces, at, count = list[str](), 0, 0
    while at < len(pattern):
        if (other := _NO_GROUP.match(pattern, at)) is not None:
            pieces.append(other[0])
            at = other.end()
            continue
        group = _BEGINNING.match(pattern, at)
        if group is None:
            pieces.append(pattern[at])
            at += 1
            continue
        count += 1
        pieces.append(f"(?P<{_GROUP}>" if count == number else "(?:")
        at = group.end()
    if not 0 <= number <= count:
        raise LanguageError(f"{pattern!r} has no group {number}", remedy=f"use a group from 0 to {count}")
    return "".join(pieces) if number else f"(?P<{_GROUP}>{''.join(pieces)})"
