"""The schema registry of a Kafka, asked as Confluent's is, and rows as values of Avro under a schema that it has.

In: the registry of the environment, Arrow tables. Out: schemas by number; bytes that begin with their schema's number.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.types as pt

from midstream.model.errors import InputError, MidstreamError, ReadError, SinkError, WriteError
from midstream.sinks.kafka_client import ANSWER

REGISTRY = "MIDSTREAM_SCHEMA_REGISTRY"
"""The variable of the environment that has the URL of the schema registry; with `_AUTH` behind, `user:password` for it.
"""

MAGIC = 0
"""The byte that a value begins with; four of its schema's number follow."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Registry:
    """A schema registry as Confluent's is asked: over HTTP, each schema once."""

    def __init__(self, url: str, auth: str, place: str, silent: type[MidstreamError] = ReadError) -> None:
        self._url, self._auth, self._place, self._silence = url.rstrip("/"), auth, place, silent
        self._known: dict[int, Mapping[str, Any]] = {}
        self._registered: dict[str, int] = {}

    @staticmethod
    def of_environment(place: str, silent: type[MidstreamError] = ReadError) -> Registry:
        """The registry that the environment names: what a job file names might be anything.

        Where it does not answer, an error of the class `silent` is raised.
        """
        url = os.environ.get(REGISTRY, "")
        if not url.startswith(("http://", "https://")):
            raise InputError(
                "no setting says where the schema registry is",
                place=place,
                remedy=f"set {REGISTRY} in the environment to a URL such as https://registry:8081",
            )
        return Registry(url, os.environ.get(f"{REGISTRY}_AUTH", ""), place, silent)

    def schema(self, id: int, form: str = "") -> Mapping[str, Any] | None:
        """The schema of a number, as a text unless another form is asked for; None where there is none."""
        if id not in self._known:
            found = self._ask(f"/schemas/ids/{id}{form and '?format=' + form}")
            if found is None:
                return None
            self._known[id] = found
        return self._known[id]

    def latest(self, topic: str) -> Mapping[str, Any] | None:
        """The newest schema of the values of a topic; None where there is none."""
        return self._ask(f"/subjects/{_subject(topic)}/versions/latest")

    def register(self, topic: str, schema: str) -> int:
        """Register a schema of the values of a topic, if it is not there; return its number."""
        if schema not in self._registered:
            found = self._ask(f"/subjects/{_subject(topic)}/versions", schema) or {}
            if "id" not in found:
                raise self._refused(topic, found.get("message", "no number"))
            self._registered[schema] = int(found["id"])
        return self._registered[schema]

    def check_takes(self, topic: str, schema: str) -> None:
        """Raise where the registry would refuse a schema of the values of a topic."""
        found = self._ask(f"/compatibility/subjects/{_subject(topic)}/versions/latest", schema)
        if found is not None and not found.get("is_compatible", True):
            raise self._refused(topic, "the schema does not fit the newest registered schema")

    def _refused(self, topic: str, why: str) -> SinkError:
        return WriteError(
            f"the schema registry refuses the schema for the topic {topic}: {why}",
            place=self._place,
            remedy="keep the columns and types of the registered schema, or change the registry's compatibility level",
        )

    def _ask(self, path: str, schema: str | None = None) -> Mapping[str, Any] | None:
        request = urllib.request.Request(self._url + path)
        if schema is not None:
            request.data = json.dumps({"schema": schema}).encode()
            request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        if self._auth:
            request.add_header("Authorization", f"Basic {base64.b64encode(self._auth.encode()).decode()}")
        try:
            with urllib.request.urlopen(request, timeout=ANSWER) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            if schema is not None and error.code in (409, 422):
                return {"message": error.read().decode("utf-8", "replace")[:500], "is_compatible": False}
            raise self._silent(f"answers {error.code}") from error
        except (OSError, ValueError) as error:
            raise self._silent(f"does not answer: {error}") from error
        return found if isinstance(found, dict) else None

    def _silent(self, how: str) -> MidstreamError:
        remedy = f"see that it runs, and that {REGISTRY} and {REGISTRY}_AUTH are right"
        return self._silence(f"the schema registry {self._url} {how}", place=self._place, remedy=remedy)


def _subject(topic: str) -> str:
    return quote(topic + "-value", safe="")


def avro_schema(columns: pa.Schema, topic: str, place: str) -> str:
    """The schema of rows as a record of Avro, in which every field may be null.

    >>> avro_schema(pa.schema([("k", pa.int64())]), "paid", "sink")
    '{"type": "record", "name": "paid", "fields": [{"name": "k", "type": ["null", "long"], "default": null}]}'
    """
    return json.dumps(_record(columns, re.sub(r"\W|^(?=\d)", "_", topic), place))


def avro_values(rows: pa.Table, schema: str, id: int) -> list[bytes]:
    """The rows as values of Avro; `schema` is that of `avro_schema`, which has the number `id`."""
    import fastavro

    parsed, begin = fastavro.parse_schema(json.loads(schema)), bytes([MAGIC]) + id.to_bytes(4, "big")
    columns = [_as_number(column) for column in rows.columns]
    found, buffer = [], io.BytesIO()
    # The library takes rows one by one: there is none for Avro without a file around the values that takes columns.
    for row in pa.table(columns, rows.column_names).to_pylist():
        buffer.seek(0)
        buffer.write(begin)
        fastavro.schemaless_writer(buffer, parsed, row)
        found.append(buffer.getvalue()[: buffer.tell()])
    return found


def _record(fields: Any, name: str, place: str) -> dict[str, Any]:
    found = []
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise SinkError(
                f"an Avro field cannot be called {field.name!r}",
                place=place,
                remedy=f"rename the column with AS, such as {re.sub(r'[^A-Za-z0-9_]|^(?=[0-9])', '_', field.name)}",
            )
        kind = _avro_type(field.type, f"{name}_{field.name}", place)
        found.append({"name": field.name, "type": ["null", kind], "default": None})
    return {"type": "record", "name": name, "fields": found}


def _avro_type(kind: pa.DataType, name: str, place: str) -> Any:
    if pt.is_dictionary(kind):
        return _avro_type(kind.value_type, name, place)
    if pt.is_struct(kind):
        return _record([kind.field(at) for at in range(kind.num_fields)], name, place)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type, name, place)]}
    if pt.is_decimal(kind) or pt.is_uint64(kind):
        precision, scale = (20, 0) if pt.is_uint64(kind) else (kind.precision, kind.scale)
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    if pt.is_timestamp(kind):
        return {"type": "long", "logicalType": f"{'' if kind.tz else 'local-'}timestamp-micros"}
    if pt.is_integer(kind):
        return "long" if kind.bit_width == 64 or pt.is_uint32(kind) else "int"
    simple = {
        pt.is_boolean: "boolean",
        pt.is_float16: "float",
        pt.is_float32: "float",
        pt.is_float64: "double",
        pt.is_string: "string",
        pt.is_large_string: "string",
        pt.is_binary: "bytes",
        pt.is_large_binary: "bytes",
        pt.is_date: {"type": "int", "logicalType": "date"},
        pt.is_time: {"type": "long", "logicalType": "time-micros"},
    }
    for is_such, found in simple.items():
        if is_such(kind):
            return found
    raise SinkError(f"Avro cannot represent values of type {kind}", place=place, remedy="CAST the column to VARCHAR")


def _as_number(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as the numbers that Avro writes, for not all of them are times of Python."""
    if pt.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    if pt.is_date(column.type):
        return column.cast(pa.date32()).cast(pa.int32())
    if pt.is_time(column.type):
        return column.cast(pa.time64("us")).cast(pa.int64())
    return column.cast(pa.decimal128(20)) if pt.is_uint64(column.type) else column
