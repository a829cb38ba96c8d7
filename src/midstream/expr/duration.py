"""Durations in words: `5 seconds`."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from midstream.model.errors import InputError, LanguageError, MidstreamError

MICROSECONDS = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "m": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
}
"""Microseconds in each unit of time; a plural `s` may follow each."""

_PART = re.compile(r"([+-]?\d{1,99}(?:\.\d{1,99})?)\s*([A-Za-zµ]+)")
_REMEDY = (
    "write a number and a unit, such as '5 seconds'; "
    "units: microseconds, milliseconds, seconds, minutes, hours, days, weeks"
)
_LONGEST = 2**62


def unit_size(name: str) -> int | None:
    """The microseconds in a unit, singular or plural, in any case; None for a word that is not one.

    >>> unit_size("SECONDS")
    1000000
    """
    word = name.lower().replace("µ", "u")
    return MICROSECONDS.get(word) or MICROSECONDS.get(word.removesuffix("s"))


def stream_duration(stream: str, what: str, value: str | int | float | timedelta) -> int:
    """A duration in the declaration of a stream, in microseconds; an error names the stream.

    >>> stream_duration("A", "lateness", "5 seconds")
    5000000
    """
    try:
        return parse_duration(value, place=f"{what} of stream {stream}")
    except MidstreamError as error:
        raise InputError(error.message, place=error.place, remedy=error.remedy) from None


def parse_duration(value: str | int | float | timedelta, *, what: str = "the duration", place: str = "") -> int:
    """A duration in microseconds: of a text, a timedelta, or a plain number, which counts microseconds.

    Raises LanguageError for anything else, for a negative duration, and for parts of a microsecond: for `place`.

    >>> [parse_duration(d) for d in ("5 seconds", "1 hour 30 minutes", "1.5 ms", 7)]
    [5000000, 5400000000, 1500, 7]
    """
    if isinstance(value, timedelta):
        total = Fraction((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds)
    elif isinstance(value, int) and not isinstance(value, bool):
        total = Fraction(value)
    elif isinstance(value, str):
        total = _of_text(value, what, place)
    else:
        raise LanguageError(f"{what} is {value!r}", place=place, remedy=_REMEDY)
    if total < 0:
        raise LanguageError(f"{what} is negative: {value}", place=place, remedy="use a duration of zero or more")
    if total.denominator != 1 or total > _LONGEST:
        message = f"{what} is not a number of microseconds below 2^62: {value}"
        raise LanguageError(message, place=place, remedy=_REMEDY)
    return int(total)


def _of_text(text: str, what: str, place: str) -> Fraction:
    total, end = Fraction(0), 0
    stripped = text.strip()
    for part in _PART.finditer(stripped):
        if stripped[end : part.start()].strip(" ,"):
            break
        size = unit_size(part[2])
        if size is None:
            raise LanguageError(f"{what} has an unknown unit {part[2]!r}", place=place, remedy=_REMEDY)
        total, end = total + Fraction(part[1]) * size, part.end()
    if not end or stripped[end:].strip():
        raise LanguageError(f"{what} cannot be read: {text!r}", place=place, remedy=_REMEDY)
    return total
