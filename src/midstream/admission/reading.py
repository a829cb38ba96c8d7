"""Values read as their stream declares them, and the event times of rows; what cannot be read has a reason."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.admission import iso_8601
from midstream.admission.iso_8601 import is_read, never
from midstream.admission.mixed import Mixed, read_of, reasons_of
from midstream.model.columns_of_files import AlikeColumns, respelled
from midstream.model.errors import InputError
from midstream.model.python_values import python_values
from midstream.model.schema import TIME_UNITS, StreamSchema, has_texts, is_uuid, plain_type, uuids_of
from midstream.model.words import rough_span_text, span_text
from midstream.runtime.watermark import LAST_TIME
from midstream.state.keys import band_codes

_WHOLE = pa.decimal128(38, 0)
_WITHOUT_GAPS = {pa.float32(): 1 << 24, pa.float64(): 1 << 53}
"""Up to where a float has all whole numbers, which is as far as Arrow casts to it."""

_TRUTH = r"(?i)^(true|false|0|1)$"
_FLOAT = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan(\(\w*\))?)$"
_DECIMAL = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"

_PARTS = r"^[+-]?0*(?P<whole>\d*)\.?(?P<part>\d*?)0*(?:[eE](?P<power>[+-]?\d{1,6}))?$"
"""A number without the zeros at its ends that count for nothing."""


def surely_unreadable(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Tell which values no cast to a type takes, as booleans; False where that is not known, and of NULL.

    It is known of texts for numbers, truth, days and times, of floats for integers, and of integers for integers and
    floats; not of rare texts, such as those by week or day of the year that are no times.

    >>> surely_unreadable(pa.array(["7", "x", None, "99999999999999999999"]), pa.int64()).to_pylist()
    [False, True, False, True]
    """
    if pt.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pt.is_string(values.type) or pt.is_large_string(values.type):
        found = _texts(values, kind)
    elif pt.is_integer(kind) and pt.is_floating(values.type):
        whole = pc.cast(pc.cast(values, kind, safe=False), pa.float64(), safe=False)
        found = pc.not_equal(pc.cast(values, pa.float64()), whole)
    elif pt.is_integer(values.type) and (pt.is_integer(kind) or kind in _WITHOUT_GAPS):
        found = _beyond(pc.cast(values, _WHOLE), kind)
    else:
        found = None
    return pc.fill_null(found, False) if found is not None else pa.repeat(pa.scalar(False), len(values))


def _texts(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if pt.is_integer(kind):
        return _no_integers(texts, kind)
    if pt.is_floating(kind):
        return _unlike(texts, _FLOAT)
    if pt.is_decimal(kind):
        return pc.or_(_unlike(texts, _DECIMAL), _too_long(texts, kind))
    if pt.is_boolean(kind):
        return _unlike(texts, _TRUTH)
    return never(texts, kind) if is_read(kind) else None


def _unlike(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.invert(pc.match_substring_regex(texts, pattern))


def _no_integers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    # Neither decimal digits of a number within the type, nor 0x and no more digits than it has.
    sign = "-?" if pt.is_signed_integer(kind) else ""
    short = pc.replace_substring_regex(texts, r"^(-?)0+(\d)", r"\1\2")
    decimal = pc.match_substring_regex(short, rf"^{sign}\d{{1,20}}$")
    beyond = pc.fill_null(_beyond(pc.cast(pc.if_else(decimal, short, None), _WHOLE), kind), True)
    return pc.and_(beyond, _unlike(texts, rf"^0[xX][0-9a-fA-F]{{1,{kind.bit_width // 4}}}$"))


def _beyond(whole: pa.Array, kind: pa.DataType) -> pa.Array:
    # A float has whole numbers without gaps up to a limit.
    if pt.is_floating(kind):
        most = _WITHOUT_GAPS[kind]
        least = -most
    else:
        signed = pt.is_signed_integer(kind)
        most = (1 << (kind.bit_width - signed)) - 1
        least = -most - 1 if signed else 0
    return pc.or_(pc.less(whole, pa.scalar(least, _WHOLE)), pc.greater(whole, pa.scalar(most, _WHOLE)))


def _too_long(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    # False of other texts than numbers.
    found = pc.extract_regex(texts, _PARTS)
    whole, part, power = (pc.fill_null(pc.struct_field(found, name), "") for name in ("whole", "part", "power"))
    moved = _counts(pc.cast(pc.replace_substring_regex(power, r"^\+?(-?)(\d*)$", r"\10\2"), pa.int64()))
    before, after = _length(whole), _length(part)
    before = np.where(before > 0, before, _length(pc.utf8_ltrim(part, "0")) - after) + moved
    after = np.where(after > 0, after, _length(pc.utf8_rtrim(whole, "0")) - _length(whole)) - moved
    is_zero = (_length(whole) == 0) & (_length(part) == 0)
    return pa.array(~is_zero & ((before > kind.precision - kind.scale) | (after > kind.scale)))


def _length(texts: pa.Array) -> npt.NDArray[np.int64]:
    return _counts(pc.utf8_length(texts))


def _counts(numbers: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(numbers, np.int64)


_SHOWN = 80
_WITH_POINT = re.compile(r"-?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d{1,3})?", re.ASCII)
"""A number that is written with a point or a power of ten."""
_REFUSALS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


@dataclass(frozen=True)
class Reading:
    """Rows as their stream declares them.

    `times` are the event times in microseconds, int64, NULL for a row that cannot be read; `reasons` says of such a
    row, by its position, why.
    """

    columns: Mapping[str, pa.Array]
    times: pa.Array
    reasons: Mapping[int, str]


def read_rows(schema: StreamSchema, rows: pa.RecordBatch, names: Collection[str] | None = None) -> Reading:
    """Read rows as declared: the columns of `names`, the timestamp's among them, or all.

    A row that has a value which is none of the declared type, or no event time, cannot be read; of several reasons
    the first column's counts.

    >>> stream = StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts")
    >>> reading = read_rows(stream, pa.RecordBatch.from_pydict({"k": ["1", "x"], "ts": ["1970-01-01"] * 2}))
    >>> reading.columns["k"].to_pylist(), reading.times.to_pylist(), reading.reasons
    ([1, None], [0, None], {1: "column 'k': cannot read 'x' as int64"})
    """
    return read_in(schema, rows, ways_of(schema, rows.schema, names))


Way = tuple[str, int, pa.DataType | None, pa.Field | None]
"""How a column is read: its name, its place in the rows, and the type it is seen as or the field it is read as; neither
where it comes as it is declared.
"""


def ways_of(schema: StreamSchema, given: pa.Schema, names: Collection[str] | None = None) -> tuple[Way, ...]:
    """Choose how the columns of `names`, or all, are read in rows of this schema."""
    found: list[Way] = []
    for field in schema.columns:
        if names is None or field.name in names:
            kind, place = given.field(field.name).type, given.get_field_index(field.name)
            as_it_is, seen = kind == field.type and not is_uuid(field), _is_seen_as(kind, field.type)
            found.append((field.name, place, field.type if seen else None, None if as_it_is or seen else field))
    return tuple(found)


def read_in(schema: StreamSchema, rows: pa.RecordBatch, ways: Iterable[Way]) -> Reading:
    """Read rows as declared, each column in its way."""
    reasons: dict[int, str] = {}
    columns: dict[str, pa.Array] = {}
    for name, place, seen_as, read_by in ways:
        column = rows.column(place)
        if seen_as is not None:
            column = column.view(seen_as)
        columns[name] = column if read_by is None else read_as(column, read_by, reasons)
    for field in schema.with_texts:
        if field.name in columns and not is_whole(columns[field.name]):
            columns[field.name] = read_as(columns[field.name], field, reasons)
    times = _times(columns[schema.timestamp], schema.timestamp, schema.time_unit, reasons)
    if reasons:
        unread = np.zeros(len(times), np.bool_)
        unread[list(reasons)] = True
        times = pc.if_else(pa.array(unread), None, times)
    return Reading(columns, times, reasons)


def is_whole(texts: pa.Array) -> bool:
    """Return whether all texts are UTF-8: Spark, and files of older writers, bring others as texts, which no chunk
    takes."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def whole_or_null(values: pa.Array) -> pa.Array:
    """Replace values that have texts that are not UTF-8 by NULL."""
    if not has_texts(values.type) or is_whole(values):
        return values
    return read_as(values, pa.field("", values.type), {})


def reasons_of_texts(columns: Mapping[str, pa.Array]) -> dict[int, str]:
    """Explain, by position, why rows with texts that are not UTF-8 cannot be read."""
    reasons: dict[int, str] = {}
    for name, values in columns.items():
        if has_texts(values.type) and not is_whole(values):
            read_as(values, pa.field(name, values.type), reasons)
    return reasons


def never_fails(given: pa.DataType, declared: pa.DataType) -> bool:
    """Return whether every value of a type is one of the declared type, and a plain cast finds it.

    >>> never_fails(pa.int32(), pa.int64()), never_fails(pa.string(), pa.int64())
    (True, False)
    """
    if given == declared or pt.is_null(given):
        return True
    if pt.is_timestamp(given) and pt.is_timestamp(declared):
        return bool(given.unit == declared.unit)
    signed = pt.is_signed_integer(given) and pt.is_signed_integer(declared)
    return bool(signed and given.bit_width <= declared.bit_width)


def null_time(timestamp: str) -> str:
    """Write the reason of a row whose timestamp is NULL."""
    return f"timestamp column {timestamp!r} is NULL"


def unlike(text: str, field: pa.Field) -> str:
    """Write the reason of a row with a value, shown by its text, that is none of its column's type."""
    return f"column {field.name!r}: cannot read {text[:_SHOWN]!r} as {field.type}"


def far_time(stream: Timed, word: int, ceiling: int) -> str:
    """Write the reason of a row whose event time, in microseconds, cannot be used.

    It is beyond what a window can be added to, or too far ahead of the rows before it: above the `ceiling`.
    """
    if stream.max_ahead is None or not ceiling < word <= LAST_TIME:
        return f"timestamp column {stream.timestamp!r}: {word} us are beyond all event times"
    ahead = rough_span_text((word - ceiling + stream.max_ahead) / 1e6)
    allowed = span_text(stream.max_ahead)
    return f"timestamp column {stream.timestamp!r}: ahead by {ahead} of all rows before it, and max_ahead is {allowed}"


class Timed(Protocol):
    """A stream as far as its event time goes."""

    @property
    def timestamp(self) -> str:
        """The column of the event time."""

    @property
    def max_ahead(self) -> int | None:
        """How far ahead a row may be, in microseconds."""


def can_be_time(kind: pa.DataType) -> bool:
    """Return whether event times can be read from values of a type."""
    return bool(pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_integer(kind) or _is_text(kind))


def read_as(values: pa.Array, field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    """Read values as their column is declared; others become NULL, with a reason by their position."""
    if isinstance(values.type, Mixed):
        for row, reason in reasons_of(values).items():
            reasons.setdefault(row, reason)
        return read_of(values)
    if pt.is_run_end_encoded(values.type):
        values = pc.run_end_decode(values)
    if is_uuid(field):
        return _uuids(values, field, reasons)
    if pt.is_dictionary(values.type) and not pt.is_dictionary(field.type):
        values = values.dictionary_decode()
    if pt.is_string_view(values.type) or pt.is_binary_view(values.type):
        values = values.cast(plain_type(values.type))  # Arrow takes no rows of views.
    if pt.is_integer(values.type) and (pt.is_timestamp(field.type) or pt.is_date(field.type)):
        return _not_guessed(values, field, reasons)
    if _is_seen_as(values.type, field.type):
        return values.view(field.type)
    if pt.is_nested(values.type):
        values = _with_own_fields(values, field, reasons)
    return _cast(values, field, reasons)


def _with_own_fields(values: pa.Array, field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    # NULL, with a reason, where a struct has none of the declared fields.
    try:
        found = respelled(values, field.type)
        foreign = _foreign(found, field.type)
    except AlikeColumns:
        found, foreign = values, values.is_valid().to_numpy(zero_copy_only=False)
    if not foreign.any():
        return found
    rows = np.flatnonzero(foreign)
    for row, value in zip(rows.tolist(), python_values(values.take(pa.array(rows))), strict=True):
        reasons.setdefault(row, unlike(str(value), field))
    return found.take(pa.array(np.arange(len(found)), mask=foreign))


def _foreign(values: pa.Array, declared: pa.DataType) -> npt.NDArray[np.bool_]:
    # Such a struct has something in other fields, and nothing in those that are declared.
    found = np.zeros(len(values), np.bool_)
    if pt.is_struct(values.type) and pt.is_struct(declared):
        names = {part.name for part in declared}
        parts = dict(zip([part.name for part in values.type], values.flatten(), strict=True))
        given = {name: part.is_valid().to_numpy(zero_copy_only=False) for name, part in parts.items()}
        others = [valid for name, valid in given.items() if name not in names]
        if others:
            found = np.any(others, axis=0)
            for name in names & given.keys():
                found = found & ~given[name]
        for name in names & parts.keys():
            if pt.is_nested(parts[name].type):
                found = found | _foreign(parts[name], declared.field(name).type)
    elif _is_list(values.type) and _is_list(declared) and pt.is_nested(values.type.value_type):
        owners = np.asarray(pc.list_parent_indices(values))
        found[owners[_foreign(values.flatten(), declared.value_type)]] = True
    return found


def _is_list(kind: pa.DataType) -> bool:
    return bool(pt.is_list(kind) or pt.is_large_list(kind))


def _uuids(values: pa.Array, field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    # From their bytes or from texts, in small letters with hyphens; NULL, with a reason, for others.
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pt.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pt.is_fixed_size_binary(values.type) or pt.is_binary(values.type) or pt.is_large_binary(values.type):
        values = pa.array([None if one is None else one.hex() for one in values.to_pylist()], pa.string())
    found = uuids_of(whole_or_null(_as_type(values, pa.string())))
    wrong = np.flatnonzero(
        values.is_valid().to_numpy(zero_copy_only=False) & ~found.is_valid().to_numpy(zero_copy_only=False)
    )
    for row, value in zip(wrong.tolist(), python_values(values.take(pa.array(wrong))), strict=True):
        reasons.setdefault(row, f"column {field.name!r}: {str(value)[:_SHOWN]!r} is not a UUID")
    return found


def _is_seen_as(given: pa.DataType, declared: pa.DataType) -> bool:
    # Times of another zone are stored alike.
    times = given != declared and pt.is_timestamp(given) and pt.is_timestamp(declared)
    return bool(times and given.unit == declared.unit)


def _not_guessed(values: pa.Array, field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    # An integer where a time is declared: nobody knows what it counts.
    for row in np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)).tolist():
        shown = f"column {field.name!r}: {values[row].as_py()} is an integer, and no {field.type}"
        reasons.setdefault(row, f"{shown}; declare it as BIGINT with a unit, or push times")
    return pa.nulls(len(values), field.type)


def _cast(values: pa.Array, field: pa.Field, reasons: dict[int, str]) -> pa.Array:
    # NULL, with a reason, where a value is none of the type.
    try:
        return _as_type(values, field.type)
    except _REFUSALS:
        read, rows = _read_in_part(values, field.type)
        whole, by_text = dict[int, int](), _is_text(values.type) and pt.is_integer(field.type)
        for row, value in zip(rows.tolist(), python_values(values.take(pa.array(rows))), strict=True):
            number = _whole_number(str(value), field.type) if by_text else None
            if number is None:
                reasons.setdefault(row, unlike(str(value), field))
            else:
                whole[row] = number
        if not whole:
            return read
        mask = np.zeros(len(read), np.bool_)
        mask[list(whole)] = True
        return pc.replace_with_mask(read, mask, pa.array(whole.values(), field.type))


def _whole_number(text: str, kind: pa.DataType) -> int | None:
    # Arrow takes the float 1.0 for an integer, but not the text of it, which JSON writers give.
    if not _WITH_POINT.fullmatch(text):
        return None
    number, signed = Decimal(text), pt.is_signed_integer(kind)
    most = 1 << (kind.bit_width - signed)
    inside = -most * signed <= number < most
    return int(number) if inside and number == number.to_integral_value() else None


def _read_in_part(values: pa.Array, kind: pa.DataType) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    # NULL where a value cannot be cast, and the rows of such values.
    try:
        _as_type(values.slice(0, 0), kind)
    except pa.ArrowNotImplementedError:  # No value of the one type is ever cast to the other, nor is NULL.
        return pa.nulls(len(values), kind), np.arange(len(values))
    try:
        refused = np.asarray(surely_unreadable(values, kind))
    except pa.ArrowInvalid:
        # No regular expression is asked of a damaged text, so that each of them must be found alone.
        refused = np.zeros(len(values), np.bool_)
    others = values.take(pa.array(np.arange(len(values)), mask=refused))
    read: list[pa.Array] = []
    refused[_halved(others, kind, 0, read)] = True
    return pa.concat_arrays(read), np.flatnonzero(refused)


def _halved(values: pa.Array, kind: pa.DataType, offset: int, read: list[pa.Array]) -> list[int]:
    # Halved until the rows at fault are alone.
    try:
        read.append(_as_type(values, kind))
        return []
    except _REFUSALS:
        half = len(values) // 2
        if not half:
            read.append(pa.nulls(1, kind))
            return [offset]
        front = _halved(values.slice(0, half), kind, offset, read)
        return front + _halved(values.slice(half), kind, offset + half, read)


def _as_type(values: pa.Array, kind: pa.DataType) -> pa.Array:
    # Raises Arrow's error where a value is none of the type.
    if pt.is_nested(values.type):
        values = _own(values)
    if not (_is_text(values.type) and iso_8601.is_read(kind)):
        # Arrow's casts to dates and to times of a day do not look whether what is found is one.
        if pt.is_date(kind) and (pt.is_timestamp(values.type) or pt.is_date64(values.type)):
            zone = values.type.tz if pt.is_timestamp(values.type) else None
            values = pc.cast(values, options=pc.CastOptions(pa.timestamp("us", zone), allow_time_truncate=True))
        found = pc.cast(values, options=pc.CastOptions(kind, allow_time_truncate=True))
        if pt.is_time(kind) or has_texts(kind):
            found.validate(full=True)
        return found
    return iso_8601.read(values, kind)


def _own(values: pa.Array) -> pa.Array:
    # Arrow casts what other rows, and NULLs, have below, too, and fails over it.
    values = values.take(pa.array(np.arange(len(values))))
    if not pt.is_struct(values.type) or not values.type.num_fields:
        return values
    parts = [_own(part) if pt.is_nested(part.type) else part for part in values.flatten()]
    return pa.StructArray.from_arrays(parts, fields=values.type.fields, mask=values.is_null())


def _times(column: pa.Array, name: str, unit: str, reasons: dict[int, str]) -> pa.Array:
    if pt.is_timestamp(column.type) and column.type.unit == "us" and not column.null_count:
        return column.view(pa.int64())
    if not can_be_time(column.type):
        raise InputError(
            f"column {name!r} of type {column.type} cannot be a timestamp",
            place=f"timestamp column {name}",
            remedy="use a TIMESTAMP, a DATE, a VARCHAR that holds one of these, or an integer with a unit",
        )
    if not (pt.is_integer(column.type) or (pt.is_timestamp(column.type) and column.type.unit in ("us", "ns"))):
        column = _cast(column, pa.field(name, pa.timestamp("us")), reasons)
    if column.null_count:
        for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            reasons.setdefault(row, null_time(name))
    words = band_codes(column)[0]
    if pt.is_integer(column.type) and unit != "us":
        words, beyond = in_microseconds(np.asarray(words, np.int64), unit)
        for row in np.flatnonzero(beyond).tolist():
            shown = f"{column[row].as_py()} {unit}"
            reasons.setdefault(row, f"timestamp column {name!r}: {shown} are beyond all event times")
    return pa.array(words)


def in_microseconds(words: npt.NDArray[np.int64], unit: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Convert counts of a unit to microseconds, nanoseconds cut off, and tell which of them are too great.

    >>> in_microseconds(np.array([-1, 2**62]), "ms")[0].tolist()[0], in_microseconds(np.array([-1]), "ns")[0].tolist()
    (-1000, [-1])
    """
    if unit == "ns":
        return words // 1_000, np.zeros(len(words), np.bool_)
    factor = TIME_UNITS[unit] // 1_000
    most = np.iinfo(np.int64).max // factor
    beyond = (words > most) | (words < -most)
    return np.where(beyond, 0, words) * factor, beyond


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))
