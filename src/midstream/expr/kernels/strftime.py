"""Moments as text, by DuckDB's patterns: by Arrow's `strftime`, and by arithmetic what that does not know."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from midstream.expr.kernels.datum import Datum, Values, build, is_scalar, lift, valid, values

_ALIKE = frozenset("abdehjmprtuwyABCGHIMRSTUVWXY%")
_SHORTER = {"c": "%Y-%m-%d %H:%M:%S", "x": "%Y-%m-%d", "F": "%Y-%m-%d", "D": "%m/%d/%y"}
_UNPADDED = frozenset("djmyHIMS")
_FRACTIONS = {"g": (3, 1_000), "f": (6, 1), "n": (9, 1)}
_KNOWN = _ALIKE | _SHORTER.keys() | _FRACTIONS.keys() | {"z", "Z"}
_TOKEN = re.compile(r"%-.|%.|%|[^%]+", re.DOTALL)

_SECOND = 1_000_000
_CYCLE = 146_097 * 86_400 * _SECOND
"""The calendar is the same after so many microseconds, which are 400 years."""
_ENDLESS = 2**63 - 1
_USUAL = (-62_135_596_800 * _SECOND, 253_402_300_800 * _SECOND)
"""The years 1 to 9999. Arrow writes others in another way, or, for its years have 16 bits, wrongly."""


def folded(moment: Datum) -> tuple[Datum, Datum | None]:
    """Moments within the years that Arrow's calendar has, and how many times 400 years they were taken back by.

    Arrow's years have 16 bits; the calendar, with its weeks, is the same every 400 years. None where nothing is to do.

    >>> years = folded(pa.scalar(2**60, pa.timestamp("us")))
    >>> pc.year(years[0]).as_py() + 400 * years[1].as_py()
    38504
    """
    if not is_.is_timestamp(moment.type) or moment.type.unit != "us":
        return moment, None
    words = values(moment)
    if not words.size or (words.min() >= _USUAL[0] and words.max() < _USUAL[1]):
        return moment, None
    cycles = np.where((words >= _USUAL[0]) & (words < _USUAL[1]), 0, np.floor_divide(words, _CYCLE))
    back = lift(lambda a: a - cycles * _CYCLE, moment.type, moment)
    return back, lift(lambda a: cycles + 0 * a, pa.int64(), moment)


def unfolded(moment: Datum, cycles: Datum | None) -> Datum:
    """Moments in microseconds as many times 400 years later."""
    return moment if cycles is None else lift(lambda a, n: a + n * _CYCLE, pa.timestamp("us"), moment, cycles)


def written(moment: Datum, pattern: str, *, endless: bool = True) -> Datum:
    """Timestamps in microseconds, without a zone but that of their type, by a pattern; a code that DuckDB does not know
    is left to Arrow.

    '-infinity' and 'infinity' are written so, or are NULL where `endless` is False.

    >>> written(pa.scalar(1_500_000, pa.timestamp("us")), "%-S.%g").as_py()
    '1.500'
    """
    if is_scalar(moment):
        return written(pa.repeat(moment, 1) if moment.is_valid else pa.nulls(1, moment.type), pattern, endless=endless)[
            0
        ]
    given, mask = values(moment), valid(moment)
    unending = (given == _ENDLESS) | (given <= -_ENDLESS)
    if unending.any():
        given = np.where(unending, 0, given)
    years = None
    if given.size and not (given.min() >= _USUAL[0] and given.max() < _USUAL[1]):
        years = _years(given)
        given = given - (years - 2000) // 400 * _CYCLE
    seconds = build(np.floor_divide(given, _SECOND), mask, pa.timestamp("s"))
    pieces = [_piece(part, given, years, seconds, moment.type.tz) for part in _parts(pattern, years is not None)]
    text = pc.binary_join_element_wise(*pieces, "") if pieces else pc.strftime(seconds, format="")
    if mask is not None:
        text = pc.if_else(pa.array(mask), text, pa.scalar(None, pa.string()))
    if unending.any():
        names = pa.array(np.where(values(moment) > 0, "infinity", "-infinity")) if endless else None
        text = pc.if_else(pa.array(unending), pa.scalar(None, pa.string()) if names is None else names, text)
    return text


def _years(given: Values) -> Values:
    return np.asarray(given.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970)


def _parts(pattern: str, own_years: bool) -> list[str]:
    """Split a pattern into codes that Arrow does not know, and the pieces between them."""
    whole = _TOKEN.sub(lambda found: _SHORTER.get(found[0][1:], found[0]) if found[0][0] == "%" else found[0], pattern)
    parts: list[str] = []
    arrow = False
    for token in _TOKEN.findall(whole):
        code = token[1:] if token.startswith("%") else ""
        unknown = code[1:] not in _UNPADDED if code.startswith("-") else code not in _KNOWN
        alike = not code or unknown or (code in _ALIKE and not (own_years and code in "YGy"))
        parts[-1:] = [parts[-1] + token] if alike and arrow else [*parts[-1:], token]
        arrow = alike
    return parts


def _piece(part: str, given: Values, years: Values | None, seconds: Datum, zone: str | None) -> Datum:
    """Return the text of one part. `years` has the true years if some are outside those that Arrow knows."""
    code = part[1:] if part.startswith("%") else ""
    if code in _FRACTIONS:
        digits, size = _FRACTIONS[code]
        fraction = pc.cast(pa.array(given % _SECOND // size), pa.string())
        return pc.utf8_rpad(pc.utf8_lpad(fraction, min(digits, 6), "0"), digits, "0")
    if code in ("z", "Z"):
        return pa.scalar("+00" if code == "z" else "UTC" if zone else "")
    if years is not None and code in ("Y", "G", "y", "-y"):
        days = given // (86_400 * _SECOND)
        shift = _years((days - (days + 3) % 7 + 3) * 86_400 * _SECOND) - _years(given) if code == "G" else 0
        number = years + shift
        if code in ("y", "-y"):
            return pc.utf8_lpad(pc.cast(pa.array(np.abs(number) % 100), pa.string()), 2 if code == "y" else 1, "0")
        text = pc.cast(pa.array(number), pa.string())
        return pc.if_else(pa.array(number >= 0), pc.utf8_lpad(text, 4, "0"), text)
    if code.startswith("-"):
        text = pc.utf8_ltrim(pc.strftime(seconds, format=f"%{code[1]}", locale="C"), "0")
        return pc.if_else(pc.equal(text, ""), "0", text)
    return pc.strftime(seconds, format=part, locale="C")
