"""A topic of Kafka as a source: its messages as rows, each read once.

A step reads of each partition a range of offsets, and "files" are these ranges: `orders[0]@100-250`. The manifest lists
those of its step. What was read for a step is kept until the manifest has its ranges, so a step that is done again in
this process gets the same messages; one that nothing was committed of may get more in another process.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from midstream.admission.given import one_table
from midstream.admission.refused_rows import CORRUPT, OFFSET, PARTITION, TOPIC
from midstream.embedded.file_formats import unread_file
from midstream.embedded.file_source import FileSource
from midstream.embedded.kafka_messages import Pile
from midstream.embedded.kafka_values import Decoder, Registered, decoder, texts
from midstream.model.allowed import KNOWN, check_source
from midstream.model.errors import CheckpointError, InputError, ReadError
from midstream.model.words import suggest
from midstream.sinks.kafka_client import ANSWER, client_settings, failed, failures, kafka
from midstream.sql.ddl import parse_ddl
from midstream.sql.job_specs import KAFKA_COLUMNS, SourceSpec

OWN_COLUMNS = parse_ddl(
    "key BINARY, value BINARY, topic VARCHAR, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT"
)
"""The columns of a stream without a schema."""

MOST_ROWS, MOST_BYTES = 1_000_000, 256 << 20
"""The most that a step reads where the options set no limit."""

_OPTIONS = {
    "subscribe",
    "startingoffsets",
    "startingtimestamp",
    "maxoffsetspertrigger",
    "maxbytespertrigger",
    "failondataloss",
}
_ON_SPARK = "leave it out, or run the job with --engine spark"
_EARLIEST, _LATEST = -2, -1
_AT_ONCE = 500
"""Messages that are taken from the client together: so few that the garbage collector never looks through them."""
_SILENCE = 30.0
"""Seconds without a message that must be there, until the step is tried again."""
_RANGE = re.compile(r"(.*)\[(\d+)\]@(\d+)-(\d+)")


class Range(NamedTuple):
    """The offsets of a partition that a step reads: from `first` up to, but not with, `end`."""

    topic: str
    partition: int
    first: int
    end: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.first}-{self.end}"

    @staticmethod
    def parse(text: str) -> Range:
        """The range that a manifest has as a text.

        >>> Range.parse("orders[0]@100-250")
        Range(topic='orders', partition=0, first=100, end=250)
        """
        found = _RANGE.fullmatch(text)
        if found is None:
            raise CheckpointError(
                f"{text!r} is not a range of offsets of a topic",
                place="the manifest",
                remedy="if the stream read files before, restart the job with another checkpoint",
            )
        return Range(found[1], *map(int, found.groups()[1:]))


class _Fetched(NamedTuple):
    """The messages of a range; `lost` is why offsets at its beginning are not among them, or empty."""

    range: Range
    messages: Sequence[pa.RecordBatch]
    lost: str


class _Places(NamedTuple):
    """Where the next step begins, by partition: at `positions`, which are behind the `firsts` where messages are
    `lost`, each with the reason. Of the `new` partitions no step has read.
    """

    positions: Mapping[int, int]
    firsts: Mapping[int, int]
    new: Sequence[int]
    lost: Mapping[int, str]


_WANTED_BY_SPARK = {
    "where Kafka is": ("kafka.bootstrap.servers",),
    "which topic it reads": ("subscribe", "subscribePattern", "assign"),
}


class KafkaSource(FileSource):
    """The messages of one topic, from all its partitions, those included that it gets while the job runs.

    Of a backlog each partition gives the same share of a step, because the order of event times holds only within one.
    """

    name = "kafka"
    on_spark = "midstream.spark.kafka_frames:frame_of"
    ahead = True

    def __init__(
        self,
        topic: str,
        columns: pa.Schema,
        decode: Decoder,
        options: Mapping[str, str],
        settings: Mapping[str, Any],
        place: str,
    ) -> None:
        self.topic, self.columns, self._options, self._place = topic, columns, options, place
        self._decode = decode
        self._settings = dict(settings)
        self.rows = int(options.get("maxoffsetspertrigger", MOST_ROWS))
        self._bytes = int(options.get("maxbytespertrigger", MOST_BYTES))
        self._skips = options.get("failondataloss", "true").lower() == "false"
        self._client: Any = None
        self._ahead: dict[int, Pile] = {}
        self._at: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._paused: set[int] = set()
        self._fetched: dict[str, _Fetched] = {}
        self._high: dict[int, int] = {}
        self._interrupted = False

    @staticmethod
    def reads(spec: SourceSpec) -> bool:
        """Return whether this source reads a stream that Spark's connector could read as well."""
        given = {key.lower(): value for key, value in spec.options.items()}
        known = given.keys() <= _OPTIONS | {key for key in KNOWN["kafka"] if key.startswith("kafka.")}
        return spec.format == "kafka" and known and "," not in given.get("subscribe", "")

    @classmethod
    def for_spark(cls, name: str, spec: SourceSpec) -> KafkaSource | None:
        """Make the source of a stream; None where its options need Spark's connector, which reads JSON only."""
        if cls.reads(spec):
            return cls.of(name, spec)
        super().for_spark(name, spec)
        place, given = f"[streams.{name}]", {option.lower() for option in spec.options}
        for what, wanted in _WANTED_BY_SPARK.items():
            if not given & {option.lower() for option in wanted}:
                raise InputError(
                    f"stream {name!r} does not say {what}",
                    place=place,
                    remedy=f"give the option {' or '.join(wanted)}; see docs/kafka.md",
                )
        if spec.value not in (None, "json"):
            raise InputError(
                f"stream {name!r} cannot have values of {spec.value}, because its options need "
                "Spark's connector, which reads only JSON",
                place=place,
                remedy="name one topic in subscribe, and leave out the options of Spark's connector: see docs/kafka.md",
            )
        return None

    @staticmethod
    def of(name: str, spec: SourceSpec, known: pa.Schema | None = None) -> KafkaSource:
        """The source of a stream of a job file. Raises an `InputError` where its options name no topic."""
        place = f"[streams.{name}]"
        check_source("kafka", spec.options, place)
        own = {key.lower(): value for key, value in spec.options.items() if not key.lower().startswith("kafka.")}
        given = {key.lower().removeprefix("kafka."): v for key, v in spec.options.items() if key.lower() not in own}
        if unknown := sorted(own.keys() - _OPTIONS):
            raise InputError(
                f"the embedded engine does not support the option {unknown[0]!r} of kafka",
                place=place,
                remedy=_ON_SPARK,
            )
        topic = own.get("subscribe", "").strip()
        if not topic or "," in topic:
            raise InputError(
                f"a stream must read one topic, not {topic or 'none'}",
                place=place,
                remedy='name the topic: options = { subscribe = "orders", ... }',
            )
        for option in ("maxoffsetspertrigger", "maxbytespertrigger", "startingtimestamp"):
            if not re.fullmatch(r"[1-9]\d*", own.get(option, "1")):
                raise InputError(
                    f"the option {option} is not a whole number above 0",
                    place=place,
                    remedy="use a whole number of at least 1",
                )
        if spec.on_data_loss == "skip":
            own["failondataloss"] = "false"
        _starting_offsets(own, topic, place)
        columns = OWN_COLUMNS if spec.schema is None else parse_ddl(spec.schema)
        settings = {"isolation.level": "read_committed", "group.id": f"midstream-{name}", **given}
        decode = decoder(spec.value or "json", topic, place)
        return KafkaSource(topic, columns, decode, own, client_settings(settings, place), place)

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process gets the declaration, and opens a connection of its own.
        given = (self.topic, self.columns, self._decode, self._options, self._settings, self._place)
        return type(self), given

    @property
    def beside(self) -> tuple[str, ...]:
        """Name what says which message a row is."""
        return CORRUPT, TOPIC, PARTITION, OFFSET

    def waiting(self, read: Collection[str]) -> tuple[str, ...]:
        """The ranges of the next step; the same ones again until they were read."""
        known = self._positions(read)
        ranges = [one.range for one in self._fetched.values()]
        if ranges and all(
            one.first == known.get(one.partition, one.first) and file not in read
            for file, one in zip(self._fetched, ranges, strict=True)
        ):
            return tuple(self._fetched)
        with failures(self._place, InputError):
            self._fetched = {str(one.range): one for one in self._fetch(known)}
        return tuple(self._fetched)

    def read(self, files: Sequence[str]) -> pa.Table:
        """The rows of ranges that `waiting` gave, next to them which message each is, for dead letters."""
        tables = []
        for file in files:
            fetched = self._fetched.get(file)
            tables += self._tables(self._planned(Range.parse(file)) if fetched is None else fetched)
        return one_table(tables, self.columns) if tables else self.columns.empty_table()

    def plan(
        self, read: Collection[str], most: int | None = None, ends: Mapping[int, int] | None = None
    ) -> list[Range]:
        """Choose the ranges of the next step for other processes to read.

        By their offsets alone, unless the options limit the bytes of a step: then its messages are fetched, because
        Kafka says in no other way how large they are.

        Args:
            read: For each partition a range that was read.
            most: The messages of the step at most; without it all that wait.
            ends: By partition where to end at the latest.
        """
        known = self._positions(read)
        if "maxbytespertrigger" in self._options:
            with failures(self._place, InputError):
                ranges = [one.range for one in self._fetch(known)]
            limits = [(one, (ends or {}).get(one.partition, one.end)) for one in ranges]
            ranges = [one._replace(end=max(one.first, min(one.end, limit))) for one, limit in limits]
            return [one for one in ranges if one.first < one.end or one.partition not in known]
        with failures(self._place, InputError):
            found = self._find(known)
        highs = {one: min(high, (ends or {}).get(one, high)) for one, high in self._high.items()}
        behind = [one for one, position in found.positions.items() if position < highs[one]]
        share = None if most is None else max(1, most // max(1, len(behind)))
        reached = dict(found.positions)
        for one in behind:
            reached[one] = highs[one] if share is None else min(highs[one], reached[one] + share)
        self._at = dict(reached)
        due = {*behind, *found.new, *found.lost}
        return [Range(self.topic, one, found.firsts[one], reached[one]) for one in sorted(due)]

    @property
    def highs(self) -> Mapping[int, int]:
        """By partition the end that was found last."""
        return self._high

    def ends(self) -> dict[int, int]:
        """Ask by partition for the offset behind its last message."""
        with failures(self._place, InputError):
            return {one: self._bounds(one)[1] for one in self._partitions()}

    def forgettable(self, read: Mapping[str, int], kept: Collection[int]) -> set[str]:
        """All ranges but the last of each partition, now and at each of the `kept` steps."""
        needed = set[str]()
        ranges = [(Range.parse(file), file, step) for file, step in read.items()]
        for step in (*kept, max(read.values(), default=0)):
            last: dict[int, tuple[int, str]] = {}
            for one, file, at in ranges:
                if at <= step:
                    last[one.partition] = max(last.get(one.partition, (-1, "")), (one.end, file))
            needed.update(file for _, file in last.values())
        return set(read) - needed

    def backlog(self, waiting: Sequence[str], taken: Sequence[str]) -> dict[str, int]:
        """Return by partition how many offsets lie between what is taken and its end."""
        return {
            f"[{partition}]": max(0, high - self._at.get(partition, high)) for partition, high in self._high.items()
        }

    def check(self) -> None:
        """Raise where the topic is not there, or the broker does not answer."""
        with failures(self._place, InputError):
            self._partitions()
        if isinstance(self._decode, Registered):
            self._decode.check(self._of_values)
        self._decode(pa.array([], pa.large_binary()), self._of_values)

    def interrupt(self) -> None:
        """Have no more messages awaited."""
        self._interrupted = True

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _positions(self, read: Collection[str]) -> dict[int, int]:
        found: dict[int, int] = {}
        for one in map(Range.parse, read):
            if one.topic != self.topic:
                raise CheckpointError(
                    f"the job has read the topic {one.topic!r} in this stream, not {self.topic!r}",
                    place=self._place,
                    remedy="name that topic, or restart the job with another checkpoint",
                )
            found[one.partition] = max(one.end, found.get(one.partition, 0))
        return found

    @property
    def _consumer(self) -> Any:
        if self._client is None:
            settings = {
                "fetch.wait.max.ms": 20,  # The end of a partition is known once a fetch has waited.
                "fetch.queue.backoff.ms": 10,
                **self._settings,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
            self._client = kafka().Consumer(settings)
        return self._client

    def _partitions(self) -> list[int]:
        consumer = self._consumer
        described = consumer.list_topics(self.topic, timeout=ANSWER).topics[self.topic]
        if described.error is not None and described.error.code() != kafka().KafkaError.LEADER_NOT_AVAILABLE:
            if "UNKNOWN_TOPIC" not in described.error.name():
                raise failed(described.error, self._place, InputError)
            topics = list(consumer.list_topics(timeout=ANSWER).topics)
            raise InputError(
                f"there is no topic {self.topic!r}", place=self._place, remedy=suggest(self.topic, topics or ["(none)"])
            )
        if not described.partitions:
            raise ReadError("the topic has no leader yet", place=self._place, remedy="check that the broker runs")
        return sorted(described.partitions)

    def _fetch(self, known: Mapping[int, int]) -> list[_Fetched]:
        """Fetch what the next step reads; the ranges of new partitions are given even where nothing is in them, so that
        the manifest says where they begin.
        """
        found = self._find(known)
        positions = found.positions
        self._take_from(positions)
        behind = [one for one in positions if positions[one] < self._high[one] or self._ahead[one].rows]
        rows, size = self._shares(behind)
        if behind:
            self._fill(behind, positions, rows, size)
        due = [one for one in positions if one in behind or one in found.new or one in found.lost]
        return [self._cut(one, found.firsts[one], rows, size, found.lost.get(one, "")) for one in due]

    def _planned(self, range: Range) -> _Fetched:
        partition = range.partition
        with failures(self._place, InputError):
            first, lost = self._first_there(partition, range.first, self._bounds(partition)[0])
            self._take_from({partition: first})
            self._high = {partition: range.end}
            if first < range.end:
                self._fill([partition], {partition: first}, range.end - first, sys.maxsize)
        self._at = {}  # What was fetched beyond the range is left.
        return _Fetched(range, self._ahead[partition].take_to(range.end), lost)

    def _find(self, known: Mapping[int, int]) -> _Places:
        """Find up to which offset the job has read each partition, and the end of each."""
        partitions = self._partitions()
        if gone := sorted(known.keys() - set(partitions)):
            raise CheckpointError(
                f"partition {gone[0]} of the topic {self.topic!r}, which the job has read, no longer exists",
                place=self._place,
                remedy="if the topic was deleted and created again, restart the job with another checkpoint",
            )
        bounds = {one: self._bounds(one) for one in partitions}
        new = [one for one in partitions if one not in known]
        firsts = {**known, **self._starts(new, bounds, first=not known)}
        positions, lost = dict[int, int](), dict[int, str]()
        for one, position in firsts.items():
            low, high = bounds[one]
            if position > high:
                raise CheckpointError(
                    f"{self.topic}[{one}] ends at offset {high}, but the job has read up to {position}",
                    place=self._place,
                    remedy="if the topic was deleted and created again, restart the job with another checkpoint",
                )
            positions[one], why = self._first_there(one, position, low)
            if why:
                lost[one] = why
        self._high = {one: high for one, (_, high) in bounds.items()}
        order = sorted(partitions)
        return _Places({one: positions[one] for one in order}, firsts, new, lost)

    def _first_there(self, partition: int, position: int, low: int) -> tuple[int, str]:
        """Return the first offset to read that the topic still has, and why others are lost; "" if none are."""
        if position >= low:
            return position, ""
        lost = f"offsets {position} to {low - 1} of {self.topic}[{partition}] are gone: the topic no longer keeps them"
        if not self._skips:
            raise InputError(
                lost,
                place=self._place,
                remedy='to continue without these messages, give the stream on_data_loss = "skip"',
            )
        return low, lost

    def _shares(self, behind: Sequence[int]) -> tuple[int, int]:
        """Return a partition's share of a step: the most rows, the most bytes."""
        return max(1, self.rows // max(1, len(behind))), max(1, self._bytes // max(1, len(behind)))

    def _bounds(self, partition: int) -> tuple[int, int]:
        found = self._consumer.get_watermark_offsets(self._of(partition), timeout=ANSWER)
        if found is None:
            raise ReadError(
                f"Kafka does not report the last offset of {self.topic}[{partition}]",
                place=self._place,
                remedy="check that the broker runs",
            )
        return int(found[0]), int(found[1])

    def _of(self, partition: int, offset: int = 0) -> Any:
        return kafka().TopicPartition(self.topic, partition, offset)

    def _starts(self, new: Sequence[int], bounds: Mapping[int, tuple[int, int]], *, first: bool) -> dict[int, int]:
        given = _starting_offsets(self._options, self.topic, self._place)
        if not new or not first:
            return {one: bounds[one][0] for one in new}
        if "startingtimestamp" in self._options:
            moment = int(self._options["startingtimestamp"])
            found = self._consumer.offsets_for_times([self._of(one, moment) for one in new], timeout=ANSWER)
            return {one.partition: one.offset if one.offset >= 0 else bounds[one.partition][1] for one in found}
        if isinstance(given, int):
            given = dict.fromkeys(new, given)
        if missing := sorted(set(new) - given.keys()):
            raise InputError(
                f"startingOffsets has no offset for partition {missing[0]}",
                place=self._place,
                remedy="name every partition of the topic; -2 is the beginning of a partition, and -1 is the end",
            )
        ends = {_EARLIEST: 0, _LATEST: 1}
        return {one: bounds[one][ends[given[one]]] if given[one] in ends else given[one] for one in new}

    def _take_from(self, positions: Mapping[int, int]) -> None:
        """Have the consumer stand where the job does, with what is fetched ahead."""
        if self._at == positions:
            return
        # `assign` leaves paused partitions paused. A resume after it could discard its offsets (librdkafka issue 2190).
        self._pause((), self._paused)
        self._ahead = {one: Pile(self._kinds) for one in positions}
        self._at, self._ends = dict(positions), {}
        self._consumer.assign([self._of(one, offset) for one, offset in positions.items()])

    def _fill(self, behind: Collection[int], positions: Mapping[int, int], rows: int, size: int) -> None:
        """Consume until of each partition there are `rows` messages or `size` bytes, or all up to its end."""

        def has_shares(one: int, count: int = 1) -> bool:
            return self._ahead[one].rows >= count * rows or self._ahead[one].size >= count * size

        def is_due(one: int) -> bool:
            reached = max(positions[one], self._ahead[one].end, self._ends.get(one, -1))
            return not has_shares(one) and reached < self._high[one]

        due = {one for one in behind if is_due(one)}
        spoke = time.monotonic()
        while due:
            # A pause throws away what the client has fetched: only of a partition that brings far more than others.
            self._pause({one for one in self._at if has_shares(one, 2)}, due)
            first = self._consumer.poll(0.1)
            messages = [] if first is None else [first, *self._consumer.consume(_AT_ONCE, 0)]
            if self._sorted(messages):
                spoke = time.monotonic()
            due = {one for one in due if is_due(one)}
            if due and (self._interrupted or time.monotonic() - spoke > _SILENCE):
                raise ReadError(
                    f"Kafka sends no messages of {self.topic}{sorted(due)}",
                    place=self._place,
                    remedy="check that the broker runs, and that no transaction on the topic is still open",
                )

    def _sorted(self, messages: Sequence[Any]) -> bool:
        kind = kafka().Message
        if any(map(kind.error, messages)):
            self._ended([one for one in messages if one.error() is not None])
            messages = [one for one in messages if one.error() is None]
        for partition, together in groupby(messages, kind.partition):
            self._ahead[partition].add(list(together))
        return bool(messages)

    def _ended(self, messages: Iterable[Any]) -> None:
        """Note which partitions have ended; raise where something else is wrong with one."""
        for message in messages:
            error, partition = message.error(), message.partition()
            if error.code() == kafka().KafkaError._PARTITION_EOF:
                self._ends[partition] = message.offset()
            elif error.code() == kafka().KafkaError._AUTO_OFFSET_RESET:
                self._at = {}
                raise ReadError(
                    f"cannot read {self.topic}[{partition}], because Kafka has just deleted the next messages",
                    place=self._place,
                    remedy="try again",
                )
            elif not error.retriable() and error.code() not in _transport():
                raise failed(error, self._place, InputError)

    def _pause(self, full: Collection[int], due: Collection[int]) -> None:
        """Bring no more messages of partitions that have two steps' shares already, and again those of others."""
        if pausing := [self._of(one) for one in full if one not in self._paused]:
            self._consumer.pause(pausing)
        if resuming := [self._of(one) for one in due if one in self._paused]:
            self._consumer.resume(resuming)
        self._paused = (self._paused | set(full)) - set(due)

    def _cut(self, partition: int, first: int, rows: int, size: int, lost: str) -> _Fetched:
        """Take a step's share of a partition off what was fetched ahead."""
        messages = self._ahead[partition].take(rows, size)
        end = messages[-1].column("offset")[-1].as_py() + 1 if messages else self._at[partition]
        if not self._ahead[partition].rows and self._ends.get(partition, -1) >= end:
            end = self._ends[partition]  # Behind the last message are marks of transactions.
        self._at[partition] = end
        return _Fetched(Range(self.topic, partition, first, end), messages, lost)

    def _tables(self, fetched: _Fetched) -> list[pa.Table]:
        found = []
        if fetched.lost:
            found.append(
                self._named(unread_file(self.columns, fetched.lost), fetched.range, pa.array([fetched.range.first]))
            )
        for piece in fetched.messages:
            rows = self._decoded(piece, fetched.range.partition)
            found.append(self._named(rows, fetched.range, piece.column("offset")))
        return found

    def _named(self, rows: pa.Table, range: Range, offsets: pa.Array) -> pa.Table:
        alike = pa.array(np.zeros(rows.num_rows, np.int8))
        rows = rows.append_column(TOPIC, pa.DictionaryArray.from_arrays(alike, pa.array([self.topic])))
        rows = rows.append_column(PARTITION, pa.array(np.full(rows.num_rows, range.partition, np.int32)))
        return rows.append_column(OFFSET, offsets)

    def _decoded(self, messages: pa.RecordBatch, partition: int) -> pa.Table:
        others = self._of_values
        rows = self._decode(messages.column("value"), others) if others else None
        found = {} if rows is None else {name: rows.column(name) for name in rows.column_names}
        for name, kind in self._own_names.items():
            found[name] = self._own(kind, self.columns.field(name), messages, partition)
        table = pa.table({field.name: found.pop(field.name) for field in self.columns})
        for name, column in found.items():
            table = table.append_column(name, column)
        return table

    @cached_property
    def _kinds(self) -> set[str]:
        return {kind.removesuffix("Type") for kind in self._own_names.values()} & {"key", "timestamp"}

    @cached_property
    def _own_names(self) -> dict[str, str]:
        names = {own: own for own in OWN_COLUMNS.names} if self.columns == OWN_COLUMNS else KAFKA_COLUMNS
        return {name: kind for name, kind in names.items() if name in self.columns.names}

    @cached_property
    def _of_values(self) -> pa.Schema:
        return pa.schema([field for field in self.columns if field.name not in self._own_names])

    def _own(self, kind: str, field: pa.Field, messages: pa.RecordBatch, partition: int) -> pa.Array:
        if kind == "topic":
            return pa.repeat(self.topic, len(messages))
        if kind == "partition":
            return pa.array(np.full(len(messages), partition, np.int32))
        column = messages.column(kind)
        if kind in ("key", "value"):
            return texts(column, field)
        if kind == "timestamp":
            return pa.array(column.to_numpy() * 1000, pa.timestamp("us", "UTC"))
        return pa.array(column.to_numpy().astype(np.int32) - 1) if kind == "timestampType" else column


def _transport() -> set[int]:
    errors = kafka().KafkaError
    return {errors._ALL_BROKERS_DOWN, errors._TRANSPORT, errors._RESOLVE, errors._TIMED_OUT}


def _starting_offsets(options: Mapping[str, str], topic: str, place: str) -> int | dict[int, int]:
    given = options.get("startingoffsets", "latest")
    if given.lower() in ("earliest", "latest"):
        return _EARLIEST if given.lower() == "earliest" else _LATEST
    try:
        offsets = json.loads(given)[topic]
        return {int(partition): int(offset) for partition, offset in offsets.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"startingOffsets is {given!r}",
            place=place,
            remedy=f'use earliest, latest, or offsets by partition: \'{{"{topic}": {{"0": 1200, "1": -2}}}}\'',
        ) from error
