"""A job on Spark sends its results to a topic of a real broker: each step once, whatever fails and when."""

from __future__ import annotations

import json
import shutil
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
from tests.kafka.broker import Broker, broker
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
