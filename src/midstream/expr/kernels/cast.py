"""CAST over columns: what cannot be cast is NULL."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from midstream.expr.kernels.datum import Datum, Values, build, by_row, is_scalar, lift, restore, storage, values
from midstream.expr.kernels.exact import EXACT, HALF_AWAY, fitted, rounded, scale_of, to_exact
from midstream.expr.kernels.strftime import folded, written
from midstream.expr.types import TIMESTAMP, family

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400
_USUAL_DAYS = (-719_162, 2_932_897)
"""The years 1 to 9999."""
_DAYS_OF_CYCLE = 146_097
_EXACT_DIGITS = 15
_DATE_LENGTH = len("2013-01-01")
_LEAST_ALIKE, _MOST_ALIKE = 1e-4, 1e10


def cast(type: pa.DataType, datum: Datum) -> Datum:
    """A datum as another type, by the rules of DuckDB: floats round half to even, decimals and timestamps half away
    from zero.
    """
    if datum.type == type:
        return datum
    if is_.is_dictionary(datum.type):
        datum = datum.cast(datum.type.value_type)
    source, target = family(datum.type), family(type)
    if source == "null":
        return _nothing(type, datum)
    if source == "timestamp" and target in ("timestamp", "date"):
        return _rounded_time(type, datum)
    if source in ("timestamp", "date", "duration") and target in ("timestamp", "date", "duration"):
        return cut(type, datum)
    if source == "text" and target == "timestamp" and type.unit in ("s", "ms"):
        return _rounded_time(type, cast(pa.timestamp("us", type.tz), datum))
    if target == "text" and source in ("timestamp", "time"):
        return _moment_text(type, datum)
    if target == "text" and source == "date":
        return _date_text(type, datum)
    if target == "text" and source == "float":
        return _float_text(datum).cast(type)
    if target == "text" and source == "decimal":
        return _decimal_text(type, datum)
    if datum.type == pa.float64() and type == pa.float32():
        return _narrowed(datum)
    if source == "float" and target == "integer":
        return _float_to_integer(type, datum)
    if source in ("integer", "decimal") and target in ("integer", "decimal"):
        return to_exact(type, datum)
    if (source, target) == ("decimal", "boolean"):
        return pc.not_equal(datum, pa.scalar(0, datum.type))
    if (source, target) == ("boolean", "decimal"):
        return to_exact(type, pc.cast(datum, pa.int8()))
    if datum.type == pa.int64() and target == "time":
        number = values(datum)
        return lift(lambda a: a, type, datum, ok=np.asarray((number >= 0) & (number < _DAY * _PER_SECOND[type.unit])))
    if source == "float" and target == "decimal":
        return _float_to_decimal(type, datum)
    if source == "text" and target in ("integer", "decimal"):
        return _text_to_exact(type, datum)
    if source == "decimal" and target == "float":
        return _decimal_to_float(type, datum)
    return _tolerant(type, datum)


def _moment_text(type: pa.DataType, datum: Datum) -> Datum:
    """Return a timestamp or a time as DuckDB writes it: no trailing zeros, a zone as `+00`."""
    if folded(datum)[1] is not None:
        return _far_moment_text(datum).cast(type)
    for pattern, shorter in ((r"\.0+(Z?)$", r"\1"), (r"(\.\d*?[1-9])0+(Z?)$", r"\1\2"), (r"Z$", "+00")):
        datum = pc.replace_substring_regex(_strict(type, datum), pattern, shorter)
    return datum.cast(type)


def _far_moment_text(datum: Datum) -> Datum:
    """Timestamps of which some are of years before 1 or after 9999: DuckDB counts the former back, with `(BC)`."""
    year, days = part("year")(pa.int64(), datum), written(datum, "-%m-%d")
    after = pc.greater(year, 0)
    number = pc.cast(pc.if_else(after, year, pc.subtract(1, year)), pa.string())
    time = pc.replace_substring_regex(written(datum, "%H:%M:%S.%f"), r"\.?0*$", "")
    time = pc.if_else(pc.match_substring_regex(time, r"^\d+:\d+:\d+"), time, written(datum, "%H:%M:%S"))
    era, zone = pc.if_else(after, " ", " (BC) "), "" if datum.type.tz is None else "+00"
    text = pc.binary_join_element_wise(pc.utf8_lpad(number, 4, "0"), days, era, time, zone, "")
    return pc.if_else(pc.match_substring(days, "infinity"), days, text)


def _date_text(type: pa.DataType, datum: Datum) -> Datum:
    """Return a date as DuckDB writes it, which counts the years before 1 back, with `(BC)`."""
    if not is_.is_date32(datum.type):
        datum = pc.cast(datum, pa.date32())
    days = values(datum).astype(np.int64)
    usual = (days >= _USUAL_DAYS[0]) & (days < _USUAL_DAYS[1])
    if np.all(usual):
        return _strict(type, datum)
    # The calendar is the same after 400 years, and Arrow's years have 16 bits.
    cycles = np.where(usual, 0, np.floor_divide(days, _DAYS_OF_CYCLE))
    back = lift(lambda a: a - cycles * _DAYS_OF_CYCLE, pa.date32(), datum)
    year = pc.add(pc.year(back), lift(lambda _: 400 * cycles, pa.int64(), datum))
    after = pc.greater(year, 0)
    number = pc.cast(pc.if_else(after, year, pc.subtract(1, year)), pa.string())
    era = pc.if_else(after, "", " (BC)")
    return pc.binary_join_element_wise(pc.utf8_lpad(number, 4, "0"), pc.strftime(back, "-%m-%d"), era, "").cast(type)


def _float_text(datum: Datum) -> Datum:
    """Return a float as DuckDB writes it: 1.0, and with an exponent from 1e+16 on and below 0.0001."""
    if is_scalar(datum):
        return _float_text(pa.array([datum.as_py()], datum.type))[0]
    shortest = pc.cast(datum, pa.string())
    text = pc.replace_substring_regex(shortest, r"^(-?\d+)$", r"\1.0")
    size = np.abs(values(datum).astype(np.float64))
    # These Arrow writes in another way than numpy, whose way is DuckDB's.
    other = np.isfinite(size) & (size != 0) & ((size < _LEAST_ALIKE) | (size >= _MOST_ALIKE))
    if not other.any():
        return text
    digits = pc.cast(shortest.filter(pa.array(other)), pa.float64()).to_numpy()
    return pc.replace_with_mask(text, pa.array(other), pa.array(digits.astype(str), pa.string()))


def _decimal_text(type: pa.DataType, datum: Datum) -> Datum:
    """Return a decimal as DuckDB writes it, with all of its places; Arrow writes small ones with an exponent."""
    if is_scalar(datum):
        return _decimal_text(type, pa.array([datum.as_py()], datum.type))[0]
    texts = pc.cast(datum, pa.string())
    small = pc.fill_null(pc.match_substring(texts, "E"), False)
    if pc.any(small).as_py():
        plain = [f"{number:f}" for number in datum.filter(small).to_pylist()]
        texts = pc.replace_with_mask(texts, small, pa.array(plain, pa.string()))
    return texts.cast(type)


def _nothing(type: pa.DataType, datum: Datum) -> Datum:
    return pa.scalar(None, type) if is_scalar(datum) else pa.nulls(len(datum), type)


def _strict(type: pa.DataType, datum: Datum) -> Datum:
    widening = family(type) == "float" and family(datum.type) in ("integer", "decimal", "float")
    return pc.cast(datum, type, safe=not widening)


def _tolerant(type: pa.DataType, datum: Datum) -> Datum:
    """Arrow's cast; after a failure, each different value by itself."""
    try:
        return _strict(type, datum)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    if family(datum.type) == "text" and (is_.is_date(type) or (is_.is_timestamp(type) and type.tz is None)):
        datum = pc.replace_substring_regex(datum, r"(:\d\d(?:\.\d+)?)(?:[Zz]|[+-]00(?::?00)?)$", r"\1")
        if is_.is_timestamp(type):
            return _tolerant_each(type, datum)
    return _each(_one, type, datum)


def _tolerant_each(type: pa.DataType, datum: Datum) -> Datum:
    """Arrow's cast once more, of texts that are in UTC without saying so."""
    try:
        return _strict(type, datum)
    except pa.ArrowInvalid:
        return _each(_one, type, datum)


def _each(function: Callable[[pa.DataType, pa.Scalar], pa.Scalar], type: pa.DataType, datum: Datum) -> Datum:
    if is_scalar(datum):
        return function(type, datum)
    codes = pc.dictionary_encode(datum)
    return pa.array([function(type, value) for value in codes.dictionary], type).take(codes.indices)


def _one(type: pa.DataType, value: pa.Scalar) -> pa.Scalar:
    """Return a single value that Arrow's cast may have refused; texts are read the way DuckDB reads them."""
    source, target = family(value.type), family(type)
    if source == "text" and value.is_valid and target not in ("binary", "text"):
        value = pa.scalar(value.as_py().strip(), value.type)
        if target == "boolean" and value.as_py().lower() in ("t", "f"):
            return pa.scalar(value.as_py().lower() == "t")
        if target == "date" and len(value.as_py()) > _DATE_LENGTH:
            return cut(type, _one(TIMESTAMP, value))
    try:
        return _strict(type, value)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if source == "text" and target == "timestamp" and type.tz is not None:
            return restore(storage(_one(pa.timestamp(type.unit), value)), type)  # Without an offset, as UTC.
        if source == "text" and target == "time":
            return by_row(datetime.time.fromisoformat, type, value)
        return pa.scalar(None, type)


def _per_day(type: pa.DataType) -> int:
    return 1 if is_.is_date32(type) else _PER_SECOND[type.unit] * _DAY


def _rounded_time(type: pa.DataType, datum: Datum) -> Datum:
    """Convert a timestamp to another unit, with halves rounded away from 1970, or to its day."""
    if is_.is_date(type):
        return cut(type, _rounded_time(TIMESTAMP, datum) if datum.type.unit == "ns" else datum)
    old, new = _per_day(datum.type), _per_day(type)
    if old <= new:
        return cut(type, datum)
    size = old // new

    def to_nearest(a: Values) -> Values:
        whole = np.floor_divide(a, size)
        over = a - whole * size
        nearest: Values = whole + np.where(a < 0, over > size // 2, over >= size // 2)
        return nearest

    return lift(to_nearest, type, datum)


def cut(type: pa.DataType, datum: Datum) -> Datum:
    """Between dates and timestamps of any unit and zone: UTC throughout, cut towards the past."""
    if is_.is_date64(datum.type):
        datum = pc.cast(datum, pa.date32())
    old, new = _per_day(datum.type), _per_day(type)
    if old == new:
        return restore(storage(datum), type)
    if old > new:
        return lift(lambda a: np.floor_divide(a, old // new), type, datum)
    factor = new // old
    limit = (2**63 - 1) // factor
    wide = storage(datum).cast(pa.int64())
    numbers = values(wide)
    return restore(lift(lambda a: a * factor, pa.int64(), wide, ok=np.asarray(np.abs(numbers) <= limit)), type)


def _float_to_integer(type: pa.DataType, datum: Datum) -> Datum:
    bounds = np.iinfo(type.to_pandas_dtype())
    numbers = np.rint(values(datum).astype(np.float64))
    ok = np.asarray((numbers >= float(bounds.min)) & (numbers < float(bounds.max) + (1 if bounds.bits < 64 else 0)))
    return lift(lambda _: np.where(ok, numbers, 0).astype(bounds.dtype), type, datum, ok=ok)


def _narrowed(datum: Datum) -> Datum:
    """Doubles as floats; those too great for one are NULL."""
    given = values(datum)
    with np.errstate(over="ignore"):
        ok = np.asarray(np.isfinite(given.astype(np.float32)) | ~np.isfinite(given))
    return lift(lambda a: a.astype(np.float32), pa.float32(), datum, ok=ok)


def _decimal_to_float(type: pa.DataType, datum: Datum) -> Datum:
    """Return the nearest double, or float: Arrow's own cast is off by a unit in the last place at times."""
    if is_scalar(datum):
        return pa.scalar(float(datum.as_py()) if datum.is_valid else None, pa.float64()).cast(type)
    if datum.type.scale == 0:
        try:
            return pc.cast(pc.cast(datum, pa.int64()), type, safe=False)
        except pa.ArrowInvalid:
            pass
    if not is_.is_decimal128(datum.type) or datum.type.precision > _EXACT_DIGITS:
        return pc.cast(pc.cast(pc.cast(datum, pa.string()), pa.float64()), type, safe=False)
    mask = None if not datum.null_count else pc.is_valid(datum).to_numpy(zero_copy_only=False)
    # So few digits are a whole number of a double, as is the power of ten: one division rounds once.
    words = np.frombuffer(datum.buffers()[1], np.int64)[::2][datum.offset : datum.offset + len(datum)]
    return build((words / 10.0**datum.type.scale).astype(type.to_pandas_dtype()), mask, type)


def _float_to_decimal(type: pa.DataType, datum: Datum) -> Datum:
    """The double times a power of ten, rounded half away from zero, as DuckDB does: exact only as far as doubles are.

    pyarrow's own cast rounds half to even, and has no other mode.
    """
    if is_scalar(datum):
        return _float_to_decimal(type, pa.array([datum.as_py()], datum.type))[0]
    scaled = pc.round(pc.multiply(datum.cast(pa.float64()), 10.0**type.scale), round_mode=HALF_AWAY)
    inside = pc.less(pc.abs(scaled), 10.0**type.precision)
    words = pc.cast(pc.if_else(inside, scaled, pa.scalar(None, pa.float64())), pa.decimal128(type.precision, 0))
    return words.view(type)


def _text_to_exact(type: pa.DataType, text: Datum) -> Datum:
    """Texts as integers or decimals, rounded half away from zero."""
    if family(type) == "integer":
        try:
            return pc.cast(text, type)
        except pa.ArrowInvalid:
            pass
    try:
        return _read_exact(type, text)
    except pa.ArrowInvalid:
        return _each(_one_exact, type, text)


def _read_exact(type: pa.DataType, text: Datum) -> Datum:
    # As many digits before the point as any type has, and the room that rounding takes.
    return fitted(type, rounded(pc.cast(pc.utf8_trim_whitespace(text), pa.decimal256(74, 36)), scale_of(type)))


def _one_exact(type: pa.DataType, text: pa.Scalar) -> pa.Scalar:
    """Return a single text: Python reads some that pyarrow does not, such as 1_000, and any number of digits."""
    if not text.is_valid:
        return pa.scalar(None, type)
    if family(type) == "integer":
        try:
            return pc.cast(pc.utf8_trim_whitespace(text), type)
        except pa.ArrowInvalid:
            pass
    try:
        number = decimal.Decimal(text.as_py())
        exact = EXACT.quantize(number, decimal.Decimal(1).scaleb(-scale_of(type))) if number.is_finite() else None
        return fitted(type, pa.scalar(exact, pa.decimal256(76, scale_of(type))))
    except (decimal.InvalidOperation, pa.ArrowInvalid):
        return pa.scalar(None, type)


def microseconds(type: pa.DataType, datum: Datum) -> Datum:
    """A date, timestamp or duration as a count of microseconds; timestamps and dates since 1970 in UTC."""
    if family(datum.type) == "duration":
        return storage(cut(pa.duration("us"), datum))
    return storage(cut(TIMESTAMP, datum))


def moment(type: pa.DataType, datum: Datum) -> Datum:
    """Microseconds since 1970 as a timestamp."""
    return datum.cast(type)


PARTS = ("year", "quarter", "month", "week", "day", "dayofweek", "dayofyear", "hour", "minute", "second")
"""The parts that EXTRACT knows; each is a function, too."""


def part(name: str) -> Callable[..., Datum]:
    """The kernel of YEAR, MONTH and so on; a timestamp with a zone is read in UTC."""
    functions = {"week": "iso_week", "dayofweek": "day_of_week", "dayofyear": "day_of_year"}

    def kernel(type: pa.DataType, datum: Datum) -> Datum:
        if is_.is_timestamp(datum.type):
            datum = restore(storage(datum), pa.timestamp(datum.type.unit))
        datum, cycles = folded(datum)
        if name == "dayofweek":
            return pc.day_of_week(datum, count_from_zero=True, week_start=7).cast(type)
        found = getattr(pc, functions.get(name, name))(datum).cast(type)
        return found if name != "year" or cycles is None else pc.add(found, pc.multiply(cycles, 400)).cast(type)

    return kernel
