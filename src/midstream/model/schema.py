"""What a stream looks like."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.model.codec import EncodedOnce
from midstream.model.errors import InputError, QueryError


def check_name(what: str, name: object) -> None:
    """Raise QueryError unless the name is a non-empty text.

    Folders, chunks and queries name it, and an empty one stands for all queries where there are settings of one.

    >>> check_name("stream", "my orders")
    """
    try:
        fine = isinstance(name, str) and bool(name.encode())
    except UnicodeEncodeError:  # Half of a pair of surrogates, which no file can have in its name.
        fine = False
    if not fine:
        raise QueryError(
            f"a {what} cannot be called {name!r}", place=f"the name of a {what}", remedy="use a string as the name"
        )


TIME_UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""What an integer timestamp may count since 1970, in nanoseconds."""

RESERVED = frozenset({"_ts", "_watermark", "_reason", "_number", "_lineage", "_step", "_serves"})
"""Names that midstream gives to columns of its own, which stand next to those of a stream."""


@dataclass(frozen=True, eq=False)
class StreamSchema(EncodedOnce):
    """A stream: its columns, which of them is the event time, and how much disorder it may have.

    The rows of a stream are pushed, or are the answers of the queries that it names in `answers_of`. `lateness` and
    `idle_timeout` are microseconds of event time; without an `idle_timeout` a silent stream holds the
    watermark forever. `unit` is what an integer timestamp counts since 1970; microseconds where there is none.

    >>> StreamSchema("A", pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))]), "ts").lateness
    0
    """

    name: str
    columns: pa.Schema
    timestamp: str
    lateness: int = 0
    idle_timeout: int | None = None
    unit: str | None = None
    answers_of: tuple[str, ...] = ()
    max_ahead: int | None = None  # microseconds a row may be ahead of all that came before; None for any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StreamSchema):
            return NotImplemented
        return self is other or (self._hash == other._hash and self._identity == other._identity)

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # Another process hashes otherwise.

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> tuple[object, ...]:
        # These are in the keys of what is compiled once, and Arrow is slow to hash or compare schemas.
        columns = pa.schema([field.remove_metadata() for field in self.columns]).serialize().to_pybytes()
        told = tuple((field.metadata or {}).get(b"midstream") for field in self.columns)
        return (columns, told, *(getattr(self, field.name) for field in fields(self) if field.name != "columns"))

    def __post_init__(self) -> None:
        columns = pa.schema(
            [uuid_field(f.name) if _holds_uuid(f) else f.with_type(plain_type(f.type)) for f in self.columns]
        )
        object.__setattr__(self, "columns", columns)
        self._check_timestamp()
        self._check_names()
        if self.max_ahead is not None and self.max_ahead <= 0:
            raise self._error(
                "max_ahead must be more than zero", "use a duration such as '1 day', or leave max_ahead out"
            )
        if self.lateness < 0 or (self.idle_timeout is not None and self.idle_timeout < 0):
            raise self._error("lateness and idle_timeout cannot be negative", "use a duration of zero or more")

    def _check_timestamp(self) -> None:
        names = self.columns.names
        if self.timestamp not in names:
            raise self._error(
                f"stream {self.name!r} has no timestamp column {self.timestamp!r}",
                f"name a column of the stream: {', '.join(names)}",
            )
        kind = self.columns.field(self.timestamp).type
        if not (pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_integer(kind) or pt.is_string(kind)):
            raise self._error(
                f"column {self.timestamp!r} of type {kind} cannot be a timestamp",
                "use a TIMESTAMP, a DATE, a VARCHAR that holds one of these, or an integer with a unit",
            )
        if self.unit is not None and (self.unit not in [*TIME_UNITS] or not pt.is_integer(kind)):
            raise self._error(
                f"timestamp column {self.timestamp!r} of type {kind} cannot have the unit {self.unit!r}",
                f"leave the unit out, or use an integer column with one of the units {', '.join(TIME_UNITS)}",
            )

    def _check_names(self) -> None:
        names = self.columns.names
        reserved = [name for name in names if name in RESERVED or name.startswith(("_count:", "_given:"))]
        if reserved:
            raise self._error(f"column name {reserved[0]!r} is reserved", "rename the column")
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise self._error(
                f"stream {self.name!r} has duplicate columns: {', '.join(doubled)}", "rename the duplicates"
            )

    def _error(self, message: str, remedy: str) -> InputError:
        return InputError(message, place=f"stream {self.name}", remedy=remedy)

    @cached_property
    def with_texts(self) -> tuple[pa.Field, ...]:
        """The columns that are texts, or contain some."""
        return tuple(field for field in self.columns if has_texts(field.type))

    @property
    def time_unit(self) -> str:
        """The unit that an integer timestamp counts."""
        return self.unit or "us"

    def in_unit(self) -> StreamSchema:
        """Validate this stream as it is declared.

        It has a name, the unit of an integer timestamp is given, and every column is of a type that can be compared.
        """
        check_name("stream", self.name)
        if pt.is_integer(self.columns.field(self.timestamp).type) and self.unit is None:
            raise self._error(
                f"the integer timestamp {self.timestamp!r} has no unit",
                'give the unit: unit="s", "ms", "us" or "ns"',
            )
        rounded = [f.name for f in self.columns if pt.is_decimal(f.type) and f.type.scale < 0]
        if rounded:
            raise self._error(
                f"column {rounded[0]!r} is a decimal with a negative scale, which Arrow cannot compute with",
                "cast the column to a decimal of scale 0",
            )
        return self


VERSION = "_version"
"""The column of a static table that says which version of it a row is of."""


@dataclass(frozen=True)
class TableSchema:
    """A static table: its columns. It has no event time and no windows; queries look rows up in it.

    >>> TableSchema("rates", pa.schema([("currency", pa.string()), ("rate", pa.float64())])).columns.names
    ['currency', 'rate']
    """

    name: str
    columns: pa.Schema

    def __post_init__(self) -> None:
        columns = pa.schema([pa.field(field.name, plain_type(field.type)) for field in self.columns])
        object.__setattr__(self, "columns", columns)
        place, names = f"table {self.name}", columns.names
        reserved = [name for name in names if name == VERSION or name in RESERVED]
        if reserved:
            raise InputError(f"column name {reserved[0]!r} is reserved", place=place, remedy="rename the column")
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled or not names:
            message = f"duplicate columns: {', '.join(doubled)}" if doubled else "no columns"
            raise InputError(
                f"table {self.name!r} has {message}", place=place, remedy="give each column a name of its own"
            )


_UUID = {b"midstream": b"uuid"}


def uuid_field(name: str) -> pa.Field:
    """Return a column of UUIDs: texts in small letters with hyphens, as DuckDB shows them."""
    return pa.field(name, pa.string(), metadata=_UUID)


_PARTS_OF_UUID = r"^\{?([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})\}?$"


def uuids_of(texts: Any) -> Any:
    """Return texts, an array or a scalar, as UUIDs are kept; NULL for those that are none.

    >>> uuids_of(pa.scalar("{A0EEBC999C0B4EF8BB6D6BB9BD380A11}")).as_py()
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
    """
    small = pc.utf8_lower(texts)
    fine = pc.match_substring_regex(small, _PARTS_OF_UUID)
    return pc.if_else(fine, pc.replace_substring_regex(small, _PARTS_OF_UUID, r"\1-\2-\3-\4-\5"), None)


def is_uuid(field: pa.Field) -> bool:
    """Return whether a column holds UUIDs, and no other texts.

    >>> is_uuid(uuid_field("k")), is_uuid(pa.field("k", pa.string()))
    (True, False)
    """
    return field.metadata is not None and field.metadata.get(b"midstream") == b"uuid"


def _holds_uuid(field: pa.Field) -> bool:
    return is_uuid(field) or getattr(field.type, "extension_name", "") == "arrow.uuid"


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that values are kept as: views, runs and days in milliseconds have plainer equals."""
    if pt.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pt.is_string_view(kind):
        return pa.string()
    if pt.is_binary_view(kind):
        return pa.binary()
    return pa.timestamp("ms") if pt.is_date64(kind) else kind


def without_runs(table: pa.Table) -> pa.Table:
    """Decode run-end encoded columns of a table: Arrow casts and takes no others."""
    for at, field in enumerate(table.schema):
        if pt.is_run_end_encoded(field.type):
            table = table.set_column(at, field.name, pc.run_end_decode(table.column(at)))
    return table


def has_texts(kind: pa.DataType) -> bool:
    """Return whether values of a type are texts, or contain some.

    >>> has_texts(pa.list_(pa.string())), has_texts(pa.binary())
    (True, False)
    """
    if pa.types.is_nested(kind):
        return any(has_texts(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
