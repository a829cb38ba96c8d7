"""Regular expressions over columns, as RE2 has them, which is DuckDB's; the pattern is a constant."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from midstream.language.kernels.datum import Datum
from midstream.model.errors import LanguageError

_GROUP = "found"


def check(pattern: str) -> None:
    """Raise a `LanguageError` where a text is no regular expression."""
    try:
        pc.match_substring_regex(pa.scalar(""), pattern)
    except pa.ArrowInvalid as error:
        raise LanguageError(
            f"{pattern!r} is no regular expression: {str(error).split(':')[-1].strip()}", remedy="write one as RE2 does"
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
    pieces, at, count, inside = list[str](), 0, 0, False
    while at < len(pattern):
        one = pattern[at]
        if one == "\\":
            pieces.append(pattern[at : at + 2])
            at += 2
            continue
        if one == "[":
            inside = True
        elif one == "]":
            inside = False
        group = re.match(r"\((\?P?<[^>=!]*>)?(?!\?)", pattern[at:]) if one == "(" and not inside else None
        if group is None:
            pieces.append(one)
            at += 1
            continue
        count += 1
        pieces.append(f"(?P<{_GROUP}>" if count == number else "(?:")
        at += group.end()
    if number > count:
        raise LanguageError(f"{pattern!r} has no group {number}", remedy=f"use 0 to {count}")
    return "".join(pieces) if number else f"(?P<{_GROUP}>{''.join(pieces)})"
