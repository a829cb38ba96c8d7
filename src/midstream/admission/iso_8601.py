"""Texts of ISO 8601 as times: one reader for both hosts. Without an offset a time is UTC's."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

MICROSECONDS = pa.timestamp("us")
_IN_UTC = pa.timestamp("us", "UTC")

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


_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
"""The seconds in the units of a duration; a month and a year have no number of them."""

_WHOLE, _SECONDS = r"\d{1,12}", r"\d{1,12})(?:[.,](?P<f>\d+)"
_DURATIONS = (
    rf"^(?P<sign>[+-]?)P(?:(?P<w>{_WHOLE})W)?(?:(?P<d>{_WHOLE})D)?"
    rf"(?:T(?:(?P<h>{_WHOLE})H)?(?:(?P<m>{_WHOLE})M)?(?:(?P<s>{_SECONDS})?S)?)?$",
    rf"^(?P<sign>[+-]?)(?:(?P<w>{_WHOLE}) ?WEEKS?,? ?)?(?:(?P<d>{_WHOLE}) ?DAYS?,? ?)?(?:(?P<h>{_WHOLE}) ?HOURS? ?)?"
    rf"(?:(?P<m>{_WHOLE}) ?MINUTES? ?)?(?:(?P<s>{_SECONDS})? ?SECONDS?)?$",
    rf"^(?:(?P<day>[+-]?{_WHOLE}) DAYS?,? )?(?P<sign>[+-]?)(?P<h>{_WHOLE}):(?P<m>[0-5]\d)"
    r"(?::(?P<s>[0-5]\d)(?:[.,](?P<f>\d+))?)?$",
)
"""A duration of ISO 8601, one in words, and one as DuckDB and Python write it, where the sign is that of the clock."""


def is_read(kind: pa.DataType) -> bool:
    """Return whether texts are read as a type here, and not by Arrow."""
    return bool(pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_time(kind) or pt.is_duration(kind))


def read(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read texts as times, dates, times of a day or durations; raises Arrow's error where one is none.

    A date is that of the time in UTC, and so is a time of a day; what is finer than the type is cut off.

    >>> read(pa.array(["2024-02-29", "2024-03-01T00:30+01:00"]), pa.date32()).to_pylist()
    [datetime.date(2024, 2, 29), datetime.date(2024, 2, 29)]
    >>> read(pa.array(["T1230", "13:30:00.5+01:00"]), pa.time64("us")).to_pylist()
    [datetime.time(12, 30), datetime.time(12, 30, 0, 500000)]
    >>> [str(one) for one in read(pa.array(["P1DT2H", "1 day 02:00", "90.5 seconds"]), pa.duration("us")).to_pylist()]
    ['1 day, 2:00:00', '1 day, 2:00:00', '0:01:30.500000']
    """
    if pt.is_date(kind):
        try:
            return pc.cast(texts, kind)  # Arrow reads plain dates, ten times as fast.
        except pa.ArrowInvalid:
            pass
    if pt.is_duration(kind):
        found = _durations(texts)
    elif pt.is_time(kind):
        found = times_of(_on_a_day(texts))
    else:
        found = times_of(texts)
    return pc.cast(found, options=pc.CastOptions(kind, allow_time_truncate=True))


def never(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Tell which texts are never read as a type. False of some that are not read, such as durations too long."""
    if pt.is_duration(kind):
        plain = _with_digits(texts)
        known = [pc.match_substring_regex(plain, pattern) for pattern in _DURATIONS]
        return pc.if_else(pc.is_null(texts), None, pc.invert(pc.fill_null(pc.or_(pc.or_(*known[:2]), known[2]), False)))
    return never_times(_on_a_day(texts) if pt.is_time(kind) else texts)


def _on_a_day(texts: pa.Array) -> pa.Array:
    # On the first of 1970.
    bare = pc.replace_substring_regex(pc.utf8_upper(pc.utf8_trim_whitespace(texts)), r"^T", "")
    return pc.binary_join_element_wise("1970-01-01T", bare, "")


def _with_digits(texts: pa.Array) -> pa.Array:
    plain = pc.utf8_upper(pc.utf8_trim_whitespace(texts))
    return pc.if_else(pc.match_substring_regex(plain, r"\d"), plain, None)


def _durations(texts: pa.Array) -> pa.Array:
    plain = _with_digits(texts)
    found = pa.nulls(len(texts), pa.int64())
    for pattern in _DURATIONS:
        parts = pc.extract_regex(plain, pattern)
        held = {field.name: part for field, part in zip(parts.type, parts.flatten(), strict=True)}
        total = pc.utf8_slice_codeunits(pc.utf8_rpad(held["f"], 6, "0"), 0, 6).cast(pa.int64())
        for unit, seconds in _UNITS.items():
            if unit in held:
                total = pc.add_checked(total, _microseconds(held[unit], seconds))
        total = pc.if_else(pc.equal(held["sign"], "-"), pc.negate_checked(total), total)
        if "day" in held:
            total = pc.add_checked(total, _microseconds(held["day"], _UNITS["d"]))
        found = pc.coalesce(found, total)
    if found.null_count > texts.null_count:
        raise pa.ArrowInvalid("one of the strings is not a duration")
    return found.cast(pa.duration("us"))


def _microseconds(digits: pa.Array, seconds: int) -> pa.Array:
    whole = pc.if_else(pc.equal(digits, ""), "0", digits)
    return pc.multiply_checked(pc.replace_substring_regex(whole, r"^\+", "").cast(pa.int64()), seconds * 1_000_000)


def times_of(texts: pa.Array) -> pa.Array:
    """Read texts as times, in microseconds without a zone; raises Arrow's error where a text is none.

    Dates alone, with T or a blank before the time of day, to the hour, minute, second, or any fraction of one, of which
    what is finer than a microsecond is cut off; with Z or an offset; in the extended or the basic format; of single
    texts also weeks and days of the year.

    >>> times_of(pa.array(["2024-02-29", "20240229T101112,5+0100"])).to_pylist()
    [datetime.datetime(2024, 2, 29, 0, 0), datetime.datetime(2024, 2, 29, 9, 11, 12, 500000)]
    """
    found = _alike(texts)
    if found is not None:
        return found
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
    """Tell which texts `times_of` never reads. False of some by week or day of the year that it does not read.

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


def _alike(texts: pa.Array) -> pa.Array | None:
    # By one cast, where Arrow reads all texts and either each or none has a zone; None otherwise.
    first = texts.slice(max(0, pc.index(pc.is_valid(texts), True).as_py()), 1)
    for kind in (_IN_UTC, MICROSECONDS):
        try:
            pc.cast(first, kind)  # A cast that fails writes a message for each text.
            return pc.cast(texts, kind).view(MICROSECONDS)
        except pa.ArrowInvalid:
            continue
    return None


def _read(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring_regex(texts, _FINER, r"\1")
    zoned = pc.match_substring_regex(texts, _ZONED)
    if not pc.any(zoned).as_py():
        return pc.cast(texts, MICROSECONDS)
    there = pc.cast(pc.if_else(zoned, texts, None), _IN_UTC).cast(MICROSECONDS)
    here = pc.cast(pc.if_else(zoned, None, texts), MICROSECONDS)
    return pc.coalesce(there, here)


def _of_one(text: str) -> pa.Array:
    # By its week or its day of the year, with or without a time of day.
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
    raise pa.ArrowInvalid(f"{text!r} is not a time")
