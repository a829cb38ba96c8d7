"""The types of the language: families of Arrow types, common types, and SQL's names for them."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pyarrow.types as is_
from sqlglot import exp

from midstream.model.errors import LanguageError

Family = Literal[
    "null", "boolean", "integer", "decimal", "float", "text", "binary", "date", "time", "timestamp", "duration", "other"
]

BOOLEAN, DOUBLE, INT64, TEXT = pa.bool_(), pa.float64(), pa.int64(), pa.string()
TIMESTAMP, TIMESTAMPTZ, DURATION = pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("us")
WIDEST = pa.decimal128(38, 0)
"""The widest type of whole numbers."""
NUMBERS: frozenset[str] = frozenset({"integer", "decimal", "float"})
TIMES: frozenset[str] = frozenset({"date", "timestamp"})

NEVER_CAST: dict[str, frozenset[str]] = {
    "boolean": TIMES | {"time", "duration", "binary"},
    "integer": frozenset({"binary"}),
    "decimal": TIMES | {"time", "duration", "binary"},
    "float": TIMES | {"time", "duration", "binary"},
    "binary": TIMES | {"time", "duration"},
    "date": frozenset({"boolean", "decimal", "float", "binary", "time"}),
    "time": TIMES | {"boolean", "decimal", "float", "binary", "duration"},
    "timestamp": frozenset({"boolean", "decimal", "float", "binary"}),
    "duration": frozenset({"boolean", "decimal", "float", "binary", "time"}),
}
"""By family to which others no value of it can be cast."""

_KINDS: dict[Family, tuple[pa.DataType, ...]] = {
    "null": (pa.null(),),
    "boolean": (BOOLEAN,),
    "integer": (
        *(pa.int8(), pa.int16(), pa.int32(), INT64),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    ),
    "decimal": (pa.decimal32(1), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1)),
    "float": (pa.float16(), pa.float32(), DOUBLE),
    "text": (TEXT, pa.large_string(), pa.string_view()),
    "binary": (pa.binary(), pa.large_binary(), pa.binary(1), pa.binary_view()),
    "date": (pa.date32(), pa.date64()),
    "time": (pa.time32("s"), pa.time64("us")),
    "timestamp": (TIMESTAMP,),
    "duration": (DURATION,),
}
_FAMILIES: dict[int, Family] = {kind.id: name for name, kinds in _KINDS.items() for kind in kinds}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_UNITS = ("s", "ms", "us", "ns")
_DECIMALS = "write DECIMAL(p, s) with p from 1 to 38, and s from 0 to p"


def family(type: pa.DataType) -> Family:
    """The family of a type; a dictionary-encoded column belongs to the family of its values.

    >>> family(pa.int16()), family(pa.dictionary(pa.int8(), pa.string())), family(pa.list_(pa.int8()))
    ('integer', 'text', 'other')
    """
    known = _FAMILIES.get(type.id)
    if known is None:
        return family(type.value_type) if is_.is_dictionary(type) else "other"
    return known


def working_type(type: pa.DataType) -> pa.DataType:
    """The type that the functions of the language work on where a column has `type`: plain and of usual width.

    >>> working_type(pa.dictionary(pa.int8(), pa.string())), working_type(pa.float16()), working_type(pa.date64())
    (DataType(string), DataType(float), DataType(date32[day]))
    """
    kind = family(type)
    plain = type.value_type if is_.is_dictionary(type) else type
    if kind == "text":
        return pa.large_string() if is_.is_large_string(plain) else TEXT
    if kind == "binary":
        return pa.large_binary() if is_.is_large_binary(plain) else pa.binary()
    if kind == "date":
        return pa.date32()
    if kind == "time":
        return pa.time64("us")
    if kind == "decimal":
        return pa.decimal128(plain.precision, plain.scale) if plain.precision <= 38 else plain
    if kind == "timestamp" and plain.unit not in ("us", "ns"):
        return pa.timestamp("us", plain.tz)
    if kind == "duration":
        return DURATION
    return pa.float32() if is_.is_float16(plain) else plain


def decimal_of(type: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integer or decimal type.

    >>> decimal_of(pa.int64()), decimal_of(pa.uint64())
    (Decimal128Type(decimal128(19, 0)), Decimal128Type(decimal128(20, 0)))
    """
    if family(type) == "decimal":
        return type
    return pa.decimal128(20 if is_.is_uint64(type) else _DIGITS[type.bit_width], 0)


def decimal(precision: int, scale: int) -> pa.DataType:
    """A decimal of at most 38 digits, as DuckDB and Spark cap it.

    >>> decimal(45, 2)
    Decimal128Type(decimal128(38, 2))
    """
    return pa.decimal128(min(max(precision, scale, 1), 38), scale)


def common(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which values of both types compare; None if they do not.

    >>> common(pa.int32(), pa.float64()), common(pa.date32(), pa.timestamp("us")), common(pa.int64(), pa.string())
    (DataType(double), TimestampType(timestamp[us]), None)
    """
    left, right = working_type(left), working_type(right)
    if left == right:
        return left
    kinds = {family(left), family(right)}
    if "null" in kinds:
        return right if family(left) == "null" else left
    if kinds <= {"integer"}:
        return _common_integer(left, right)
    if kinds <= {"integer", "decimal"}:
        a, b = decimal_of(left), decimal_of(right)
        scale = max(a.scale, b.scale)
        return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    if kinds <= NUMBERS:
        # As DuckDB: an exact number beside a FLOAT becomes a FLOAT.
        return DOUBLE if DOUBLE in (left, right) else pa.float32()
    if kinds == {"text"}:
        return pa.large_string()
    if kinds == {"binary"}:
        return pa.large_binary()
    if kinds <= TIMES:
        stamps = [t for t in (left, right) if family(t) == "timestamp"]
        unit = _UNITS[max(_UNITS.index(t.unit) for t in stamps)]
        return pa.timestamp(unit, "UTC" if any(t.tz for t in stamps) else None)
    return None


def _common_integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if is_.is_signed_integer(left) == is_.is_signed_integer(right):
        return left if left.bit_width >= right.bit_width else right
    signed, unsigned = (left, right) if is_.is_signed_integer(left) else (right, left)
    if signed.bit_width > unsigned.bit_width:
        return signed
    wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}
    return wider.get(unsigned.bit_width, pa.decimal128(20, 0))


_NAMES: dict[str, pa.DataType] = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "MEDIUMINT": pa.int32(),
    "INT": pa.int32(),
    "BIGINT": INT64,
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINT": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "INT128": pa.decimal128(38, 0),
    "FLOAT": pa.float32(),
    "DOUBLE": DOUBLE,
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMPTZ,
    "TIMESTAMPTZ": TIMESTAMPTZ,
    "DATETIME": TIMESTAMP,
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
    "INTERVAL": DURATION,
    **dict.fromkeys(("CHAR", "NCHAR", "VARCHAR", "NVARCHAR", "TEXT", "NAME", "UUID"), TEXT),
    **dict.fromkeys(("BINARY", "VARBINARY", "BLOB", "BYTEA"), pa.binary()),
}


def from_sql(node: exp.DataType) -> pa.DataType:
    """The Arrow type of an SQL type; raises LanguageError for a type that is not known.

    >>> from_sql(exp.DataType.build("DECIMAL(10, 2)", dialect="duckdb"))
    Decimal128Type(decimal128(10, 2))
    """
    kind = node.this.name if isinstance(node.this, exp.DType) else str(node.this)
    inner = node.expressions
    if kind == "DECIMAL":
        written = [parameter.name for parameter in inner]
        if not all(digits.isdecimal() for digits in written):
            raise LanguageError(f"DECIMAL({', '.join(written)}) does not exist", remedy=_DECIMALS)
        digits = [int(number) for number in written] or [18, 3]
        precision, scale = (digits[0], digits[1] if len(digits) > 1 else 0)
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise LanguageError(f"DECIMAL({precision}, {scale}) does not exist", remedy=_DECIMALS)
        return pa.decimal128(precision, scale)
    if kind in ("ARRAY", "LIST") and len(inner) == 1:
        return pa.list_(from_sql(inner[0]))
    if kind == "MAP" and len(inner) == 2:
        return pa.map_(from_sql(inner[0]), from_sql(inner[1]))
    if kind == "STRUCT" and inner and all(isinstance(part, exp.ColumnDef) for part in inner):
        return pa.struct([pa.field(part.name, from_sql(part.args["kind"])) for part in inner])
    if kind in _NAMES:
        return _NAMES[kind]
    raise LanguageError(
        f"unknown type {node.sql(DIALECT_OF_NAMES)}",
        remedy="use BOOLEAN, TINYINT to BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), VARCHAR, BINARY, DATE, TIME, TIMESTAMP, "
        "ARRAY<...>, MAP<...> or STRUCT<...>",
    )


DIALECT_OF_NAMES = "duckdb"
