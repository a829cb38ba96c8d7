"""Times, durations, names and numbers formatted for people; amounts of memory as people write them."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from midstream.model.errors import InputError

UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1))

FEW = 3
"""How many names are written out of a longer list."""


def time_text(microseconds: int | None) -> str | None:
    """Format an event time for people.

    >>> time_text(1357023600000000)
    '2013-01-01 07:00:00'
    """
    if microseconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(microseconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{moment:%f}".rstrip("0") if moment.microsecond else "")


def span_text(microseconds: int) -> str:
    """Format a length of time in the greatest unit that gives a whole number.

    >>> span_text(0), span_text(5_000_000), span_text(90_000_000), span_text(7_200_000_000), span_text(1_500)
    ('0 s', '5 s', '90 s', '2 h', '1500 us')
    """
    if not microseconds:
        return "0 s"
    return next(f"{microseconds // size} {unit}" for unit, size in UNITS if microseconds % size == 0)


def rough_span_text(seconds: float) -> str:
    """Format a length of time to three digits, in a unit that a reader can picture.

    >>> rough_span_text(9.68e6), rough_span_text(7_200), rough_span_text(1_000), rough_span_text(90)
    ('112 days', '2 h', '16.7 min', '90 s')
    """
    units = (("days", 86_400), ("h", 3_600), ("min", 60))
    unit, size = next((one for one in units if seconds >= 2 * one[1]), ("s", 1))
    return f"{seconds / size:,.0f} {unit}" if seconds >= 1_000 * size else f"{seconds / size:.3g} {unit}"


def brief_text(seconds: float) -> str:
    """Format how long something took, to three digits.

    >>> brief_text(0.00042), brief_text(0.25), brief_text(2.5), brief_text(300)
    ('0.42 ms', '250 ms', '2.5 s', '300 s')
    """
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def window_text(kind: str, size: int) -> str:
    """Format a window of so many microseconds (`range`) or rows (`rows`).

    >>> window_text("range", 60_000_000), window_text("rows", 3)
    ('1 min', '3 rows')
    """
    return span_text(size) if kind == "range" else counted(size, "row")


def coverage_text(sees: str | int, from_step: int, exact_from: int | None) -> str:
    """Describe the rows that a query joins, and the event time from which its answers are exact.

    `sees`, `from_step` and `exact_from` are as in the event `QueryAdded`.

    >>> coverage_text("all", 0, None)
    'all rows'
    >>> coverage_text("new", 7, 1357023600000000)
    'rows from step 7 on, exact from 2013-01-01 07:00:00'
    >>> coverage_text(1357020000000000, 0, 1357023600000000)
    'new rows and those from 2013-01-01 06:00:00 on, exact from 2013-01-01 07:00:00'
    """
    if sees == "all":
        rows = "all rows"
    elif isinstance(sees, int):
        arrived = f" that arrived from step {from_step} on" if from_step else ""
        rows = f"new rows and those from {time_text(sees)} on{arrived}"
    else:
        rows = f"rows from step {from_step} on"
    return rows if exact_from is None else f"{rows}, exact from {time_text(exact_from)}"


def some(names: Sequence[str], count: int | None = None) -> str:
    """List the first few of many names and count the others; `count` is the total if not all are given.

    >>> some(["a", "b"]), some(["a", "b", "c", "d", "e"]), some(["a", "b", "c", "d"], 1000)
    ('a, b', 'a, b, c and 2 more', 'a, b, c and 997 more')
    """
    total = len(names) if count is None else count
    return ", ".join(names) if total <= FEW + 1 else f"{', '.join(names[:FEW])} and {total - FEW:,} more"


def counted(number: int, noun: str) -> str:
    """Format a number of things.

    >>> counted(1, "query"), counted(1000, "query"), counted(0, "row"), counted(2, "key")
    ('1 query', '1,000 queries', '0 rows', '2 keys')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and not noun.endswith("ey") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def suggest(name: str, names: Iterable[str]) -> str:
    """Format the remedy for an unknown name.

    >>> suggest("valeu", ["k", "value", "k"])
    "use one of: k, value; did you mean 'value'?"
    """
    known = list(dict.fromkeys(names))
    near = alike(name, known)
    shown = ", ".join(known[:30]) + (", ..." if len(known) > 30 else "")
    return f"use one of: {shown}" + (f"; did you mean {near[0]!r}?" if near else "")


def alike(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that an unknown one may be a slip of, the most similar first.

    >>> alike("sinks", ["sql", "sink"])
    ['sink']
    """
    return difflib.get_close_matches(name, list(names))


def wrapped(head: str, text: str, wide: int = 80) -> str:
    """Wrap a text behind its head, broken between words; further lines are indented as deep.

    >>> print(wrapped("filter  ", "A.v > 3 or A.v > 5", 20))
    filter  A.v > 3 or
            A.v > 5
    """
    kept = textwrap.wrap(text, wide, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False)
    return "\n".join(kept) or head.rstrip()


def size_text(count: int) -> str:
    """Format a number of bytes for people.

    >>> size_text(999), size_text(1_500_000)
    ('999 B', '1.5 MB')
    """
    size, unit = float(count), 0
    while size >= 1000 and unit < 4:
        size, unit = size / 1000, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {('B', 'kB', 'MB', 'GB', 'TB')[unit]}"


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}  # fmt: skip
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z]*)")


def parse_size(value: str | int, place: str = "") -> int:
    """Parse an amount of memory, a text or a number of bytes.

    >>> parse_size("4 GB", "Engine"), parse_size("1.5GiB", "Engine"), parse_size(4096, "Engine")
    (4000000000, 1610612736, 4096)
    """
    found = _SIZE.fullmatch(str(value).strip()) if isinstance(value, str | int) else None
    unit = None if found is None else _UNITS.get(found[2].upper())
    if found is None or unit is None or isinstance(value, bool) or (size := int(float(found[1]) * unit)) < 1:
        raise InputError(
            f"{value!r} is not an amount of memory", place=place, remedy="write a number and a unit, such as '4 GB'"
        )
    return size
