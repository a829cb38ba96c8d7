"""A topic as a sink: each step in one transaction with the note of it, by a broker that fences producers."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.embedded.job_run import FileJob
from midstream.model.errors import SinkError, WriteError
from midstream.model.time_line import Epoch, TimeLine
from midstream.sinks import kafka as kafka_module
from midstream.sinks.kafka import KafkaSink
from midstream.sql.job_file import parse_job
from tests.docs.pages import ROOT, Page
from tests.kafka.broker import Broker, broker, job_text, mark, mock_broker, stream
from tests.sinks.steps import commit, staged

ROWS = pa.table({"k": [1, 2, 3], "s": ["a", None, "c\n"]})


def sink(kafka: Broker, topic: str, **more: Any) -> KafkaSink:
    return KafkaSink.of({"topic": topic, "servers": kafka.servers, **more})


def as_a_new_process() -> None:
    """The next write is that of a process which has not written yet."""
    kafka_module._CLIENTS.clear()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_an_engine_that_is_closed_lets_its_clients_go(kafka: Broker, tmp_path: Path) -> None:
    """A process that makes many jobs, one after the other, has no more files open than with the first one."""
    counts = list[int]()
    for number in range(3):
        topic = kafka.topic("closed")
        with ms.Engine(checkpoint=tmp_path / f"{number}") as engine:
            engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
            engine.add_query("q", "SELECT k FROM A", sink=sink(kafka, topic))
            engine.push({"A": [{"k": 1, "ts": datetime(2024, 1, 1)}]})
            assert engine.dead_letters == {}
            while_open = open_files()
        assert kafka.rows(topic) == [{"k": 1}]
        counts.append(open_files())
        assert counts[-1] < while_open
    assert counts[-1] <= counts[0]


def test_a_step_is_sent_once_with_its_keys_and_headers(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic("paid", 2)
    own = sink(kafka, topic, key="k")
    own.open()
    assert own.newest("q") is None
    for _ in range(3):
        commit(own, tmp_path, 4, ROWS)
        as_a_new_process()
    assert own.newest("q").step == 4  # type: ignore[union-attr]
    found = kafka.messages(topic)
    assert sorted(json.loads(one.value())["k"] for one in found) == [1, 2, 3]
    assert {one.key().decode(): json.loads(one.value()) for one in found} == {
        "1": {"k": 1, "s": "a"},
        "2": {"k": 2},
        "3": {"k": 3, "s": "c\n"},
    }
    headers = [dict(one.headers()) for one in found]
    assert {one["midstream.row"] for one in headers} == {b"job/first/4/0", b"job/first/4/1", b"job/first/4/2"}
    commit(own, tmp_path, 5, ROWS)
    assert len(kafka.messages(topic)) == 6


@pytest.mark.parametrize(
    ("key", "found"),
    [((), [None] * 3), ("s", [b"a", None, b"c\n"]), (["k", "s"], [b'{"k": 1, "s": "a"}', b'{"k": 2}'])],
)
def test_keys(kafka: Broker, tmp_path: Path, key: Any, found: list[bytes | None]) -> None:
    topic = kafka.topic("paid")
    commit(sink(kafka, topic, key=key), tmp_path, 0, ROWS)
    assert [one.key() for one in kafka.messages(topic)][: len(found)] == found


def test_rows_that_go_are_tombstones(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic("open")
    own = sink(kafka, topic, key="k", tombstones=True)
    commit(own, tmp_path, 0, pa.table({"k": [1, 1], "_op": ["+", "-"]}))
    assert [(one.key(), one.value()) for one in kafka.messages(topic)] == [
        (b"1", b'{"k": 1, "_op": "+"}'),
        (b"1", None),
    ]


def test_a_producer_that_was_fenced_commits_nothing(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic("paid")
    own = sink(kafka, topic)
    commit(own, tmp_path, 0, ROWS)
    first = dict(kafka_module._CLIENTS)
    as_a_new_process()
    commit(own, tmp_path, 1, ROWS)
    second = dict(kafka_module._CLIENTS)
    kafka_module._CLIENTS.update(first)
    with pytest.raises(WriteError, match="another driver"):
        commit(own, tmp_path, 2, ROWS)
    assert own.newest("q").step == 1  # type: ignore[union-attr]
    kafka_module._CLIENTS.update(second)
    commit(own, tmp_path, 2, ROWS)
    assert own.newest("q").step == 2  # type: ignore[union-attr]


def test_a_step_of_another_time_line_is_refused(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.topic("paid")
    own = sink(kafka, topic)
    commit(own, tmp_path, 3, ROWS)
    other = TimeLine("other", (Epoch(1, "else", 0),))
    with pytest.raises(SinkError, match="not on the time line"):
        own.write(staged(own, tmp_path, 2, ROWS, line=other))
    assert len(kafka.messages(topic)) == 3


def test_what_was_sent_cannot_be_taken_back(kafka: Broker, tmp_path: Path) -> None:
    own = sink(kafka, kafka.topic("paid"))
    commit(own, tmp_path, 3, ROWS)
    own.forget_after("q", 3)
    with pytest.raises(SinkError, match="cannot be taken back"):
        own.check_forget("q", 2, lambda stamp: True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"topic": "a topic"}, "is not the name of a topic"),
        ({"topic": "paid", "tombstones": True}, "tombstones need a key"),
        ({"topic": "paid", "password": "x"}, "cannot be made"),
    ],
)
def test_options_that_are_none(options: dict[str, Any], says: str) -> None:
    with pytest.raises(SinkError, match=says):
        KafkaSink.of(options)


def test_a_topic_that_is_not_there_and_a_key_that_the_query_does_not_give(kafka: Broker) -> None:
    with pytest.raises(SinkError, match="Remedy: make the topic"):
        sink(kafka, "nowhere").open()
    with pytest.raises(SinkError, match="no column 'id'"):
        sink(kafka, "paid", key="id").check_columns(ROWS.schema)


def test_a_message_that_is_too_large_waits_for_the_mend(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic("paid")
    own = sink(kafka, topic)
    large = pa.table({"k": [1, 2], "s": ["x", "y" * 2_000_000]})
    with pytest.raises(WriteError, match=r"(?s)too large.*MIDSTREAM_KAFKA_CONFIG"):
        commit(own, tmp_path, 0, large)
    assert own.newest("q") is None
    monkeypatch.setenv("MIDSTREAM_KAFKA_MESSAGE_MAX_BYTES", "4000000")
    as_a_new_process()
    commit(own, tmp_path, 0, large)
    assert own.newest("q").step == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("error", "says"), [(10, r"(?s)too large.*MIDSTREAM_KAFKA_CONFIG"), (29, "(?s)right on the topic")]
)
@pytest.mark.parametrize("rows", [2, 200_000])
def test_what_the_broker_refuses_of_messages_is_said(error: int, says: str, rows: int, tmp_path: Path) -> None:
    with mock_broker("paid", error) as servers:
        own = KafkaSink.of({"topic": "paid", "servers": servers})
        with pytest.raises(WriteError, match=says):
            commit(own, tmp_path, 0, pa.table({"k": range(rows)}))
        assert own.newest("q") is None
        commit(own, tmp_path, 0, pa.table({"k": range(rows)}))
        own.close()


def test_two_queries_do_not_write_one_topic(kafka: Broker, tmp_path: Path) -> None:
    own = sink(kafka, kafka.topic("paid"))
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("p", "SELECT k FROM A", sink=own)
        with pytest.raises(SinkError, match="already gets"):
            engine.add_query("q", "SELECT k FROM A WHERE k > 1", sink=own)
            engine.push({"A": []})


def test_a_job_from_topic_to_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with broker() as own:
        topics = {name: own.topic(name, 2) for name in "AB"}
        out = own.topic("out", 2)
        values = [{"k": k, "v": str(k), "ts": f"2024-01-01T00:00:{k:02}Z"} for k in range(20)]
        for topic in topics.values():
            for k, value in enumerate(values):
                own.send(topic, [value], k % 2)
        streams = {name: stream(own, topic) for name, topic in topics.items()}
        sql = "SELECT A.k, B.v FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"
        target = {"type": "kafka", "topic": out, "servers": own.servers, "key": ["k"]}
        with FileJob(parse_job(job_text(streams, sql, target))) as job:
            while job.step():
                pass
        assert Counter(one["k"] for one in own.rows(out)) == Counter(range(20))


def test_the_job_file_of_the_page_runs(kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    orders, payments, paid = kafka.topic("orders", 2), kafka.topic("payments"), kafka.topic("paid")
    for at in range(4):
        order = {"id": at, "ts": "2024-01-01T00:00:00Z", "amount": 1.25, "more": [1]}
        kafka.send(orders, [{**order, "ts": datetime.now(UTC).isoformat()}], at % 2)
    for at in range(6):
        kafka.send(payments, [{"method": "cash"}], 0, str(at).encode())
    text = Page(ROOT / "docs" / "kafka.md").fences("toml")[0].replace("broker:9092", kafka.servers)
    for name, topic in (("orders", orders), ("payments", payments), ("paid", paid)):
        text = text.replace(f'subscribe = "{name}"', f'subscribe = "{topic}"').replace(
            f'topic = "{name}"', f'topic = "{topic}"'
        )
    with FileJob(parse_job(text)) as job:
        assert job.step()
    found = kafka.messages(paid)
    assert sorted((one.key(), json.loads(one.value())["amount"]) for one in found) == [
        (b"%d" % k, "1.25") for k in range(4)
    ]
    assert {json.loads(one.value())["origin"] for one in found} == {0, 1}


def test_dead_letters_go_to_a_topic_once(kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    topic, out, dead = kafka.topic("orders"), kafka.topic("out"), kafka.topic("rejected")
    target = {"type": "kafka", "topic": out, "servers": kafka.servers}
    given = stream(kafka, topic, dead_letters={**target, "topic": dead})
    text = job_text({"A": given}, "SELECT k, v FROM A", target)
    good = {"k": 1, "v": "x", "ts": "2024-01-01T00:00:01Z"}
    kafka.send(topic, [good, b"broken"])
    with FileJob(parse_job(text)) as job:
        assert job.step()
    kafka.send(topic, [b"[]", {**good, "k": "one"}])
    with monkeypatch.context() as patched:

        def dies(self: KafkaSink, staged: Any) -> None:
            raise RuntimeError("the job dies")

        patched.setattr(KafkaSink, "write", dies)
        with FileJob(parse_job(text)) as job, pytest.raises(ms.MidstreamError, match="the job dies"):
            job.step()
    as_a_new_process()
    with FileJob(parse_job(text)) as job:
        while job.step():
            pass
        assert sum(table.num_rows for table in job.engine.dead_letters.values()) == 3, "they are in the checkpoint, too"
    assert [(one["_topic"], one["_partition"], one["_offset"]) for one in kafka.rows(dead)] == [
        (topic, 0, offset) for offset in (1, 2, 3)
    ]
    assert "not a JSON object" in kafka.rows(dead)[0]["_reason"]
    assert len(kafka.rows(out)) == 1


def test_one_topic_for_results_and_dead_letters_is_refused(kafka: Broker, tmp_path: Path) -> None:
    own = sink(kafka, kafka.topic("paid"))
    with ms.Engine(checkpoint=tmp_path / "ckpt") as engine:
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts", dead_letters=own)
        engine.add_query("p", "SELECT k FROM A", sink=own)
        with pytest.raises(SinkError, match="already gets"):
            engine.push({"A": []})
    with ms.Engine() as engine, pytest.raises(ms.InputError, match="no sinks"):
        engine.create_stream("A", "k BIGINT, ts TIMESTAMP", timestamp="ts", dead_letters=own)


def test_a_broker_that_is_away_while_results_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kafka_module, "_IN_TRANSACTION", 0.5)
    monkeypatch.setattr(kafka_module, "ANSWER", 0.5)
    with broker(own=True) as own:
        topic, out = own.topic("orders"), own.topic("out")
        own.send(topic, [{"k": k, "v": "x", "ts": "2024-01-01T00:00:01Z"} for k in range(3)])
        text = job_text(
            {"A": stream(own, topic)}, "SELECT k, v FROM A", {"type": "kafka", "topic": out, "servers": own.servers}
        )
        with FileJob(parse_job(text)) as job:
            write, process, said = KafkaSink.write, own.process, list[str]()
            assert process is not None

            def away(self: KafkaSink, staged: Any) -> None:
                if not said:
                    process.send_signal(signal.SIGSTOP)
                write(self, staged)

            monkeypatch.setattr(KafkaSink, "write", away)
            with pytest.raises(ms.MidstreamError, match="committed, but a sink has not taken its results"):
                job.step()
            process.send_signal(signal.SIGCONT)
            said.append("back")
            job.run(None, lambda: False, lambda patience: None)  # It has patience.
        rows = [json.loads(one.value())["k"] for one in own.messages(out)]
        assert set(rows) == {0, 1, 2}
        assert len({mark(one) for one in own.messages(out)}) == 3
