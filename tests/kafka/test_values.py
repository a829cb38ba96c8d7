"""Values of topics in every format, by a small schema registry that answers over HTTP."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from midstream.embedded.job_run import FileJob
from midstream.embedded.kafka_source import KafkaSource
from midstream.embedded.kafka_values import decoder
from midstream.model.errors import InputError, LanguageError, MidstreamError, ReadError, SinkError, WriteError
from midstream.sinks import kafka as kafka_sinks
from midstream.sinks.kafka import KafkaSink
from midstream.sinks.kafka_registry import REGISTRY
from midstream.sql.job_file import parse_job
from tests.kafka.broker import Broker, job_text, mark, stream
from tests.kafka.test_source import ALL, dead, drain, results
from tests.sinks.steps import commit

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "k", "type": "long"},
        {"name": "v", "type": ["null", "string"], "default": None},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
MOMENT = 1_704_067_200_000_000


class Schemas(ThreadingHTTPServer):
    """What a registry knows: schemas by number, and the newest of subjects."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, dict[str, Any]] = {}
        super().__init__(("127.0.0.1", 0), _Answers)

    def answer(self, path: str) -> Any:
        parts = path.partition("?")[0].strip("/").split("/")
        if parts[0] == "schemas":
            return self.schemas.get(int(parts[2]))
        return self.subjects.get(parts[1])

    def given(self, path: str, schema: str) -> tuple[int, Any]:
        """Answer to a schema that is registered, or asked about: fields may only be added."""
        *_, subject, _, _ = [*path.strip("/").split("/"), *([] if path.endswith("latest") else [""])]
        newest = self.subjects.get(subject)
        names = {field["name"] for field in json.loads(schema)["fields"]}
        fits = newest is None or names >= {field["name"] for field in json.loads(newest["schema"])["fields"]}
        if path.endswith("latest"):
            return (404, None) if newest is None else (200, {"is_compatible": fits})
        if not fits:
            return 409, {"error_code": 409, "message": "a field is gone"}
        same = [id for id, one in self.schemas.items() if one["schema"] == schema]
        id = same[0] if same else len(self.schemas) + 1
        self.schemas[id] = self.subjects[subject] = {"schema": schema, "schemaType": "AVRO"}
        return 200, {"id": id}


class _Answers(BaseHTTPRequestHandler):
    server: Schemas

    def do_GET(self) -> None:
        found = self.server.answer(self.path)
        self.send_response(404 if found is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(found or {"error_code": 404}).encode())

    def do_POST(self) -> None:
        schema = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["schema"]
        code, found = self.server.given(self.path, schema)
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Schemas]:
    with Schemas() as schemas:
        threading.Thread(target=schemas.serve_forever, daemon=True).start()
        monkeypatch.setenv(REGISTRY, f"http://127.0.0.1:{schemas.server_port}/")
        yield schemas
        schemas.shutdown()


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def avro(id: int, row: dict[str, Any], schema: dict[str, Any] = ORDER) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), row)
    return bytes([0]) + id.to_bytes(4, "big") + file.getvalue()


def order(k: int, **more: Any) -> dict[str, Any]:
    return {"k": k, "v": "x", "ts": MOMENT + k, "d": Decimal("1.25"), **more}


def test_avro_by_a_registry(kafka: Broker, registry: Schemas) -> None:
    registry.schemas[7] = {"schema": json.dumps(ORDER)}
    later = {**ORDER, "fields": [*ORDER["fields"], {"name": "more", "type": "int"}]}
    registry.schemas[8] = {"schema": json.dumps(later)}
    registry.schemas[9] = {"schema": "message A {}", "schemaType": "PROTOBUF"}
    registry.subjects["none"] = {}
    topic = kafka.topic("orders")
    good = [avro(7, order(1)), avro(8, {**order(2, v=None), "more": 3}, later)]
    bad = [avro(3, order(1)), avro(7, order(1))[:-2], b"\0\0", None, b'{"k": 1}', avro(9, order(1))]
    kafka.send(topic, [*good, *bad])
    given = stream(kafka, topic, value="avro", schema="k BIGINT, v VARCHAR, d DECIMAL(9, 2), ts TIMESTAMP")
    drain({"A": given}, "SELECT k, v, d FROM A")
    assert results() == [{"k": 1, "v": "x", "d": Decimal("1.25")}, {"k": 2, "v": None, "d": Decimal("1.25")}]
    reasons = [(one["_offset"], one["_reason"]) for one in dead({"A": given}, "SELECT k, v, d FROM A")]
    assert [offset for offset, _ in reasons] == [2, 3, 4, 5, 6, 7]
    says = ("no schema 3", "not fit schema 7", "no number", "no number", "no number", "one of PROTOBUF")
    assert all(words in reason for words, (_, reason) in zip(says, reasons, strict=True)), reasons


def test_a_schema_that_lacks_a_column_is_told_before_the_run(kafka: Broker, registry: Schemas) -> None:
    topic = kafka.topic("orders")
    registry.subjects[f"{topic}-value"] = {"schema": json.dumps(ORDER), "schemaType": "AVRO"}

    def check(**changed: Any) -> None:
        text = job_text({"A": stream(kafka, topic, **changed)}, ALL, {"path": "out"})
        source = KafkaSource.of("A", parse_job(text).streams["A"])
        try:
            source.check()
        finally:
            source.close()

    check(value="avro")
    with pytest.raises(InputError, match="no field 'w'"):
        check(value="avro", schema="k BIGINT, w VARCHAR, ts TIMESTAMP")
    with pytest.raises(InputError, match="of type AVRO"):
        check(value="protobuf")
    with pytest.raises(InputError, match="the format text needs exactly one column"):
        check(value="text")
    with pytest.raises(LanguageError, match="'xml'"):
        check(value="xml")


def test_a_registry_that_does_not_answer_or_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=REGISTRY):
        decoder("avro", "orders", "[streams.A]")
    monkeypatch.setenv(REGISTRY, "http://127.0.0.1:9")
    read = decoder("avro", "orders", "[streams.A]")
    with pytest.raises(ReadError, match="does not answer"):
        read(pa.array([avro(1, order(1))], pa.large_binary()), pa.schema([("k", pa.int64())]))


def test_protobuf_by_a_registry(registry: Schemas) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="orders.proto", package="shop", syntax="proto3")
    for name in ("Other", "Order"):
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate((("k", 3), ("v", 9), ("ts", 9)), 1):
            message.field.add(name=field, number=number, type=kind, label=1)  # type: ignore[arg-type]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    registry.schemas[4] = {"schema": base64.b64encode(file.SerializeToString()).decode(), "schemaType": "PROTOBUF"}
    value = made(k=2**60, v="x", ts="2024-01-01T00:00:00Z").SerializeToString()
    read = decoder("protobuf", "orders", "[streams.A]")
    rows = read(
        pa.array([b"\0\0\0\0\4\2\2" + value, b"\0\0\0\0\4\2\2\xff"], pa.large_binary()),
        pa.schema([("k", pa.int64()), ("v", pa.string())]),
    )
    assert rows.column("v").to_pylist()[0] == "x"
    assert rows.column("_corrupt_record").to_pylist()[0] is None
    assert rows.column("_corrupt_record").to_pylist()[1] is not None


def test_insertions_of_debezium(kafka: Broker) -> None:
    topic, after = kafka.topic("orders"), {"k": 1, "v": "x", "ts": "2024-01-01T00:00:01Z"}
    good = [
        {"op": "c", "after": after},
        {"schema": {}, "payload": {"op": "r", "before": None, "after": {**after, "k": 2}}},
    ]
    bad = [{"op": "u", "before": after, "after": after}, {"op": "d", "before": after}, None, {"k": 1}, b"[]"]
    kafka.send(topic, [*good, *bad])
    given = {"A": stream(kafka, topic, value="debezium")}
    drain(given)
    assert [one["k"] for one in results()] == [1, 2]
    reasons = [one["_reason"] for one in dead(given)]
    says = (
        "an update of a table",
        "a deletion of a table",
        "not a JSON object",
        "not a change of Debezium",
        "not a JSON object",
    )
    assert all(words in reason for words, reason in zip(says, reasons, strict=True)), reasons


def test_texts_and_bytes(kafka: Broker) -> None:
    topic = kafka.topic("lines")
    kafka.send(topic, [b"12", b"\xff", b"13", b"x"])
    given = {
        "A": stream(
            kafka, topic, value="text", schema="n BIGINT, kafka_timestamp TIMESTAMP", timestamp="kafka_timestamp"
        )
    }
    drain(given, "SELECT n FROM A")
    assert [one["n"] for one in results()] == [12, 13]
    assert len(dead(given, "SELECT n FROM A")) == 2


def test_only_json_by_the_connector_of_spark(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    from midstream.cli.spark_job import check_spec

    monkeypatch.setenv(REGISTRY, "http://127.0.0.1:9")  # Which is not asked for anything yet.
    check_spec("A", parse_job(job_text({"A": stream(kafka, "t", value="avro")}, ALL, {"path": "out"})).streams["A"])
    needed = stream(kafka, "t", value="avro", options={"minPartitions": "2"})
    with pytest.raises(MidstreamError, match="reads only JSON"):
        check_spec("A", parse_job(job_text({"A": needed}, ALL, {"path": "out"})).streams["A"])


EVERY_KIND = pa.table(
    {
        "k": [1, None],
        "small": pa.array([1, None], pa.int16()),
        "large": pa.array([2**64 - 1, None], pa.uint64()),
        "v": ["x", None],
        "d": [1.5, None],
        "sure": [True, None],
        "money": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
        "raw": [b"\x00", None],
        "day": pa.array([19723, None], pa.date32()),
        "clock": pa.array([1, None], pa.time64("us")),
        "ts": pa.array([MOMENT, None], pa.timestamp("us", "UTC")),
        "parts": [[1, 2], None],
        "pair": [{"a": 1, "b": "y"}, None],
    }
)


def test_a_sink_writes_avro_by_a_registry(kafka: Broker, registry: Schemas, tmp_path: Path) -> None:
    topic = kafka.topic("paid")
    own = KafkaSink.of({"topic": topic, "servers": kafka.servers, "value": "avro", "key": "k"})
    own.check(EVERY_KIND.schema)
    assert not registry.schemas, "a check changes nothing"
    commit(own, tmp_path, 0, EVERY_KIND)
    commit(own, tmp_path, 1, EVERY_KIND)
    (id,) = registry.schemas
    found = kafka.messages(topic)
    assert len(found) == 4
    assert found[0].key() == b"1"
    assert found[0].value()[:5] == b"\0" + id.to_bytes(4, "big")
    schema = fastavro.parse_schema(json.loads(registry.schemas[id]["schema"]))
    rows = [fastavro.schemaless_reader(io.BytesIO(one.value()[5:]), schema) for one in found[:2]]
    assert rows[0] == {**EVERY_KIND.to_pylist()[0], "large": Decimal(2**64 - 1)}
    assert rows[1] == EVERY_KIND.to_pylist()[1]


def test_tombstones_of_avro_have_a_key_and_no_value(kafka: Broker, registry: Schemas, tmp_path: Path) -> None:
    topic = kafka.topic("current")
    rows = pa.table({"k": [1, 1, 2], "v": ["a", "a", "b"], "_op": ["+", "-", "+"]})
    own = KafkaSink.of({"topic": topic, "servers": kafka.servers, "value": "avro", "key": "k", "tombstones": True})
    commit(own, tmp_path, 0, rows)
    schema = fastavro.parse_schema(json.loads(registry.schemas[1]["schema"]))
    found = [(one.key(), one.value()) for one in kafka.messages(topic)]
    assert [key for key, _ in found] == [b"1", b"1", b"2"]
    assert found[1][1] is None
    read = [fastavro.schemaless_reader(io.BytesIO(value[5:]), schema) for _, value in (found[0], found[2])]
    assert [one["v"] for one in read] == ["a", "b"]
    assert [mark(one) for one in kafka.messages(topic)] == [(0, 0), (0, 1), (0, 2)]


def test_a_job_reads_what_a_job_has_written(kafka: Broker, registry: Schemas, tmp_path: Path) -> None:
    first, second = kafka.topic("orders"), kafka.topic("paid")
    kafka.send(first, [{"k": k, "v": "x", "ts": "2024-01-01T00:00:01Z"} for k in range(3)])
    target = {"type": "kafka", "topic": second, "servers": kafka.servers, "value": "avro"}
    with FileJob(parse_job(job_text({"A": stream(kafka, first)}, "SELECT k, v, ts FROM A", target))) as job:
        assert job.step()
    (tmp_path / "ckpt").rename(tmp_path / "first")
    drain({"A": stream(kafka, second, value="avro")})
    assert [(one["k"], one["v"]) for one in results()] == [(0, "x"), (1, "x"), (2, "x")]


def test_what_avro_and_its_registry_do_not_take(
    kafka: Broker, registry: Schemas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic("paid")
    own = KafkaSink.of({"topic": topic, "servers": kafka.servers, "value": "avro"})
    rows = pa.table({"k": [1], "v": ["x"]})
    commit(own, tmp_path, 0, rows)
    with pytest.raises(WriteError, match="does not fit the newest registered schema"):
        own.check_columns(rows.select(["k"]).schema)
    with pytest.raises(WriteError, match="a field is gone"):
        commit(own, tmp_path, 1, rows.select(["k"]))
    assert own.newest("q").step == 0  # type: ignore[union-attr]
    commit(own, tmp_path, 1, rows.append_column("more", pa.array([1])))
    assert len(kafka.messages(topic)) == 2
    with pytest.raises(SinkError, match=r"cannot be called 'a b'.*\n?.*such as a_b"):
        own.check_columns(pa.schema([("a b", pa.int64())]))
    with pytest.raises(SinkError, match="cannot represent values of type"):
        own.check_columns(pa.schema([("a", pa.duration("us"))]))
    with pytest.raises(SinkError, match="unknown message format 'xml'"):
        KafkaSink.of({"topic": topic, "value": "xml"})
    monkeypatch.setenv(REGISTRY, "http://127.0.0.1:9")
    kafka_sinks._CLIENTS.clear()
    with pytest.raises(WriteError, match="does not answer"):
        commit(own, tmp_path, 2, rows)
    monkeypatch.delenv(REGISTRY)
    kafka_sinks._CLIENTS.clear()
    with pytest.raises(InputError, match=REGISTRY):
        own.check(None)
