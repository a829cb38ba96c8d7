"""A topic of Kafka as a sink: the rows of a step, and the note that the topic has them, in one transaction.

The note is the offset that the sink's consumer group commits for the topic, one more than the step; with it go the job
and the epoch, where the broker keeps what goes with an offset. A restarted job reads the note, and sends no step twice.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from midstream.model.errors import SinkError, WriteError
from midstream.model.time_line import Stamp
from midstream.sinks import formats
from midstream.sinks.contract import Sink, StagedStep, Staging, anything
from midstream.sinks.kafka_client import ANSWER, SERVERS, client_settings, failed, failures, kafka
from midstream.sinks.kafka_registry import Registry, avro_schema, avro_values
from midstream.storage.storage_contract import Storage

HEADER = "midstream.row"
"""The header of each message: `job/epoch/step/ordinal`, the last of which says which row of the step it is.

One, because a header makes a message twice as dear for the client and the broker.
"""

SIGN = "_op"
"""The column of a change log that says whether a row comes or goes."""

_VALUES = ("json", "avro")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_IN_TRANSACTION = 30.0
_PIECE = 10_000
"""Rows that are made messages together: the next ones get the memory of the last, which is not asked for again."""


@dataclass(frozen=True)
class KafkaSink(Sink):
    """Rows as messages of an existing topic, with the values of the `key` columns as keys.

    `value` is "json" for JSON objects, or "avro" for Avro records. Each Avro record names its schema in the schema
    registry, and the environment names the registry. A key of one column is a string, and a key of several columns is a
    JSON object. If the results are a change log, `tombstones` sends a message without a value for each row that leaves
    the answer. Only one query may write to a topic. The option `transactional_id` names the sink's transactions and the
    consumer group that records steps; the default is `midstream.TOPIC`. The settings for the login and TLS come from
    the environment.

    >>> KafkaSink.of({"topic": "paid", "servers": "broker:9092", "key": "id"}).to_json()["key"]
    ['id']
    """

    topic: str
    servers: str = ""
    key: tuple[str, ...] = ()
    tombstones: bool = False
    transactional_id: str = ""
    value: str = "json"

    name: ClassVar[str] = "kafka"
    aside: ClassVar[bool] = True

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Make the sink from its options."""
        key = options.get("key", ())
        return super().of({**options, "key": (key,) if isinstance(key, str) else tuple(key)})

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not _TOPIC.fullmatch(self.topic):
            raise SinkError(f"{self.topic!r} is not the name of a topic", place="sink", remedy='write topic = "paid"')
        if self.value not in _VALUES:
            remedy = f"use one of: {', '.join(_VALUES)}"
            raise SinkError(f"unknown message format {self.value!r}", place=self.target, remedy=remedy)
        if self.tombstones and not self.key:
            raise SinkError(
                "tombstones need a key", place=self.target, remedy='name the columns of the key: key = ["id"]'
            )

    def to_json(self) -> dict[str, Any]:
        """Return the sink's name and options, which contain no secret."""
        return {**super().to_json(), "key": list(self.key)}

    @property
    def target(self) -> str:
        """The topic, to which no other query writes."""
        return f"kafka://{self.servers}/{self.topic}"

    def staging(self, scratch: Storage) -> Staging:
        """Return a staging of Arrow files, which only this sink reads."""
        return replace(super().staging(scratch), format=formats.ARROW)

    def open(self) -> None:
        """Check that the topic exists. The first step, and not this method, fences other writers."""
        with failures(self.target, SinkError):
            topics = self._clients.reader.list_topics(self.topic, timeout=ANSWER).topics
        error = topics[self.topic].error
        if error is not None:
            raise failed(error, self.target, SinkError)
        if self.value == "avro":
            self._clients.registry()

    def check(self, columns: pa.Schema | None) -> None:
        """Check that the topic exists, and that the results have the key."""
        self.open()
        if columns is not None:
            self.check_columns(columns)

    def check_columns(self, columns: pa.Schema) -> None:
        """Raise `SinkError` if results lack a key column or the column `_op` that tombstones need, or if the registry
        refuses the columns.
        """
        needed = [*self.key, *([SIGN] if self.tombstones else [])]
        if missing := [name for name in needed if name not in columns.names]:
            raise SinkError(
                f"the results have no column {missing[0]!r}",
                place=self.target,
                remedy=f"select the column, or use columns of the results for the key: {', '.join(columns.names)}",
            )
        if self.value == "avro":
            self._clients.registry().check_takes(self.topic, avro_schema(columns, self.topic, self.target))

    def write(self, staged: StagedStep) -> None:
        """Send the rows and record the step in one transaction, unless the step is already recorded.

        The first call in a process, or the first call after a failure, fences other producers of the transactional id
        and ends their transactions. So no other producer can change the recorded step during the call.
        """
        rows, clients = staged.table(), self._clients
        try:
            with failures(self.target, SinkError):
                producer = clients.producer()
                if not staged.follows(self._newest(), self.target):
                    return
                producer.begin_transaction()
                self._send(producer, rows, staged.stamp)
                producer.send_offsets_to_transaction(
                    [self._noted(staged.stamp)], clients.reader.consumer_group_metadata(), _IN_TRANSACTION
                )
                producer.commit_transaction(_IN_TRANSACTION)  # It waits for all messages.
        except BaseException as error:
            # The call that fails may only say that something has failed before.
            failure = clients.give_up()
            if isinstance(error, WriteError) and (why := failure or self._gone()) is not None:
                raise failed(why, self.target, SinkError) from error
            raise

    def newest(self, name: str) -> Stamp | None:
        """Return the stamp that the offset of the consumer group records."""
        with failures(self.target, SinkError):
            return self._newest()

    def check_forget(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Raise `SinkError` if the topic has messages of steps after `step`, because Kafka cannot remove them."""
        newest = self.newest(name)
        if newest is not None and newest.step > step and given_up(newest):
            raise SinkError(
                f"the topic has messages up to step {newest.step}, and messages after step {step} cannot be taken back",
                place=self.target,
                remedy=f"go back only to step {newest.step}, or begin a job on a new topic",
            )

    def forget_after(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Remove nothing, and raise `SinkError` if the topic has steps after `step`."""
        self.check_forget(name, step, given_up)

    def _gone(self) -> Any:
        # Messages for a topic that was removed only time out.
        try:
            return self._clients.reader.list_topics(self.topic, timeout=1.0).topics[self.topic].error
        except kafka().KafkaException:
            return None

    def _newest(self) -> Stamp | None:
        (found,) = self._clients.reader.committed([kafka().TopicPartition(self.topic, 0)], timeout=ANSWER)
        if found.error is not None:
            raise failed(found.error, self.target, SinkError)
        if found.offset < 0:
            return None
        try:
            job, epoch = json.loads(found.metadata or "")
        except (ValueError, TypeError):
            job = epoch = ""  # Not every broker keeps it.
        return Stamp(job, epoch, found.offset - 1)

    def _noted(self, stamp: Stamp) -> Any:
        with_it = json.dumps([stamp.job, stamp.epoch])
        return kafka().TopicPartition(self.topic, 0, stamp.step + 1, metadata=with_it)

    def _send(self, producer: Any, rows: pa.Table, stamp: Stamp) -> None:
        """Hand the messages to the client; the calls that end the transaction raise what the broker refuses of them."""
        produce, topic, headers = producer.produce, self.topic, [(HEADER, b"")]
        for first in range(0, rows.num_rows, _PIECE):
            piece = rows.slice(first, _PIECE)
            marks = zip(repeat(HEADER), _marks(stamp, first, piece.num_rows), strict=False)
            # By position, and with one list of headers, which the client copies: so a message costs half as much.
            for key, value, headers[0] in zip(self._keys(piece), self._values(piece), marks, strict=True):
                while True:
                    try:
                        produce(topic, value, key, -1, None, None, 0, headers)
                        break
                    except BufferError:  # The broker is slower than this loop.
                        producer.poll(0.05)
                    except kafka().KafkaException as error:
                        if error.args[0].code() != kafka().KafkaError._STATE:
                            raise
                        return  # A message before this one was refused.

    def _keys(self, rows: pa.Table) -> Sequence[bytes | None]:
        if not self.key:
            return [None] * rows.num_rows
        if len(self.key) > 1:
            return formats.json_objects(rows.select(list(self.key)))
        column = rows.column(self.key[0])
        if pt.is_binary(column.type) or pt.is_large_binary(column.type):
            return column.to_pylist()  # type: ignore[no-any-return]
        if pt.is_string(column.type):
            return [None if one is None else one.encode() for one in column.to_pylist()]
        return [None if one is None else one.strip('"').encode() for one in formats.json_texts(column).to_pylist()]

    def _values(self, rows: pa.Table) -> Sequence[bytes | None]:
        values: Sequence[bytes | None]
        if self.value == "avro":
            schema = avro_schema(rows.schema, self.topic, self.target)
            values = avro_values(rows, schema, self._clients.registry().register(self.topic, schema))
        else:
            values = formats.json_objects(rows)
        if not self.tombstones:
            return values
        signs = rows.column(SIGN).to_pylist()
        return [None if sign == "-" else value for sign, value in zip(signs, values, strict=True)]

    @property
    def _clients(self) -> _Clients:
        if self._key not in _CLIENTS:
            settings = client_settings({SERVERS: self.servers} if self.servers else {}, self.target)
            _CLIENTS[self._key] = _Clients(settings, self._id, self.target)
        return _CLIENTS[self._key]

    def close(self) -> None:
        """Close the connections of this process to the topic."""
        if clients := _CLIENTS.pop(self._key, None):
            clients.close()

    @property
    def _key(self) -> tuple[int, str, str]:
        return os.getpid(), self.servers, self._id

    @property
    def _id(self) -> str:
        return self.transactional_id or f"midstream.{self.topic}"


def _marks(stamp: Stamp, first: int, rows: int) -> list[bytes]:
    """Return the values of the header of a step's rows from an ordinal on.

    >>> _marks(Stamp("job", "1c0f", 12), 9, 2)
    [b'job/1c0f/12/9', b'job/1c0f/12/10']
    """
    step = f"{stamp.job}/{stamp.epoch}/{stamp.step}/"
    ordinals = pa.array(np.arange(first, first + rows)).cast(pa.string())
    together = pa.ListArray.from_arrays(pa.array([0, rows], pa.int32()), ordinals)
    text: str = pc.binary_join(together, f"\n{step}")[0].as_py()
    return f"{step}{text}".encode().split(b"\n")


class _Clients:
    """The connections of a sink, which stay from step to step: to begin transactions again would fence others."""

    def __init__(self, settings: Mapping[str, Any], id: str, place: str) -> None:
        self._settings, self._id, self._place = dict(settings), id, place
        self._registry: Registry | None = None
        self._reader: Any = None
        self._producer: Any = None

    @property
    def reader(self) -> Any:
        """The consumer that reads notes; it joins no group."""
        if self._reader is None:
            own = {"group.id": self._id, "isolation.level": "read_committed", "enable.auto.commit": False}
            self._reader = kafka().Consumer({**self._settings, **own})
        return self._reader

    def registry(self) -> Registry:
        if self._registry is None:
            self._registry = Registry.of_environment(self._place, WriteError)
        return self._registry

    def producer(self) -> Any:
        """The producer, which has fenced those before it."""
        if self._producer is None:
            own = {"transactional.id": self._id, "delivery.report.only.error": True, "linger.ms": 5}
            # As Java's clients choose partitions, so that topics of several writers can be joined by partition; and
            # room for a step's messages, because to wait for room costs a quarter of what they cost.
            first = {"partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000}
            made = kafka().Producer({**first, **self._settings, **own})
            made.init_transactions(_IN_TRANSACTION)
            self._producer = made
        return self._producer

    def close(self) -> None:
        """Close both clients; a transaction that was begun is aborted."""
        self.give_up()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def give_up(self) -> Any:
        """End what was begun; the next attempt finds out what the broker has of it.

        Returns: the error that the transaction has failed by, or None.
        """
        producer, self._producer = self._producer, None
        if producer is None:
            return None
        # To begin another one is refused, by the error that the first has failed by.
        ends = (producer.begin_transaction, lambda: producer.flush(1.0), producer.purge)
        first = None
        for end in (*ends, lambda: producer.abort_transaction(1.0)):
            try:
                end()
            except (kafka().KafkaException, SystemError) as error:  # It may be fenced, or the broker gone.
                cause = _cause(error)
                if cause is not None and cause.fatal():
                    return cause
                if cause is not None and cause.txn_requires_abort():
                    first = first or cause
        return first


def _cause(error: BaseException) -> Any:
    # The caller keeps no exception: its frame, and the producer in it, would stay.
    cause = error.__cause__ if isinstance(error, SystemError) else error
    return cause.args[0] if isinstance(cause, kafka().KafkaException) else None


_CLIENTS: dict[tuple[int, str, str], _Clients] = {}
