"""Topics as sources of the embedded engine, each message read once, by a real broker."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.embedded import kafka_source
from midstream.embedded.job_run import FileJob
from midstream.embedded.kafka_source import KafkaSource
from midstream.model.errors import CheckpointError, InputError, ReadError
from midstream.sql.job_file import parse_job
from tests.kafka.broker import Broker, broker, job_text, stream

ALL = "SELECT k, v, _ts FROM A"
PAIRS = "SELECT A.k, A.v, B.v AS w FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def row(k: int, seconds: float | None = None, v: str = "v") -> dict[str, Any]:
    moment = k if seconds is None else seconds
    return {"k": k, "v": v, "ts": f"2024-01-01T00:{int(moment // 60):02}:{moment % 60:09.6f}Z"}


def job(streams: Mapping[str, Mapping[str, Any]], sql: str = ALL) -> FileJob:
    return FileJob(parse_job(job_text(streams, sql, {"format": "parquet", "path": "out"})))


def drain(streams: Mapping[str, Mapping[str, Any]], sql: str = ALL, steps: int = 100) -> int:
    """Run until nothing waits; how many steps that took."""
    with job(streams, sql) as running:
        done = 0
        while done < steps and running.step():
            done += 1
        return done


def results() -> list[dict[str, Any]]:
    return [one for file in sorted(Path("out").glob("step=*/*.parquet")) for one in pq.read_table(file).to_pylist()]


def keys() -> list[int]:
    return sorted(one["k"] for one in results())


def dead(streams: Mapping[str, Mapping[str, Any]], sql: str = ALL) -> list[dict[str, Any]]:
    with job(streams, sql) as running:
        return [one for table in running.engine.dead_letters.values() for one in table.to_pylist()]


def test_every_message_is_read_once_in_steps_of_the_size_that_is_given(kafka: Broker) -> None:
    topic = kafka.topic("orders", 3)
    for partition in range(3):
        kafka.send(topic, [row(k) for k in range(partition, 30, 3)], partition)
    streams = {"A": stream(kafka, topic, options={"maxOffsetsPerTrigger": 6})}
    assert drain(streams, steps=2) == 2
    assert keys() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], "each partition gives its share"
    assert drain(streams) == 3
    assert keys() == list(range(30))
    kafka.send(topic, [row(k) for k in range(30, 33)], 1)
    assert drain(streams) == 1
    assert keys() == list(range(33))
    assert drain(streams) == 0


def test_a_step_has_no_more_bytes_than_are_asked_for(kafka: Broker) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [row(k, v="x" * 1000) for k in range(20)])
    assert drain({"A": stream(kafka, topic, options={"maxBytesPerTrigger": 5000})}) == 4
    assert keys() == list(range(20))


def test_ranges_for_other_processes_have_no_more_bytes_either(kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    kafka.send(topic, [row(k, v="x" * 1000) for k in range(20)], 0)
    kafka.send(topic, [row(k, v="y" * 2000) for k in range(3)], 1)
    spec = parse_job(
        job_text({"A": stream(kafka, topic, options={"maxBytesPerTrigger": 10_000})}, ALL, {"path": "out"})
    ).streams["A"]
    source, read, ends = KafkaSource.of("A", spec), dict[int, str](), {0: 18, 1: 3}
    steps = list[list[str]]()
    while ranges := source.plan(read.values(), source.rows, ends):
        steps.append([str(one).removeprefix(topic) for one in ranges])
        read |= {one.partition: str(one) for one in ranges}
        assert len(steps) < 10
    source.close()
    assert steps == [["[0]@0-5", "[1]@0-3"], ["[0]@5-15"], ["[0]@15-18"]]


def test_messages_of_two_topics_are_joined(kafka: Broker) -> None:
    topics = {name: kafka.topic(name, 2) for name in "AB"}
    for topic in topics.values():
        for partition in range(2):
            kafka.send(topic, [row(k) for k in range(partition, 20, 2)], partition)
    drain({name: stream(kafka, topic) for name, topic in topics.items()}, PAIRS)
    assert keys() == list(range(20))


def test_a_partition_that_comes_while_the_job_runs_is_read_from_its_beginning(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic("orders", 3)
    kafka.send(topic, [row(0)])
    with job({"A": stream(kafka, topic, options={"startingOffsets": "latest"})}) as running:
        with monkeypatch.context() as patched:
            # No broker here adds partitions: all but the first are not shown at first.
            patched.setattr(KafkaSource, "_partitions", lambda self: [0])
            assert running.step(), "where the topic ends now is in the manifest"
            assert not running.step()
            kafka.send(topic, [row(1)])
            kafka.send(topic, [row(2)], 2)
            assert running.step()
            assert not running.step()
        assert running.step()
        assert not running.step()
    assert keys() == [1, 2]


def test_a_paused_partition_is_read_on_after_the_topic_gets_another(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic("orders", 3)
    for partition in range(2):
        kafka.send(topic, [row(k) for k in range(20)], partition)
    text = job_text({"A": stream(kafka, topic, options={"maxOffsetsPerTrigger": 4})}, ALL, {"path": "out"})
    source, read = KafkaSource.of("A", parse_job(text).streams["A"]), list[str]()
    # The first partition that is fetched has two shares of the step before the other has any message.
    monkeypatch.setattr(kafka_source, "_AT_ONCE", 1)
    with monkeypatch.context() as patched:
        patched.setattr(KafkaSource, "_partitions", lambda self: [0, 1])
        read += source.waiting(read)
    assert source._paused, "what this test is about"
    while ranges := source.waiting(read):
        read += ranges
    source.close()
    assert {f"{topic}[{partition}]@18-20" for partition in range(2)} <= set(read)


def test_latest_is_the_end_when_the_job_began_first(kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    kafka.send(topic, [row(0)])
    streams = {"A": stream(kafka, topic, options={"startingOffsets": "latest"})}
    assert drain(streams) == 1
    kafka.send(topic, [row(1)], 1)
    assert drain(streams) == 1
    assert keys() == [1]


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("earliest", [0, 1, 2, 3, 4]),
        ('{"TOPIC": {"0": 3}}', [3, 4]),
        ('{"TOPIC": {"0": -2}}', [0, 1, 2, 3, 4]),
        ('{"TOPIC": {"0": -1}}', []),
    ],
)
def test_where_a_job_begins(kafka: Broker, start: str, found: list[int]) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [row(k) for k in range(5)])
    drain({"A": stream(kafka, topic, options={"startingOffsets": start.replace("TOPIC", topic)})})
    assert keys() == found


def test_a_job_begins_at_a_time(kafka: Broker) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [row(0)])
    time.sleep(0.01)
    kafka.send(topic, [row(1), row(2)])
    moment = kafka.messages(topic)[1].timestamp()[1]
    drain({"A": stream(kafka, topic, options={"startingTimestamp": moment})})
    assert keys() == [1, 2]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"startingOffsets": "yesterday"}, "startingOffsets is 'yesterday'"),
        ({"startingOffsets": '{"TOPIC": {}}'}, "startingOffsets has no offset for partition 0"),
        ({"maxOffsetsPerTrigger": 0}, "not a whole number above 0"),
        ({"subscribe": "a,b"}, "a stream must read one topic"),
        ({"minPartitions": 3}, "does not support the option 'minpartitions'"),
        ({"kafka.sasl.jaas.config": "x"}, "comes from the job file"),
        ({"kafka.bootstrap.servers": ""}, "no setting says where Kafka is"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_read(kafka: Broker, options: dict[str, Any], says: str) -> None:
    topic = kafka.topic("orders")
    given = {name: str(value).replace("TOPIC", topic) for name, value in options.items()}
    with pytest.raises(InputError, match=says):
        drain({"A": stream(kafka, topic, options=given)})


def test_a_topic_that_is_not_there(kafka: Broker) -> None:
    kafka.topic("orders")
    with pytest.raises(InputError, match="there is no topic 'order'"):
        drain({"A": stream(kafka, "order")})


def test_a_login_goes_to_no_other_servers(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDSTREAM_KAFKA_SASL_PASSWORD", "secret")
    monkeypatch.setenv("MIDSTREAM_KAFKA_BOOTSTRAP_SERVERS", "elsewhere:9092")
    with pytest.raises(InputError, match="not for the servers"):
        drain({"A": stream(kafka, "orders")})


BAD = (
    b'{"k": 1, "ts"',
    b"3",
    b"[]",
    b"",
    None,
    b'{"k": 1, "v": "\xff", "ts": "2024-01-01T00:00:03Z"}',
    b'{"k": "one", "ts": "2024-01-01T00:00:03Z"}',
    b'{"k": 1, "ts": "soon"}',
    b'{"k": 1}',
)


def test_what_cannot_be_decoded_is_a_dead_letter_with_its_message(kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    kafka.send(topic, [row(0), *BAD, row(1)], 1)
    streams = {"A": stream(kafka, topic)}
    drain(streams)
    assert keys() == [0, 1]
    found = dead(streams)
    assert [one["_offset"] for one in found] == list(range(1, 1 + len(BAD)))
    assert {(one["_topic"], one["_partition"]) for one in found} == {(topic, 1)}
    assert [one["_reason"] for one in found][:5] == ["column 'k': the value is not a JSON object"] * 5 or all(
        "not a JSON object" in one["_reason"] for one in found[:5]
    ), [one["_reason"] for one in found]
    assert "cannot read 'one' as int64" in found[6]["_reason"]


def test_a_whole_number_may_have_a_point_or_a_power_of_ten(kafka: Broker) -> None:
    topic = kafka.topic("orders")
    values = [json.dumps(row(k)).replace('"k": ', '"k": 1').encode() for k in range(4)]
    ends = (b".0,", b"e1,", b".5,", b",")
    kafka.send(topic, [value.replace(b",", end, 1) for value, end in zip(values, ends, strict=True)])
    streams = {"A": stream(kafka, topic)}
    drain(streams)
    assert keys() == [10, 13, 110]
    assert [one["_reason"] for one in dead(streams)] == ["column 'k': cannot read '12.5' as int64"]


def test_a_value_on_several_lines_is_one_row(kafka: Broker) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [json.dumps(row(1), indent=2).encode(), b'{"k": 7, "ts": "2024-01-01T00:00:03Z"}\n{}', row(2)])
    drain({"A": stream(kafka, topic)})
    assert keys() == [1, 2]


def test_what_kafka_says_of_a_message(kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    kafka.send(topic, [row(5)], 1, b"12")
    schema = "k BIGINT, kafka_key BIGINT, kafka_topic VARCHAR, kafka_partition INT, kafka_offset BIGINT, "
    given = stream(kafka, topic, schema=schema + "kafka_timestamp TIMESTAMP", timestamp="kafka_timestamp")
    drain({"A": given}, "SELECT k, kafka_key, kafka_topic, kafka_partition, kafka_offset FROM A")
    (found,) = results()
    assert found == {"k": 5, "kafka_key": 12, "kafka_topic": topic, "kafka_partition": 1, "kafka_offset": 0}


def test_bytes_without_a_schema(kafka: Broker) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [b"\x00\xff", None], 0, b"k")
    given = {name: one for name, one in stream(kafka, topic).items() if name not in ("schema", "value")}
    drain({"A": {**given, "timestamp": "timestamp"}}, "SELECT key, value, partition, offset FROM A")
    assert [(one["key"], one["value"], one["offset"]) for one in results()] == [(b"k", b"\x00\xff", 0), (b"k", None, 1)]


def test_marks_of_transactions_are_no_messages(kafka: Broker) -> None:
    topic = kafka.topic("orders")
    for at in range(3):
        kafka.send_in_transaction(topic, [row(2 * at), row(2 * at + 1)])
    streams = {"A": stream(kafka, topic)}
    assert drain(streams) == 1
    assert keys() == list(range(6))
    assert drain(streams) == 0


def test_a_slow_partition_holds_back_the_watermark_and_an_idle_one_does_not(kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    streams = {"A": stream(kafka, topic, idle_timeout="5 minutes")}
    kafka.send(topic, [row(k) for k in (0, 100)], 0)
    kafka.send(topic, [row(1)], 1)
    drain(streams)
    kafka.send(topic, [row(2)], 1)
    drain(streams)
    assert keys() == [0, 1, 2, 100], "2 is old, but not in its partition"
    kafka.send(topic, [row(1000)], 0)
    drain(streams)
    kafka.send(topic, [row(3), row(1001)], 1)
    drain(streams)
    assert keys() == [0, 1, 2, 100, 1000, 1001], "3 is late: its partition had been idle for too long"


def test_messages_that_the_topic_keeps_no_longer(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [row(k) for k in range(6)])
    streams = {"A": stream(kafka, topic, options={"maxOffsetsPerTrigger": 2})}
    assert drain(streams, steps=1) == 1
    # No broker here removes old messages: the topic is said to begin later.
    bounds = KafkaSource._bounds
    monkeypatch.setattr(KafkaSource, "_bounds", lambda self, one: (4, bounds(self, one)[1]))
    with pytest.raises(InputError, match=r"offsets 2 to 3 of .* are gone"):
        drain(streams)
    skipping = {"A": {**streams["A"], "on_data_loss": "skip"}}
    drain(skipping)
    assert keys() == [0, 1, 4, 5]
    (lost,) = dead(skipping)
    assert "offsets 2 to 3" in lost["_reason"]


def test_a_topic_that_was_made_anew_is_told(kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    kafka.send(topic, [row(0), row(1)])
    streams = {"A": stream(kafka, topic)}
    drain(streams)
    kafka.remove(topic)
    kafka.admin.create_topics([_new(topic)])[topic].result(30)
    with pytest.raises(CheckpointError, match=r"partition 1 of the topic .*, which the job has read, no longer exists"):
        drain(streams)


def _new(topic: str) -> Any:
    from confluent_kafka.admin import NewTopic

    return NewTopic(topic, 1, 1)


@pytest.mark.parametrize("lost", ["stop", "skip"])
def test_a_broker_that_comes_back_without_its_memory(lost: str) -> None:
    # Nobody knows how many messages are lost, so none are skipped either.
    with broker(own=True) as own:
        topic = own.topic("orders")
        own.send(topic, [row(k) for k in range(30)])
        with job({"A": stream(own, topic, on_data_loss=lost)}) as running:
            assert running.step()
            own.restart()
            with pytest.raises(InputError, match=f"there is no topic '{topic}'"):
                running.step()
            own.topic_again(topic)
            with pytest.raises(CheckpointError, match="ends at offset 0, but the job has read up to 30"):
                running.step()
            own.send(topic, [row(k) for k in range(100, 110)])
            with pytest.raises(CheckpointError, match="ends at offset 10, but the job has read up to 30") as error:
                running.step()
            assert "with another checkpoint" in str(error.value)
            assert running.engine.manifest.step == 0
    assert keys() == list(range(30))


def test_the_lag_of_each_partition_is_in_the_times(kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    kafka.send(topic, [row(k) for k in range(5)], 0)
    kafka.send(topic, [row(k) for k in range(3)], 1)
    with job({"A": stream(kafka, topic, options={"maxOffsetsPerTrigger": 4})}) as running:
        running.step()
        assert running.engine.times[-1].backlog == {"A[0]": 3, "A[1]": 1}


def test_a_step_that_fails_reads_the_same_again(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [row(0), row(1)])
    with job({"A": stream(kafka, topic)}) as running:
        pushed: list[Sequence[str]] = []
        push = running.engine.push

        def failing(tables: Any, **more: Any) -> Any:
            pushed.append(more["read"]["A"])
            if len(pushed) == 1:
                raise OSError("no room")
            return push(tables, **more)

        monkeypatch.setattr(running.engine, "push", failing)
        with pytest.raises(OSError):
            running.step()
        kafka.send(topic, [row(2)])
        running.step()
        running.step()
    assert pushed[0] == pushed[1] == (f"{topic}[0]@0-2",)
    assert keys() == [0, 1, 2]


def test_the_next_step_is_read_while_one_is_done(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic("orders", 2)
    for partition in range(2):
        kafka.send(topic, [row(k) for k in range(partition, 10, 2)], partition)
    streams = {"A": stream(kafka, topic, options={"maxOffsetsPerTrigger": 4})}
    with job(streams) as running:
        read: list[Sequence[str]] = []
        asked = threading.Semaphore(0)
        waiting, push = KafkaSource.waiting, running.engine.push

        def asking(self: KafkaSource, read: Any) -> Any:
            found = waiting(self, read)
            asked.release()
            return found

        def failing_once(tables: Any, **more: Any) -> Any:
            if not read:
                assert asked.acquire(timeout=10), "the first step was read"
                assert asked.acquire(timeout=10), "and the next is read meanwhile"
            read.append(more["read"]["A"])
            if len(read) == 1:
                raise OSError("no room")
            return push(tables, **more)

        monkeypatch.setattr(KafkaSource, "waiting", asking)
        monkeypatch.setattr(running.engine, "push", failing_once)
        with pytest.raises(OSError):
            running.step()
        kafka.send(topic, [row(10), row(11)])
        assert running.step()
        assert running.engine.times[-1].backlog == {"A[0]": 3, "A[1]": 3}
        assert running.step()
    assert read[0] == read[1] == (f"{topic}[0]@0-2", f"{topic}[1]@0-2")
    assert read[2] == (f"{topic}[0]@2-4", f"{topic}[1]@2-4")
    assert drain(streams) == 2, "what was read ahead for a step that was not done is read again"
    assert keys() == list(range(12))


def test_a_broker_that_does_not_answer_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "ANSWER", 0.5)
    with broker(own=True) as own, job({"A": stream(own, own.topic("orders"))}) as running:
        assert own.process is not None
        topic = own.made[0]
        own.send(topic, [row(0)])
        running.step()
        own.send(topic, [row(1)])
        own.process.send_signal(signal.SIGSTOP)
        with pytest.raises(ReadError, match="Kafka"):
            running.step()
        own.process.send_signal(signal.SIGCONT)
        running.run(None, lambda: False, lambda patience: None)
    assert keys() == [0, 1]


def test_a_program_reads_topics_and_folders(kafka: Broker) -> None:
    topic, folder = kafka.topic("orders", 2), Path("names")
    folder.mkdir()
    (folder / "a.json").write_text('{"k": 1, "w": "one", "ts": "2024-01-01T00:00:01Z"}\n')
    kafka.send(topic, [row(k) for k in range(3)], 1)
    options = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic, "startingOffsets": "earliest"}

    def opened() -> ms.Engine:
        engine = ms.Engine(checkpoint="ckpt")
        shape = "k BIGINT, v VARCHAR, ts TIMESTAMP"
        engine.source("A", "kafka", "ts", shape, "5 seconds", value="json", options=options)
        engine.source("B", "json", "ts", "k BIGINT, w VARCHAR, ts TIMESTAMP", "5 seconds", path=str(folder))
        engine.add_query("q", "SELECT A.k, w FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS")
        return engine

    with opened() as engine:
        found = engine.pull()
        assert found is not None and found["q"].to_pylist() == [{"k": 1, "w": "one"}]
        assert engine.pull() is None
        engine.push({"A": [{"k": 1, "v": "pushed", "ts": datetime(2024, 1, 1, 0, 0, 2, tzinfo=UTC)}]})
    kafka.send(topic, [row(1, 3)])
    with opened() as engine:
        found = engine.pull()
        assert found is not None and found["q"].to_pylist() == [{"k": 1, "w": "one"}], "nothing is read twice"
        assert engine.pull() is None


def test_a_source_needs_a_checkpoint_and_a_format_that_is_there() -> None:
    with ms.Engine() as engine, pytest.raises(InputError, match="give the engine a checkpoint"):
        engine.source("A", "json", "ts", "k BIGINT, ts TIMESTAMP", path=".")
    with ms.Engine(checkpoint="ckpt") as engine:
        with pytest.raises(InputError, match="the format 'kafak'"):
            engine.source("A", "kafak", "ts", "k BIGINT, ts TIMESTAMP", path=".")
        with pytest.raises(InputError, match="unknown format 'xml'"):
            engine.source("A", "kafka", "ts", "k BIGINT, ts TIMESTAMP", value="xml", options={"subscribe": "a"})


def test_an_empty_key_is_a_text_and_no_key_is_null(kafka: Broker) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [row(0)], 0, b"")
    kafka.send(topic, [row(1)], 0)
    given = stream(kafka, topic, schema="k BIGINT, kafka_key VARCHAR, ts TIMESTAMP")
    drain({"A": given}, "SELECT k, kafka_key FROM A")
    assert [(one["k"], one["kafka_key"]) for one in results()] == [(0, ""), (1, None)]


def test_an_empty_key_that_is_read_as_a_number_is_a_dead_letter(kafka: Broker) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [row(0)], 0, b"")
    kafka.send(topic, [row(1)], 0, b"7")
    given = {"A": stream(kafka, topic, schema="k BIGINT, kafka_key BIGINT, ts TIMESTAMP")}
    drain(given, "SELECT k, kafka_key FROM A")
    assert [(one["k"], one["kafka_key"]) for one in results()] == [(1, 7)]
    (found,) = dead(given, "SELECT k, kafka_key FROM A")
    assert found["_offset"] == 0


def test_a_message_of_two_megabytes(kafka: Broker) -> None:
    topic = kafka.topic("orders")
    large = json.dumps(row(1, v="x" * 2_000_000)).encode()
    kafka.send(topic, [row(0), large, row(2)])
    drain({"A": stream(kafka, topic)})
    assert [(one["k"], len(one["v"])) for one in results()] == [(0, 1), (1, 2_000_000), (2, 1)]
