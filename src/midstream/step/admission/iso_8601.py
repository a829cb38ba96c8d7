"""Texts of ISO 8601 as times: one reader for both hosts. Without an offset a time is UTC's."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

MICROSECONDS = pa.timestamp("us")

DAY = (
    r"(\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
    r"|(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
)
"""A day that there is, as a regular expression."""

_TIME = rf"^{DAY}([T ]([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d(\.\d+)?)?)?(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)?)?$"
"""What Arrow reads."""

_BY_WEEK_OR_DAY_OF_YEAR = r"^D{4}-?(WD{1,2}-?[1-7]|D{1,3})(T|$)".replace("D", r"(\d|[^\x00-\x7f])")
"""How texts begin that Python may read; it knows the digits of all scripts."""

_ZONED = r"[T ]\d\d.*(Z|[+-]\d\d(:?\d\d)?)$"
"""A text with a time of day that ends in a zone."""

_FINER = r"(\.\d{6})\d+"
"""Digits of a second beyond microseconds."""

_REWRITTEN = (
    (r",(\d+)", r".\1"),
    (r" (Z|[+-]\d\d(:?\d\d)?)$", r"\1"),
    (r"^(\d{4})(\d\d)(\d\d)($|[T ])", r"\1-\2-\3\4"),
    (r"([T ])(\d\d)(\d\d)($|[Z+.-])", r"\1\2:\3\4"),
    (r"([T ])(\d\d)(\d\d)(\d\d)", r"\1\2:\3:\4"),
)
"""What Arrow does not read, as it does: a comma before fractions, a blank before the zone, the basic format."""


def times_of(texts: pa.Array) -> pa.Array:
    """The times, microseconds without a zone; raises Arrow's error where a text is none.

    Dates alone, with T or a blank before the time of day, to the hour, minute, second, or any fraction of one, of which
    what is finer than a microsecond is cut off; with Z or an offset; in the extended or the basic format; of single
    texts also weeks and days of the year.

    >>> times_of(pa.array(["2024-02-29", "20240229T101112,5+0100"])).to_pylist()
    [datetime.datetime(2024, 2, 29, 0, 0), datetime.datetime(2024, 2, 29, 9, 11, 12, 500000)]
    """
    try:
        return _read(texts)
    except pa.ArrowInvalid:
        rewritten = _rewritten(texts)
        try:
            return _read(rewritten)
        except pa.ArrowInvalid:
            if len(texts) > 1:
                raise
            return _of_one(rewritten.cast(pa.binary())[0].as_py().decode(errors="replace"))


def never_times(texts: pa.Array) -> pa.Array:
    """Whether each text is none that `times_of` reads; False of some by week or day of the year that it does not read.

    >>> never_times(pa.array(["2024-02-29", "2023-02-29", "2024-W54-1", "soon", None])).to_pylist()
    [False, True, False, True, None]
    """
    rewritten = _rewritten(texts)
    known = (pc.match_substring_regex(rewritten, pattern) for pattern in (_TIME, _BY_WEEK_OR_DAY_OF_YEAR))
    return pc.invert(pc.or_(*known))


def _rewritten(texts: pa.Array) -> pa.Array:
    rewritten = pc.utf8_upper(pc.utf8_trim_whitespace(texts))
    for pattern, replacement in _REWRITTEN:
        rewritten = pc.replace_substring_regex(rewritten, pattern, replacement)
    return rewritten


def _read(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring_regex(texts, _FINER, r"\1")
    zoned = pc.match_substring_regex(texts, _ZONED)
    if not pc.any(zoned).as_py():
        return pc.cast(texts, MICROSECONDS)
    there = pc.cast(pc.if_else(zoned, texts, None), pa.timestamp("us", "UTC")).cast(MICROSECONDS)
    here = pc.cast(pc.if_else(zoned, None, texts), MICROSECONDS)
    return pc.coalesce(there, here)


def _of_one(text: str) -> pa.Array:
    """A date by its week or its day of the year, with or without a time of day."""
    day, mark, time = text.partition("T")
    for form in ("%G-W%V-%u", "%GW%V%u", "%Y-%j", "%Y%j"):
        try:
            found = datetime.strptime(day, form).date()
            moment = datetime.fromisoformat(f"{found}{mark}{time}")
        except ValueError:
            continue
        # Python's own way to UTC raises where that is in the year 0 or 10000.
        here = pa.array([moment.replace(tzinfo=None)], MICROSECONDS)
        return pc.subtract(here, pa.scalar(moment.utcoffset() or timedelta(0), pa.duration("us")))
    raise pa.ArrowInvalid(f"{text!r} is no time")
