"""Values of messages as rows: JSON, Avro and Protobuf by a schema registry, Debezium's insertions, text, bytes.

In: an array of values, NULL where a message has none. Out: a table of the declared columns; what cannot be decoded is
a row that becomes a dead letter.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from midstream.admission.given import column_of, with_reasons
from midstream.embedded.file_formats import (
    NO_OBJECT_OF_MESSAGE,
    json_column,
    json_object,
    json_rows,
    rows_of_objects,
)
from midstream.model.errors import InputError
from midstream.model.words import suggest
from midstream.sinks.kafka_registry import MAGIC, Registry
from midstream.sql.job_specs import KAFKA_VALUES

Decoder = Callable[[pa.LargeBinaryArray, pa.Schema], pa.Table]

_NOT_INSERTED = {"u": "an update", "d": "a deletion", "t": "a truncation"}


def decoder(kind: str, topic: str, place: str) -> Decoder:
    """What reads the values of a topic. Raises an `InputError` for a kind that is none, or lacks what it needs."""
    if kind not in KAFKA_VALUES:
        raise InputError(f"unknown format {kind!r} of Kafka values", place=place, remedy=suggest(kind, KAFKA_VALUES))
    if kind == "json":
        return json_rows
    if kind == "debezium":
        return _inserted
    if kind in ("text", "bytes"):
        return _single(kind, place)
    return Registered(kind, Registry.of_environment(place), topic, place)


class Registered:
    """Values that begin with the number of their schema: a zero, and four bytes."""

    def __init__(self, kind: str, registry: Registry, topic: str, place: str) -> None:
        self._kind, self._registry, self._topic, self._place = kind, registry, topic, place
        self._readers: dict[int, Callable[[bytes], Mapping[str, Any]] | str] = {}
        self._make = _avro if kind == "avro" else _protobuf

    def check(self, columns: pa.Schema) -> None:
        """Raise where the newest schema of the topic lacks a declared column."""
        newest = self._registry.latest(self._topic)
        if newest is None:
            return  # Nothing was sent yet, or schemas are registered by other subjects.
        if newest.get("schemaType", "AVRO").lower() != self._kind:
            raise InputError(
                f"the schema of {self._topic} in the registry is of type {newest.get('schemaType', 'AVRO')}",
                place=self._place,
                remedy=f"set value = {newest.get('schemaType', 'AVRO').lower()!r} for the stream",
            )
        names = _fields(newest["schema"]) if self._kind == "avro" else None
        missing = [] if names is None else [name for name in columns.names if name not in names]
        if missing:
            raise InputError(
                f"the schema of {self._topic} has no field {missing[0]!r}",
                place=self._place,
                remedy=suggest(missing[0], names or ["(none)"]),
            )

    def __call__(self, values: pa.LargeBinaryArray, columns: pa.Schema) -> pa.Table:
        """The rows of values."""
        objects, reasons = list[Mapping[str, Any] | None](), dict[int, str]()
        given = values.to_pylist()
        for at, value in enumerate(given):
            found = self._read(value)
            objects.append(None if isinstance(found, str) else found)
            if isinstance(found, str):
                reasons[at] = found
        return rows_of_objects(objects, columns, reasons, [value or b"" for value in given], column_of)

    def _read(self, value: bytes | None) -> Mapping[str, Any] | str:
        if value is None or len(value) < 5 or value[0] != MAGIC:
            return "the value has no number of a schema"
        id = int.from_bytes(value[1:5], "big")
        if id not in self._readers:
            schema = self._registry.schema(id, "serialized" if self._kind == "protobuf" else "")
            if schema is None:
                return f"the registry has no schema {id}"
            if schema.get("schemaType", "AVRO").lower() != self._kind:
                return f"schema {id} is one of {schema.get('schemaType', 'AVRO')}"
            try:
                self._readers[id] = self._make(schema)
            except Exception as error:  # The libraries have no common class for schemas that do not parse.
                self._readers[id] = f"schema {id} cannot be read: {error}"
        reader = self._readers[id]
        if isinstance(reader, str):
            return reader
        try:
            found = reader(value[5:])
        except Exception as error:  # Nor for bytes that are of another schema.
            return f"the value does not fit schema {id}: {type(error).__name__}"
        return found if isinstance(found, dict) else f"schema {id} is not a record"


def _avro(schema: Mapping[str, Any]) -> Callable[[bytes], Mapping[str, Any]]:
    import fastavro

    parsed = fastavro.parse_schema(json.loads(schema["schema"]))
    return lambda value: fastavro.schemaless_reader(io.BytesIO(value), parsed)  # type: ignore[return-value]


def _fields(schema: str) -> list[str]:
    found = json.loads(schema)
    return [field["name"] for field in found.get("fields", ())] if isinstance(found, dict) else []


def _protobuf(schema: Mapping[str, Any]) -> Callable[[bytes], Mapping[str, Any]]:
    """Return a reader for a schema as descriptors, which a registry gives with `?format=serialized` in base64."""
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(schema["schema"], validate=True))
    pool = descriptor_pool.DescriptorPool()
    made = pool.Add(file) or pool.FindFileByName(file.name)
    names = list(made.message_types_by_name)

    def read(value: bytes) -> Mapping[str, Any]:
        path, rest = _message_indexes(value)
        descriptor = made.message_types_by_name[names[path[0]]]
        for index in path[1:]:
            descriptor = descriptor.nested_types[index]
        message = message_factory.GetMessageClass(descriptor).FromString(rest)
        found: Mapping[str, Any] = json_format.MessageToDict(
            message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        return found

    return read


def _message_indexes(value: bytes) -> tuple[list[int], bytes]:
    """Which message of the schema a value is, and the value behind that; numbers are zigzag, and [0] is written as 0.

    >>> _message_indexes(bytes([0, 7])), _message_indexes(bytes([4, 2, 0, 7]))
    (([0], b'\\x07'), ([1, 0], b'\\x07'))
    """
    at = 0

    def number() -> int:
        nonlocal at
        found = shift = 0
        while True:
            byte = value[at]
            at += 1
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return (found >> 1) ^ -(found & 1)

    count = number()
    return [number() for _ in range(count)] or [0], value[at:]


def _inserted(values: pa.LargeBinaryArray, columns: pa.Schema) -> pa.Table:
    """Keep the rows that Debezium inserted or found at its beginning; every other row is a dead letter."""
    objects, reasons = list[Mapping[str, Any] | None](), dict[int, str]()
    given = [value or b"" for value in values.to_pylist()]
    for at, value in enumerate(given):
        found = json_object(value)
        envelope = found.get("payload", found) if found is not None else None
        row, op = (envelope.get("after"), envelope.get("op")) if isinstance(envelope, dict) else (None, None)
        fine = op in ("c", "r") and isinstance(row, dict)
        objects.append(row if fine else None)
        if not fine:
            change = _NOT_INSERTED.get(str(op))
            reasons[at] = (
                f"{change} of a table: rows of a stream never change, so only insertions are read"
                if change
                else NO_OBJECT_OF_MESSAGE
                if envelope is None
                else "the value is not a change of Debezium"
            )
    return rows_of_objects(objects, columns, reasons, given, json_column)


def _single(kind: str, place: str) -> Decoder:
    def read(values: pa.LargeBinaryArray, columns: pa.Schema) -> pa.Table:
        if len(columns) != 1:
            raise InputError(
                f"the format {kind} needs exactly one column, but the schema has {', '.join(columns.names) or 'none'}",
                place=place,
                remedy="declare one column in addition to Kafka's own columns, whose names begin with kafka_",
            )
        field = columns.field(0)
        return pa.table({field.name: values.cast(pa.binary()) if kind == "bytes" else texts(values, field)})

    return read


def texts(values: pa.LargeBinaryArray, field: pa.Field) -> pa.Array:
    """Bytes as texts, to be read as declared; those that are none are dead letters.

    >>> texts(pa.array([b"a", None], pa.large_binary()), pa.field("k", pa.string())).to_pylist()
    ['a', None]
    """
    if pt.is_binary(field.type):
        return values.cast(pa.binary())
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        found, reasons = list[str | None](), dict[int, str]()
        for at, one in enumerate(values.to_pylist()):
            try:
                found.append(None if one is None else one.decode())
            except UnicodeDecodeError:
                found.append(str(one))
                reasons[at] = f"column {field.name!r}: the bytes are not text"
        return with_reasons(pa.array(found, pa.string()), field, reasons)
