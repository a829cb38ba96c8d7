"""Topics of a real broker as streams of a job on Spark, by the source that the embedded engine has too."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from midstream.checkpoint.manifest_log import ManifestLog
from midstream.cli.main import main
from midstream.cli.spark_job import job_of
from midstream.embedded.job_run import FileJob
from midstream.model.errors import CheckpointError, InputError, MidstreamError
from midstream.pipeline.step_times import StepTimes
from midstream.sinks import kafka as kafka_sinks
from midstream.sql.job_file import parse_job
from tests.kafka.broker import Broker, broker, job_text, stream
from tests.kafka.test_kills import LATENESS, Case
from tests.spark.drive import finish
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.test_kafka import MALFORMED, UNREADABLE


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with broker() as begun:
        yield begun


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def row(k: int) -> dict[str, Any]:
    return {"k": k, "v": "v", "ts": f"2024-01-01T00:00:{k:02}Z"}


def text_of(streams: Mapping[str, Any], sql: str, place: str) -> str:
    text = job_text(streams, sql, {"path": f"{place}/out"})
    return text.replace('"ckpt"', f'"{place}/ckpt"')


def on_spark(spark: SparkSession, streams: Mapping[str, Any], sql: str = "SELECT k FROM A") -> None:
    finish(job_of(spark, parse_job(text_of(streams, sql, "spark"))))


def rows_below(folder: str) -> list[dict[str, Any]]:
    found = [one for file in sorted(Path(folder).rglob("*.parquet")) for one in pq.read_table(file).to_pylist()]
    return sorted(found, key=repr)


def keys(place: str = "spark") -> list[int]:
    return sorted(one["k"] for one in rows_below(f"{place}/out"))


def test_one_job_file_gives_the_same_rows_and_dead_letters_on_both_hosts(
    spark: SparkSession, kafka: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, texts, changes, bare = (kafka.topic(name, 2) for name in ("orders", "texts", "changes", "bare"))
    good = [json.dumps({"id": k, "ts": row(k)["ts"], "amount": 1.5, "note": "n"}).encode() for k in range(1, 5)]
    kafka.send(orders, [*good[:2], *MALFORMED, *UNREADABLE], 0)
    kafka.send(orders, good[2:], 1, key=b"7")
    kafka.send(texts, [b"12", b"\xff", b"13", b"x", None], 1)
    inserted = {"op": "c", "after": {"k": 3, "ts": row(3)["ts"]}}
    kafka.send(changes, [inserted, {"op": "d", "before": {"k": 3}, "after": None}, {"op": "u"}, b"{", None])
    kafka.send(bare, [b"\x00\x01", None])
    own = {"schema": "n BIGINT, kafka_timestamp TIMESTAMP", "timestamp": "kafka_timestamp"}
    no_schema = {**stream(kafka, bare, timestamp="timestamp")}
    del no_schema["schema"], no_schema["value"]
    streams = {
        "A": stream(
            kafka,
            orders,
            schema="id BIGINT, ts TIMESTAMP, amount DECIMAL(12, 2), note VARCHAR, kafka_key INT, kafka_partition INT",
        ),
        "T": stream(kafka, texts, value="text", **own),
        "D": stream(kafka, changes, value="debezium", schema="k BIGINT, ts TIMESTAMP"),
        "K": no_schema,
    }
    queries = {
        "T": "SELECT n FROM T",
        "D": "SELECT k FROM D",
        "K": "SELECT key, value, topic, partition, offset, timestampType FROM K",
    }
    texts_of = {}
    for place in ("spark", "embedded"):
        text = text_of(streams, "SELECT id, amount, note, kafka_key, kafka_partition FROM A", place)
        for name, sql in queries.items():
            text += f'\n[queries.{name}]\nsql = "{sql}"\nsink = {{ path = "{place}/{name}" }}'
        texts_of[place] = text
    assert main(["check", str(written(texts_of["spark"])), "--engine", "spark"]) == 0, capsys.readouterr()
    finish(job_of(spark, parse_job(texts_of["spark"])))
    with FileJob(parse_job(texts_of["embedded"])) as job:
        while job.step():
            pass
    for name, count in {"out": 5, "T": 3, "D": 1, "K": 2}.items():
        assert rows_below(f"spark/{name}") == rows_below(f"embedded/{name}")
        assert len(rows_below(f"spark/{name}")) == count
    for name, count in {"A": len(MALFORMED + UNREADABLE) - 1, "T": 2, "D": 4}.items():
        here, there = (rows_below(f"{place}/ckpt/dead_letters/{name}") for place in ("spark", "embedded"))
        assert len(there) == count
        assert [which(one) for one in here] == [which(one) for one in there]


def which(letter: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(letter.get(name) for name in ("_topic", "_partition", "_offset", "_reason", "_corrupt_record", "ts"))


def written(text: str) -> Path:
    Path("job.toml").write_text(text)
    return Path("job.toml")


def test_what_a_job_began_with_stays(spark: SparkSession, kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    kafka.send(topic, [row(1)])
    streams = {"A": stream(kafka, topic, options={"startingOffsets": "latest"})}
    on_spark(spark, streams)
    kafka.send(topic, [row(2)], 0)
    kafka.send(topic, [row(3)], 1)
    on_spark(spark, streams)
    assert keys() == [2, 3]


def test_a_slow_partition_holds_back_the_watermark_and_an_idle_one_does_not(spark: SparkSession, kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    streams = {"A": stream(kafka, topic, idle_timeout="5 minutes")}
    waves: list[dict[int, list[int]]] = [{0: [0, 100], 1: [1]}, {1: [2]}, {0: [1000]}, {1: [3, 1001]}]
    for wave in waves:
        for partition, seconds in wave.items():
            values = [{"k": k, "ts": f"2024-01-01T00:{k // 60:02}:{k % 60:02}Z"} for k in seconds]
            kafka.send(topic, values, partition)
        on_spark(spark, streams)
        with FileJob(parse_job(text_of(streams, "SELECT k FROM A", "embedded"))) as job:
            while job.step():
                pass
    assert keys() == keys("embedded") == [0, 1, 2, 100, 1000, 1001], "3 is late: its partition had been idle"


def test_what_waits_is_counted_by_partition(spark: SparkSession, kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    kafka.send(topic, [row(k) for k in range(5)], 0)
    kafka.send(topic, [row(k) for k in range(5, 8)], 1)
    streams = {"A": stream(kafka, topic, options={"maxOffsetsPerTrigger": 4}, lateness="1 minute")}
    counted = list[Mapping[str, int]]()
    amend = StepTimes.amend

    def noting(self: StepTimes, step: int, phases: Mapping[str, float], backlog: Mapping[str, int]) -> None:
        counted.append(dict(backlog))
        amend(self, step, phases, backlog)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StepTimes, "amend", noting)
        on_spark(spark, streams)
    assert keys() == list(range(8))
    assert {"A[0]": 3, "A[1]": 1} in counted


def test_no_secret_is_in_a_checkpoint(spark: SparkSession, kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.topic("orders")
    kafka.send(topic, [row(1)])
    monkeypatch.setenv("MIDSTREAM_KAFKA_BOOTSTRAP_SERVERS", kafka.servers)
    monkeypatch.setenv("MIDSTREAM_KAFKA_SASL_PASSWORD", "hidden-word")
    on_spark(spark, {"A": stream(kafka, topic)})
    assert keys() == [1]
    files = [one for one in Path("spark/ckpt").rglob("*") if one.is_file()]
    assert files
    assert not any(b"hidden-word" in one.read_bytes() for one in files)


def test_what_is_wrong_with_a_topic_is_told_by_name(spark: SparkSession, kafka: Broker) -> None:
    topic = kafka.topic("orders", 2)
    kafka.send(topic, [row(k) for k in range(3)])
    with pytest.raises(InputError, match=f"there is no topic '{topic}x'"):
        on_spark(spark, {"A": stream(kafka, f"{topic}x")})
    on_spark(spark, {"A": stream(kafka, topic)})
    with pytest.raises(CheckpointError, match="the job has read the topic"):
        on_spark(spark, {"A": stream(kafka, kafka.topic("other"))})
    kafka.remove(topic)
    kafka.topic_again(topic, 1)
    with pytest.raises(CheckpointError, match=r"partition 1 of the topic .* no longer exists"):
        on_spark(spark, {"A": stream(kafka, topic)})


def test_a_broker_that_does_not_answer_is_an_error_after_the_patience(spark: SparkSession) -> None:
    nobody = Broker("127.0.0.1:9")
    text = text_of({"A": stream(nobody, "orders")}, "SELECT k FROM A", "spark").replace("20 seconds", "1 second")
    with pytest.raises(MidstreamError, match="check that the broker runs"):
        finish(job_of(spark, parse_job(text)))


KILLS = ("amid_tasks", "after_manifest", "amid_messages", "before_commit", "after_commit")
"""One in each next step; a step that was not committed is delivered first by the next driver."""


@pytest.mark.verify
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [3])
def test_the_driver_of_a_job_between_topics_is_killed(
    spark: SparkSession, drivers: ForkedDrivers, kafka: Broker, tmp_path: Path, seed: int
) -> None:
    case = Case(kafka, seed)
    text = case.job().replace("ckpt", "checkpoint").replace(f"{LATENESS} seconds", "5 minutes")
    written(text)
    killed, manifests = 0, ManifestLog(tmp_path / "checkpoint" / "manifests")
    for point in KILLS:
        case.send()
        newest = manifests.latest()
        step = 0 if newest is None else newest.step + 1
        named = {} if "messages" in point or "commit" in point else {"MIDSTREAM_KILL_AT": f"{point}:{step}"}
        done = drivers.run("tests.spark.topic_job", tmp_path, point, str(step), **named)
        assert done.returncode in (0, -signal.SIGKILL), (point, step, done)
        killed += done.returncode != 0
        case.note_what_was_aborted()
    kafka_sinks._CLIENTS.clear()
    finish(job_of(spark, parse_job(text)))
    assert killed >= len(KILLS) - 1, "a step may have no messages"
    found, marks = case.found()
    assert found == case.expected()
    assert set(marks.values()) <= {1}
