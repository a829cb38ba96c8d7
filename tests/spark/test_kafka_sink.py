"""A job on Spark sends its results to a topic of a real broker: each step once, whatever fails and when."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.cli.main import main
from midstream.sinks import kafka as kafka_sinks
from tests.kafka.broker import Broker, broker, mark
from tests.kafka.killed_job import SINK_POINTS
from tests.spark.drive import Place
from tests.spark.drive import finish as finish_job
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.kafka_job import CASE, STREAMS
from tests.spark.kafka_job import the_job as job_of_topic
from tests.spark.test_time_lines import each, feed, finish, the_job


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with broker() as begun:
        yield begun


@pytest.mark.verify
@pytest.mark.timeout(900)
def test_a_job_on_spark_with_a_topic(
    spark: SparkSession, kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic("results", 2)
    sink = {"type": "kafka", "topic": topic, "servers": kafka.servers, "key": ["a"]}
    aborted = set[tuple[int, int]]()

    def do(*seconds: int) -> None:
        feed(tmp_path, *seconds)
        finish(the_job(spark, tmp_path, q=sink).start({"availableNow": True}))

    def places() -> set[tuple[int, int]]:
        return {(one.partition(), one.offset()) for one in kafka.messages(topic, "read_uncommitted")}

    def found() -> dict[int, int]:
        rows = [one for one in kafka.messages(topic) if (one.partition(), one.offset()) not in aborted]
        return dict(sorted(Counter(int(json.loads(one.value())["a"][17:19]) for one in rows).items()))

    class Broken(confluent_kafka.Producer):
        """One whose driver dies before, or after, the commit of a transaction."""

        after = False

        def commit_transaction(self, *args: Any) -> None:
            self.flush(5)
            if self.after:
                super().commit_transaction(*args)
            raise RuntimeError("the driver dies")

    do(0)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "backup")
    assert found() == each(range(1))
    for second, after in ((1, True), (2, False)):
        before = places()
        with monkeypatch.context() as patched:
            Broken.after = after
            patched.setattr(confluent_kafka, "Producer", Broken)
            kafka_sinks._CLIENTS.clear()
            with pytest.raises(Exception, match="the driver dies"):
                do(second)
        if not after:
            aborted |= places() - before
        do()
        assert found() == each(range(second + 1))
    assert main(["rewind", str(tmp_path / "checkpoint"), "1"]) != 0, "messages stay where they are"
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.move(tmp_path / "backup", tmp_path / "checkpoint")
    with pytest.raises(ms.CheckpointError, match="newest step is 0"):
        do(4)
    assert found() == each(range(3)), "a job that is refused changes nothing"


KILLS = (
    ("amid_tasks", 0), ("amid_messages", 1), ("before_offsets", 1), ("before_commit", 1), ("after_commit", 1),
    ("after_manifest", 2), ("amid_messages", 2), ("before_sink", 3), ("after_commit", 3),
)  # fmt: skip
"""One after the other on the same checkpoint; a step that was not committed is delivered first by the next driver."""


@pytest.mark.verify
@pytest.mark.timeout(900)
def test_the_driver_is_killed_amid_its_transactions(
    spark: SparkSession, drivers: ForkedDrivers, kafka: Broker, tmp_path: Path
) -> None:
    topic, place, aside = kafka.topic("results", 2), Place(tmp_path), set[tuple[int, int]]()
    for step, tables in enumerate(CASE.steps):
        for spec in STREAMS:
            place.feed(spec.name, step, tables.get(spec.name, spec.schema.empty_table()))
    for point, step in KILLS:
        named = {} if point in SINK_POINTS else {"MIDSTREAM_KILL_AT": f"{point}:{step}"}
        done = drivers.run("tests.spark.kafka_job", tmp_path, topic, kafka.servers, point, str(step), **named)
        assert done.returncode == -signal.SIGKILL, (point, step, done)
        aside |= kafka.aborted(topic)
    kafka_sinks._CLIENTS.clear()
    finish_job(job_of_topic(spark, tmp_path, topic, kafka.servers))
    assert place.manifest().queries["chain"].plan == "(A (B C))"
    found, marks = Counter[tuple[int, ...]](), Counter[tuple[int, int]]()
    for message in kafka.messages(topic):
        if (message.partition(), message.offset()) not in aside:
            row = json.loads(message.value())
            found[row["a"], row["b"], row["c"]] += 1
            marks[mark(message)] += 1
    expected = CASE.expected()["chain"].table.select(["a", "b", "c"])
    assert found == Counter(zip(*expected.to_pydict().values(), strict=True))
    assert set(marks.values()) == {1}


@pytest.mark.verify
def test_dead_letters_of_a_job_on_spark_go_to_a_topic(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic, folder = kafka.topic("rejected"), tmp_path / "in"
    folder.mkdir()
    rows = [{"k": 1, "ts": "2024-01-01T00:00:01Z"}, {"k": "one", "ts": "2024-01-01T00:00:01Z"}]
    for number in range(2):
        (folder / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        frame = spark.readStream.schema("k STRING, ts STRING").json(str(folder))
        job = ms.Job(spark, tmp_path / "checkpoint", lanes=2, durable=False)
        own = {"type": "kafka", "topic": topic, "servers": kafka.servers}
        job.stream("A", frame, "ts", schema="k BIGINT, ts TIMESTAMP", dead_letters=own)
        job.query("q", "SELECT k FROM A", sink=ms.sinks.files(tmp_path / "out"))
        finish(job.start({"availableNow": True}))
        kafka_sinks._CLIENTS.clear()
    found = kafka.rows(topic)
    assert [one["k"] for one in found] == ["one", "one"]
    assert len({mark(one)[0] for one in kafka.messages(topic)}) == 2
