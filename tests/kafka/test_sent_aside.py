"""A step that is sent by a thread while the next one is done: nothing is lost, doubled, or committed too early."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.embedded.job_run import FileJob
from midstream.model.errors import UndeliveredError, WriteError
from midstream.pipeline.crash_points import CrashPoint
from midstream.sinks.kafka import KafkaSink
from midstream.sql.job_file import JobFile, parse_job
from tests.kafka.broker import Broker, job_text, mark, stream

ROWS = 16


class Sent:
    """A job of four steps; the first one is sent at once, because the job tidies up after it.

    `order` says what happened to each step: it was `done` but for its manifest, `committed`, `sent`.
    """

    def __init__(self, kafka: Broker, patch: pytest.MonkeyPatch) -> None:
        self.kafka, self.out, self.order = kafka, kafka.topic("out"), list[tuple[str, int]]()
        topic = kafka.topic("orders")
        kafka.send(topic, [{"k": k, "v": "x", "ts": f"2024-01-01T00:00:{k:02}Z"} for k in range(ROWS)])
        target = {"type": "kafka", "topic": self.out, "servers": kafka.servers}
        given = stream(kafka, topic, options={"maxOffsetsPerTrigger": 4})
        self.job: JobFile = parse_job(job_text({"A": given}, "SELECT k, v FROM A", target))
        self.done = {step: threading.Event() for step in range(ROWS)}
        self.fails: Callable[[int], bool] = lambda step: False
        write, reach, names = KafkaSink.write, CrashPoint.reach, {"after_chunks": "done", "after_manifest": "committed"}

        def writing(sink: KafkaSink, staged: Any) -> None:
            if threading.current_thread() is not threading.main_thread():
                assert self.done[staged.step + 1].wait(60)
            if self.fails(staged.step):
                raise WriteError("the broker is away", place="paid", remedy="wait")
            write(sink, staged)
            self.order.append(("sent", staged.step))

        def reaching(point: CrashPoint, here: str, step: int) -> None:
            if here in names:
                self.order.append((names[here], step))
            if here == "after_chunks":
                self.done[step].set()
            reach(point, here, step)

        patch.setattr(KafkaSink, "write", writing)
        patch.setattr(CrashPoint, "reach", reaching)

    def check(self) -> None:
        """Every row is in the topic once."""
        found = self.kafka.messages(self.out)
        assert sorted(row["k"] for row in self.kafka.rows(self.out)) == list(range(ROWS))
        assert set(Counter(map(mark, found)).values()) == {1}


@pytest.fixture
def sent(kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sent:
    monkeypatch.chdir(tmp_path)
    return Sent(kafka, monkeypatch)


def test_a_step_is_sent_while_the_next_one_is_done_and_before_that_is_committed(sent: Sent) -> None:
    with FileJob(sent.job) as job:
        while job.step():
            pass
        assert sent.order[:3] == [("done", 0), ("committed", 0), ("sent", 0)]
        assert sent.order[3:10] == [
            ("done", 1),
            ("committed", 1),
            ("done", 2),
            ("sent", 1),
            ("committed", 2),
            ("done", 3),
            ("sent", 2),
        ]
        assert sent.order[10:] == [("committed", 3), ("sent", 3)], "of the last one there is no next"
        assert not list(Path("ckpt").rglob("rows-*.parquet")), "what was staged is removed"
    sent.check()


def test_a_step_that_is_not_sent_stops_the_next_one(sent: Sent) -> None:
    sent.fails = lambda step: step == 1
    with FileJob(sent.job) as job:
        assert job.step() and job.step()
        for _ in range(2):
            with pytest.raises(WriteError, match="the broker is away"):
                job.step()
            assert job.engine.manifest.step == 1
        assert ("committed", 2) not in sent.order and len(sent.kafka.messages(sent.out)) == 4
        sent.fails = lambda step: False
        while job.step():
            pass
        assert not list(Path("ckpt").rglob("rows-*.parquet")), "also of what was done in vain"
    sent.check()


def test_a_job_has_patience_with_a_step_that_is_not_sent(sent: Sent) -> None:
    failures = iter([True, True])
    sent.fails = lambda step: step == 1 and next(failures, False)
    with FileJob(sent.job) as job:
        job.run(None, lambda: False, lambda patience: None)
    sent.check()


def test_a_job_that_is_closed_says_that_its_newest_step_is_not_sent(sent: Sent) -> None:
    sent.fails = lambda step: step == 1
    with pytest.raises(UndeliveredError, match="step 1 is committed"), FileJob(sent.job) as job:
        assert job.step() and job.step()
        sent.done[2].set()
    sent.fails = lambda step: step == 2
    with pytest.raises(ZeroDivisionError), FileJob(sent.job) as job:  # What failed first is what is said.
        assert job.step()
        sent.done[3].set()
        raise ZeroDivisionError
    sent.fails = lambda step: False
    with FileJob(sent.job) as job:
        while job.step():
            pass
    sent.check()


def test_a_command_waits_for_the_step_that_is_sent(sent: Sent) -> None:
    with FileJob(sent.job) as job:
        assert job.step() and job.step()
        assert sent.order[-1] == ("committed", 1)
        sent.done[2].set()
        job.engine.add_query("other", "SELECT k FROM A")
        assert sent.order[-1] == ("sent", 1)
        while job.step():
            pass
    sent.check()


def test_a_step_with_dead_letters_is_sent_at_once(sent: Sent, kafka: Broker) -> None:
    """Its dead letters are files, which a reader of them finds when the step has ended."""
    topic = sent.job.streams["A"].options["subscribe"]
    kafka.send(topic, [b"broken", *({"k": k, "v": "x", "ts": "2024-01-01T00:01:00Z"} for k in range(8))])
    with FileJob(sent.job) as job:
        while job.step() and not job.engine.dead_letters:
            pass
        assert sent.order[-2:] == [("committed", 4), ("sent", 4)]


def test_what_a_push_returns_is_in_the_topic(sent: Sent) -> None:
    spec = sent.job.streams["A"]
    with ms.Engine(checkpoint="program") as engine:
        engine.source("A", "kafka", "ts", spec.schema, value="json", options=spec.options)
        engine.add_query("q", "SELECT k FROM A", sink=KafkaSink(sent.out, sent.kafka.servers))
        for step in range(4):
            assert engine.pull() is not None
            assert sent.order[-1] == ("sent", step)
