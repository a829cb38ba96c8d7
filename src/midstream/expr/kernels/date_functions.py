"""Functions of dates and times over columns; a timestamp with a zone is read in UTC."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from midstream.expr.kernels.cast import cast, cut
from midstream.expr.kernels.datum import Datum, Values, column_of, lift, restore, storage, values
from midstream.expr.kernels.strftime import folded, unfolded, written

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
"""What DATE_TRUNC cuts to."""

_SECOND = 1_000_000


def _plain(moment: Datum) -> Datum:
    moment = cut(pa.timestamp("us", moment.type.tz), moment) if is_.is_timestamp(moment.type) else moment
    return restore(storage(moment), pa.timestamp("us")) if is_.is_timestamp(moment.type) else moment


def truncated(type: pa.DataType, unit: Datum, moment: Datum) -> Datum:
    """The beginning of the year, ..., that a moment is in; weeks begin on Monday."""
    within, cycles = folded(_plain(moment))
    found = pc.floor_temporal(within, unit=unit.as_py(), week_starts_monday=True)
    return restore(storage(unfolded(found, cycles)), type)


def bucketed(type: pa.DataType, width: Datum, moment: Datum, origin: Datum) -> Datum:
    """The beginning of the span of a width that a moment is in, where one begins at the origin.

    >>> hour, times = pa.scalar(3_600_000_000, pa.duration("us")), pa.array([-1, 7_200_000_001], pa.timestamp("us"))
    >>> storage(bucketed(times.type, hour, times, pa.scalar(0, times.type))).to_pylist()
    [-3600000000, 7200000000]
    """
    size, first = storage(width).as_py(), storage(origin).as_py()
    return lift(lambda words: (words - first) // size * size + first, type, moment)


def hop_ends(type: pa.DataType, moment: Datum, step: Datum, size: Datum, moved: Datum) -> Datum:
    """List the ends of the windows that a moment is in, in order: one of this size starts at each step.

    >>> us, times = pa.duration("us"), pa.array([7, None], pa.timestamp("us"))
    >>> found = hop_ends(pa.list_(times.type), times, pa.scalar(5, us), pa.scalar(10, us), pa.scalar(0, us))
    >>> found.flatten().cast(pa.int64()).to_pylist(), pc.list_value_length(found).to_pylist()
    ([10, 15], [2, None])
    """
    slide, length, first = (storage(duration).as_py() for duration in (step, size, moved))

    def ends(words: Values) -> tuple[Values, Values]:
        begin = (words - length - first) // slide * slide + slide + first
        return begin + length, ((words - first) // slide * slide + first - begin) // slide + 1

    return _lists(type, moment, slide, -(-length // slide), ends)


def cumulate_ends(type: pa.DataType, moment: Datum, step: Datum, size: Datum, moved: Datum) -> Datum:
    """List the ends of the windows that a moment is in: they start at multiples of the size and grow by the step."""
    slide, length, first = (storage(duration).as_py() for duration in (step, size, moved))

    def ends(words: Values) -> tuple[Values, Values]:
        begin = (words - first) // length * length + first
        end = begin + ((words - begin) // slide + 1) * slide
        return end, (begin + length - end) // slide + 1

    return _lists(type, moment, slide, length // slide, ends)


def _lists(
    type: pa.DataType, moment: Datum, step: int, most: int, ends: Callable[[Values], tuple[Values, Values]]
) -> Datum:
    """Lists of moments that are a step apart, of which the first and the number are known; NULL where the moment is."""
    one = not isinstance(moment, pa.Array)
    moments = column_of(moment, 1)
    with np.errstate(all="ignore"):
        first, counts = ends(values(moments))
    # A time at the end of all times has no windows beyond these.
    counts = np.clip(counts, 0, most)
    if moments.null_count:
        counts = np.where(np.asarray(pc.is_valid(moments)), counts, 0)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    items = np.repeat(first, counts) + step * (np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts))
    array = pa.LargeListArray if is_.is_large_list(type) else pa.ListArray
    width = pa.int64() if is_.is_large_list(type) else pa.int32()
    within = restore(pa.array(items, pa.int64()), type.value_type)
    mask = pc.is_null(moments) if moments.null_count else None
    found = array.from_arrays(pa.array(offsets, width), within, mask=mask)
    return found[0] if one else found


def known_zone(name: str) -> bool:
    """Whether a name is that of a zone of time.

    >>> known_zone("Europe/Berlin"), known_zone("+02:00"), known_zone("Berlin")
    (True, True, False)
    """
    try:
        pc.local_timestamp(pa.scalar(0, pa.timestamp("us", name)))
    except (pa.ArrowInvalid, ValueError):
        return False
    return True


def at_zone(type: pa.DataType, zone: Datum, moment: Datum) -> Datum:
    """The local time of a moment in a zone; or, of a TIMESTAMP without one, the moment at which it is local time there.

    Of two such moments, as clocks are put back, it is the later one; a local time that is left out, as they are put
    forward, is taken for one before that, as DuckDB has it.
    """
    moment = cut(pa.timestamp("us", moment.type.tz), moment)
    within, cycles = folded(_plain(moment))
    name = zone.as_py()
    if type.tz is None:
        return restore(storage(unfolded(_local(within, name), cycles)), type)
    before, after = (_less_offset(within, name, days) for days in (-1, 1))
    found = pc.if_else(pc.equal(_local(after, name), within), after, before)
    return restore(storage(unfolded(found, cycles)), type)


def unit_ends(moment: pa.Array, unit: str, zone: str) -> pa.Array:
    """When the year, ..., in which a moment is in a zone has ended; moments are TIMESTAMPs in UTC.

    >>> unit_ends(pa.array([1679788800_000_000]).cast(pa.timestamp("us")), "day", "Europe/Berlin").to_pylist()
    [datetime.datetime(2023, 3, 26, 22, 0)]
    """
    within, cycles = folded(moment)
    local = _local(within, zone)
    following = pc.ceil_temporal(local, unit=unit, week_starts_monday=True, ceil_is_strictly_greater=True)
    ends = at_zone(pa.timestamp("us", "UTC"), pa.scalar(zone), following)
    return unfolded(ends.cast(pa.timestamp("us")), cycles).cast(pa.timestamp("us"))


def _local(moment: Datum, zone: str) -> Datum:
    return pc.local_timestamp(moment.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone)))


def _less_offset(local: Datum, zone: str, days: int) -> Datum:
    """Local times less how far the zone is from UTC so many days later."""
    near = pc.add(local, pa.scalar(days * _SIZES["day"], pa.duration("us")))
    return pc.subtract(local, pc.subtract(_local(near, zone), near))


_MONTHS = {"year": 12, "quarter": 3, "month": 1}
"""By unit how many months it has."""


def _counted(moment: Datum, unit: str) -> Datum:
    moment, cycles = folded(moment)
    months = pc.add(pc.multiply(pc.year(moment), 12), pc.subtract(pc.month(moment), 1))
    months = months if cycles is None else pc.add(months, pc.multiply(cycles, 4_800))
    return lift(lambda m: np.floor_divide(m, _MONTHS[unit]), pa.int64(), months)


_SIZES = {
    "day": 86_400 * _SECOND, "hour": 3_600 * _SECOND, "minute": 60 * _SECOND, "second": _SECOND,
    "millisecond": 1_000, "microsecond": 1,
}  # fmt: skip


def difference(_: pa.DataType, unit: Datum, begin: Datum, end: Datum) -> Datum:
    """How many years, ..., begin after one moment and not after another."""
    one, other, name = _plain(begin), _plain(end), unit.as_py()
    if name in _MONTHS:
        first, last = (_counted(moment, name) for moment in (one, other))
        return pc.subtract(last, first)
    size = _SIZES[name]
    return lift(lambda a, b: np.floor_divide(b, size) - np.floor_divide(a, size), pa.int64(), one, other)


def whole_units(_: pa.DataType, unit: Datum, begin: Datum, end: Datum) -> Datum:
    """How many whole years, ..., lie between two moments, negative where the second one is earlier."""
    name, one, other = unit.as_py(), _plain(begin), _plain(end)
    if name not in _MONTHS:
        size = _SIZES[name]
        return lift(lambda a, b: np.sign(b - a) * (np.abs(b - a) // size), pa.int64(), one, other)
    return lift(_whole_months(_MONTHS[name]), pa.int64(), one, other)


def _whole_months(months: int) -> Callable[..., Values]:
    """Between microseconds; the last day of a month stands for days that it does not have, as in DuckDB."""

    def whole(begin: Values, end: Values) -> Values:
        (first, day, time), (last, until, at) = map(_in_month, (np.minimum(begin, end), np.maximum(begin, end)))
        is_last = _in_month(np.maximum(begin, end) + _SIZES["day"])[1] == 0
        until = np.where(is_last & (day > until), day, until)
        crossed = last - first - ((until < day) | ((until == day) & (at < time)))
        return np.asarray(np.where(end < begin, -1, 1) * (crossed // months))

    return whole


def _in_month(moment: Values) -> tuple[Values, Values, Values]:
    days = np.floor_divide(moment, _SIZES["day"])
    month = days.astype("datetime64[D]").astype("datetime64[M]")
    day = days - month.astype("datetime64[D]").astype(np.int64)
    return month.astype(np.int64), day, moment - days * _SIZES["day"]


COUNTED = tuple(unit for unit in UNITS if unit != "week")
"""What DATE_DIFF counts."""


def formatted(type: pa.DataType, moment: Datum, pattern: Datum) -> Datum:
    """A moment as text, by a pattern of `strftime`."""
    return written(cut(pa.timestamp("us", moment.type.tz), moment), pattern.as_py()).cast(type)


def epoch(type: pa.DataType, moment: Datum) -> Datum:
    """Seconds since 1970."""
    return lift(lambda a: a / _SECOND, type, _plain(moment))


def epoch_ms(type: pa.DataType, moment: Datum) -> Datum:
    """Milliseconds since 1970, rounded."""
    return lift(lambda a: np.floor_divide(a + 500, 1_000), type, _plain(moment))


def from_seconds(type: pa.DataType, seconds: Datum) -> Datum:
    """A moment so many seconds after 1970."""
    with np.errstate(all="ignore"):
        exact = np.rint(values(seconds) * _SECOND)
    inside = np.asarray(np.abs(exact) < 2.0**63)
    microseconds = lift(lambda _: np.where(inside, exact, 0).astype(np.int64), pa.timestamp("us"), seconds, ok=inside)
    return microseconds.cast(type)


def from_ms(type: pa.DataType, milliseconds: Datum) -> Datum:
    """A moment so many milliseconds after 1970."""
    limit = (2**63 - 1) // 1_000
    numbers = cast(pa.int64(), milliseconds)
    inside = pc.and_(pc.less_equal(numbers, limit), pc.greater_equal(numbers, -limit))
    return restore(pc.multiply(pc.if_else(inside, numbers, pa.scalar(None, pa.int64())), 1_000), type)


_MOST_YEARS = 6_000_000
"""Further from 1 no date is that DATE has."""


def date_of(type: pa.DataType, year: Datum, month: Datum, day: Datum) -> Datum:
    """The date of a year, a month and a day; NULL where there is none."""
    y, m, d = (values(number) for number in (year, month, day))
    known = (np.abs(y) <= _MOST_YEARS) & (m >= 1) & (m <= 12) & (d >= 1)
    months = (12 * (np.where(known, y, 1970) - 1970) + np.where(known, m, 1) - 1).astype("datetime64[M]")
    first, last = months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]") - 1
    found = first + np.where(known, d - 1, 0)
    count = (found - np.datetime64(0, "D")).astype(np.int64)
    known, days = known & (np.abs(count) < 2**31 - 1), count.astype(np.int32)
    return lift(lambda *_: days, type, year, month, day, ok=np.asarray(known & (found <= last)))


def last_day(type: pa.DataType, moment: Datum) -> Datum:
    """The last day of the month of a moment."""
    within, cycles = folded(_plain(moment))
    next_month = unfolded(pc.ceil_temporal(within, unit="month", ceil_is_strictly_greater=True), cycles)
    return cast(type, lift(lambda a: a - 1, pa.timestamp("us"), next_month))


def name_of(pattern: str) -> Callable[..., Datum]:
    """The kernel of DAYNAME or MONTHNAME."""
    return lambda type, moment: written(_plain(moment), pattern, endless=False).cast(type)
