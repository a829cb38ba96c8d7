"""Messages of Kafka through jobs on Spark: rows by their JSON, dead letters for what is none.

A job file reads a real broker. For a program, which reads by Spark's connector, files of the very columns that this one
has stand for a topic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

import midstream as ms
from midstream.cli.spark_job import job_of
from midstream.model.errors import InputError
from midstream.model.events import RowsRejected
from midstream.spark.declared import declared_schema
from midstream.spark.kafka_frames import json_rows
from midstream.sql.job_file import parse_job
from tests.docs.pages import ROOT, Page
from tests.docs.test_snippets import run
from tests.kafka.broker import broker as real_broker

SHAPE = """key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP,
timestampType INT"""
"""The columns of Spark's connector (Structured Streaming and Kafka Integration Guide, "Creating a Kafka Source")."""

COLUMNS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
    ]
)

MALFORMED = (
    b'{"id": 7, "ts": "2024-01-01T00:00:03Z"',
    b'{"id": 7, "ts": "2024-01-01T00:00:03Z"} {"id": 8}',
    b'{"id": 7, "ts": "2024-01-01T00:00:03Z"}, {"id": 8}',
    b'{"id": 7, "ts": "2024-01-01T00:00:03Z"}]',
    b'{"id": 7, "ts": "2024-01-01T00:00:03Z"}}',
    b'[{"id": 7, "ts": "2024-01-01T00:00:03Z"}]',
    b'{"id": 7, "ts": "2024-01-01T00:00:03Z", "amount": 12345678901234.5}',
    b'{"id": 7, "note": "\xff", "ts": "2024-01-01T00:00:03Z"}',
    b"3",
    b"null",
    b"",
    None,
)
UNREADABLE = (
    b'{"id": "seven", "ts": "2024-01-01T00:00:03Z"}',
    b'{"id": 7, "ts": "2024-01-01T00:00:03Z", "amount": 0.001}',
    b'{"id": 7, "ts": "soon"}',
    b'{"id": 7}',
    b"{}",
    b'{"ID": 7, "ts": "2024-01-01T00:00:03Z"}',
)


@dataclass
class Broker:
    """Topics as folders of files that have Kafka's columns."""

    folder: Path

    def send(self, topic: str, *messages: tuple[bytes | None, bytes | None, int]) -> None:
        """Messages of key, value and seconds of Kafka's own time."""
        rows = [
            {
                "key": key,
                "value": value,
                "topic": topic,
                "partition": offset % 2,
                "offset": offset,
                "timestamp": second * 10**6,
                "timestampType": 0,
            }
            for offset, (key, value, second) in enumerate(messages)
        ]
        (self.folder / topic).mkdir()
        pq.write_table(pa.Table.from_pylist(rows, COLUMNS), self.folder / topic / "0.parquet")

    def topic(self, spark: SparkSession, name: str) -> DataFrame:
        return spark.readStream.format("parquet").schema(SHAPE).load(str(self.folder / name))


@pytest.fixture
def broker(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """Where a topic would be read by the connector, its files are."""
    found = Broker(tmp_path / "topics")
    found.folder.mkdir()
    load, options = DataStreamReader.load, DataStreamReader.options

    def noted(self: DataStreamReader, **given: Any) -> DataStreamReader:
        self._subscribed = given.get("subscribe")  # type: ignore[attr-defined]
        return options(self, **given)

    def loaded(self: DataStreamReader, *given: Any, **more: Any) -> DataFrame:
        name = getattr(self, "_subscribed", None)
        return load(self, *given, **more) if name is None else found.topic(spark, name)

    monkeypatch.setattr(DataStreamReader, "options", noted)
    monkeypatch.setattr(DataStreamReader, "load", loaded)
    yield found


def order(key: int, second: float, amount: str) -> bytes:
    return f'{{"id": {key}, "ts": {json.dumps(at(second))}, "amount": {amount}, "more": [1]}}'.encode()


def at(second: float) -> str:
    return f"2024-01-01T00:{int(second) // 60:02}:{second % 60:09.6f}Z"


ZERO = 1_704_067_200
GOOD_ORDERS = [(1, 1.5, "12.50"), (2, 2, "9999999999.99"), (3, 30, '"0.07"'), (1, 90, "1")]
PAYMENTS = [(1, "cash", 3), (2, "card", 20), (3, "card", 55), (1, "cash", 59)]


def send_all(broker: Broker) -> None:
    orders = [(b"x", order(*one), 0) for one in GOOD_ORDERS]
    wrong = [(b"x", value, 0) for value in (*MALFORMED, *UNREADABLE)]
    broker.send("orders", *orders[:2], *wrong, *orders[2:])
    payments = [(f"{key}".encode(), json.dumps({"method": how}).encode(), ZERO + s) for key, how, s in PAYMENTS]
    broker.send("payments", *payments, (b"\xff", b'{"method": "cash"}', ZERO + 3))


def expected() -> list[tuple[Any, ...]]:
    """DuckDB's answer over the whole input, for lateness is wide enough for it."""
    with duckdb.connect() as db:
        db.execute("CREATE TABLE orders (id BIGINT, s DOUBLE, amount DECIMAL(12, 2))")
        db.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(k, s, a.strip('"')) for k, s, a in GOOD_ORDERS])
        db.execute("CREATE TABLE payments (id BIGINT, method TEXT, s DOUBLE)")
        db.executemany("INSERT INTO payments VALUES (?, ?, ?)", PAYMENTS)
        join = "FROM orders, payments WHERE orders.id = payments.id AND abs(orders.s - payments.s) < 60"
        return sorted(db.execute(f"SELECT orders.id, amount, method {join}").fetchall())


def answers(folder: Path) -> list[tuple[Any, ...]]:
    files = sorted(folder.rglob("step=*/*.parquet"))
    rows = pa.concat_tables(pq.read_table(file) for file in files).to_pylist()
    return sorted((row["id"], row["amount"], row["method"]) for row in rows)


def dead_letters(checkpoint: Path, stream: str) -> list[dict[str, Any]]:
    files = sorted((checkpoint / "dead_letters" / stream).rglob("step=*/*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def toml() -> str:
    (text,) = [piece for piece in Page(ROOT / "docs" / "kafka.md").fences("toml")]
    text = re.sub(r"sink = .*", 'sink = { path = "out/paid" }', text)
    return text.replace("5 seconds", "5 minutes")


def test_the_job_file_of_the_page_gives_the_answer_and_loses_no_message(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with real_broker() as kafka:
        orders, payments = kafka.topic("orders"), kafka.topic("payments")
        # A key in another case is one of the column, and so comes last.
        wrong = [*MALFORMED, *UNREADABLE]
        # 1.0 is a whole number too.
        values = [order(*one).replace(b'"id": 1,', b'"id": 1.0,') for one in GOOD_ORDERS]
        kafka.send(orders, [*values[:2], *wrong, *values[2:]])
        for key, how, second in PAYMENTS:
            kafka.send(payments, [{"method": how}], key=f"{key}".encode(), timestamp=(ZERO + second) * 1000)
        kafka.send(payments, [{"method": "cash"}], key=b"\xff", timestamp=(ZERO + 3) * 1000)
        text = toml().replace("broker:9092", kafka.servers)
        for name, topic in (("orders", orders), ("payments", payments)):
            text = text.replace(f'subscribe = "{name}"', f'subscribe = "{topic}"')
        job = job_of(spark, parse_job(text)).start({"availableNow": True})
        job.await_termination()
    assert answers(tmp_path / "out" / "paid") == expected()
    letters = dead_letters(tmp_path / "ckpt", "orders")
    # One is an object, whose number has too many digits.
    assert sum(row["_reason"] == "the value is not a JSON object" for row in letters) == len(MALFORMED) - 1
    assert sorted(row["_offset"] for row in letters) == list(range(2, 1 + len(wrong)))
    (no_text,) = dead_letters(tmp_path / "ckpt", "payments")
    assert no_text["_reason"] == "column 'kafka_key': the bytes are not text"
    counted = {"orders": len(letters), "payments": 1}
    assert {e.stream: e.rows for e in job.events if isinstance(e, RowsRejected)} == counted


def test_the_python_of_the_page_runs_as_written(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    send_all(broker)
    page = Page(tmp_path / "kafka.md")
    text = (ROOT / "docs" / "kafka.md").read_text()
    page.path.write_text(text.replace("/data/", f"{tmp_path}/").replace("5 seconds", "5 minutes"))
    names: dict[str, Any] = {"spark": spark}
    run(page, names)
    try:
        names["run"].query.processAllAvailable()
    finally:
        names["run"].stop()
    found = answers(tmp_path / "out" / "paid")
    assert [row for row in expected() if row not in found] == []
    names["strict"].query("all", "SELECT id, amount, kafka_offset FROM orders", sink=ms.sinks.files(tmp_path / "all"))
    names["strict"].start({"availableNow": True}).await_termination()
    rows = pa.concat_tables(pq.read_table(file) for file in (tmp_path / "all").rglob("step=*/*.parquet")).to_pylist()
    assert {row["kafka_offset"] for row in rows} == {
        0,
        1,
        len(MALFORMED + UNREADABLE) + 2,
        len(MALFORMED + UNREADABLE) + 3,
    }


@pytest.mark.parametrize(
    ("columns", "message"),
    [("ts TIMESTAMP, kafka_headers STRING", "kafka_headers"), ("ts TIMESTAMP, kafka_offset BIGINT", "'offset'")],
)
def test_what_kafka_does_not_say_is_refused(spark: SparkSession, columns: str, message: str) -> None:
    frame = spark.createDataFrame([], "value BINARY")
    with pytest.raises(InputError, match=message):
        json_rows(frame, declared_schema(columns), "ts")
