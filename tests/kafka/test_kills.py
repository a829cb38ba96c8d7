"""Random topics through a join whose plan changes, its process killed: each result is there once, as DuckDB says.

The broker shows readers what was sent in transactions that were aborted. So after a kill what is there of a step that
the note does not have is put aside; everything else must be there once.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from midstream.embedded.job_run import FileJob
from midstream.pipeline.crash_points import POINTS
from midstream.sql.job_file import parse_job
from tests.drawing import FIFTHS, SOAK, chosen_fifth
from tests.forked import forks, run
from tests.kafka.broker import Broker, job_text, mark, stream
from tests.kafka.killed_job import ASIDE_POINTS, KAFKA_POINTS, PLANS

CASES = 300
QUICK = 2
"""Cases that `make test` runs, of the fifth that is chosen."""

WINDOW, LATENESS = 6, 4
SQL = f"SELECT A.u AS a, B.u AS b, C.u AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW {WINDOW} SECONDS"
EVERY_POINT = (*(point for point in POINTS if point != "before_job"), *KAFKA_POINTS)


def seeds() -> list[Any]:
    quick = {len(FIFTHS) * n + chosen_fifth() for n in range(QUICK)}
    return [pytest.param(n, marks=() if n in quick or SOAK else (pytest.mark.verify,)) for n in range(CASES)]


class Case:
    """Topics with rows out of order, sent in waves, and the results as DuckDB finds them."""

    def __init__(self, kafka: Broker, seed: int) -> None:
        self.random, self.kafka = random.Random(seed), kafka
        self.out = kafka.topic("out", self.random.randint(1, 3))
        self.partitions = {name: self.random.randint(1, 3) for name in "ABC"}
        self.topics = {name: kafka.topic(name, count) for name, count in self.partitions.items()}
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in "ABC"}
        self.clocks = {(name, one): 0.0 for name, count in self.partitions.items() for one in range(count)}
        self.aside = set[tuple[int, int]]()

    def send(self) -> None:
        """A wave of rows: partitions go at speeds of their own, each in order but for the lateness."""
        for (name, partition), clock in self.clocks.items():
            speed, values = self.random.choice((0.2, 0.5, 1.0)), []
            for at in range(self.random.randint(2, 6)):
                moment = max(0.0, clock + at * speed - self.random.choice((0, 0, LATENESS - 1)) * (at > 0))
                row = {"k": self.random.randint(0, 2), "u": len(self.rows[name]), "t": round(moment, 3)}
                self.rows[name].append(row)
                values.append({**row, "ts": f"2024-01-01T00:{int(moment // 60):02}:{moment % 60:09.6f}Z"})
            self.clocks[name, partition] = clock + len(values) * speed
            self.kafka.send(self.topics[name], values, partition)

    def job(self, *limits: int | None) -> str:
        limit = self.random.choice(limits or (None, 3, 7))
        options = {} if limit is None else {"maxOffsetsPerTrigger": limit}
        shape = {"schema": "k BIGINT, u BIGINT, ts TIMESTAMP", "lateness": f"{LATENESS} seconds"}
        streams = {name: stream(self.kafka, topic, **shape, options=options) for name, topic in self.topics.items()}
        sink = {"type": "kafka", "topic": self.out, "servers": self.kafka.servers, "key": ["a", "b"]}
        return job_text(streams, SQL, sink, PLANS[0])

    def note_what_was_aborted(self) -> None:
        """Put aside what is there of steps that are not noted."""
        self.aside |= self.kafka.aborted(self.out)

    def found(self) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int, int]]]:
        """The results, and the step and ordinal of each."""
        values, marks = Counter[tuple[int, ...]](), Counter[tuple[int, int]]()
        for message in self.kafka.messages(self.out):
            if (message.partition(), message.offset()) not in self.aside:
                row = json.loads(message.value())
                values[row["a"], row["b"], row["c"]] += 1
                marks[mark(message)] += 1
        return values, marks

    def expected(self) -> Counter[tuple[int, ...]]:
        database = duckdb.connect()
        kinds = pa.schema([("k", pa.int64()), ("u", pa.int64()), ("t", pa.float64())])
        for name, rows in self.rows.items():
            database.register(name, pa.Table.from_pylist(rows, kinds))
        within = f"round(greatest(A.t, B.t, C.t) - least(A.t, B.t, C.t), 3) <= {WINDOW}"
        where = f"A.k = B.k AND B.k = C.k AND {within}"
        return Counter(database.execute(f"SELECT A.u, B.u, C.u FROM A, B, C WHERE {where}").fetchall())


@pytest.mark.parametrize("seed", seeds())
def test_each_result_is_in_the_topic_once(
    seed: int, kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = Case(kafka, seed)
    Path("job.toml").write_text(text := case.job())
    kills = 0
    for _ in range(case.random.randint(1, 3)):
        case.send()
        point, step = EVERY_POINT[(seed + kills) % len(EVERY_POINT)], case.random.randint(0, 4)
        named = {} if point in KAFKA_POINTS else {"MIDSTREAM_KILL_AT": f"{point}:{step}"}
        ended = run("tests.kafka.killed_job", point, str(step), **named)
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        kills += ended.returncode == -signal.SIGKILL
        case.note_what_was_aborted()
    with FileJob(parse_job(text)) as job:
        while job.step():
            pass
        assert not any(one.late or one.rejected for one in job.engine.manifest.progress.values())
    found, marks = case.found()
    assert found == case.expected()
    assert set(marks.values()) <= {1}


@pytest.mark.parametrize("point", ASIDE_POINTS)
def test_a_kill_while_a_step_is_sent_and_the_next_one_is_done(
    point: str, kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job dies when the chunks of step 3 are written, and step 2 is not sent, or just so."""
    monkeypatch.chdir(tmp_path)
    case = Case(kafka, 4)
    Path("job.toml").write_text(text := case.job(5))
    for _ in range(3):
        case.send()
    ended = run("tests.kafka.killed_job", point, "2")
    assert ended.returncode == -signal.SIGKILL and "the next step is done: True" in ended.stderr, ended.stderr
    case.note_what_was_aborted()
    with FileJob(parse_job(text)) as job:
        assert job.engine.manifest.step == 2
        while job.step():
            pass
    found, marks = case.found()
    assert found == case.expected()
    assert set(marks.values()) == {1}


@pytest.mark.parametrize("point", ["amid_messages", pytest.param("before_commit", marks=pytest.mark.verify)])
def test_a_second_driver_fences_the_first(
    point: str, kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    case = Case(kafka, 1)
    Path("job.toml").write_text(text := case.job())
    case.send()
    first = forks().start("tests.kafka.killed_job", point, "0", "stop")
    while "State:\tT" not in Path(f"/proc/{first.pid}/status").read_text():
        assert first.poll() is None, first.errors.read_text()
        time.sleep(0.01)
    case.note_what_was_aborted()
    with FileJob(parse_job(text), take_over=True) as second:
        while second.step():
            pass
        first.send_signal(signal.SIGCONT)
        _, errors = first.communicate()
        assert first.returncode == 1
        # To one that was about to commit Tansu does not answer at all.
        assert ("another driver" if point == "amid_messages" else "a sink has not taken its results") in errors, errors
        case.send()
        while second.step():
            pass
    found, marks = case.found()
    assert found == case.expected()
    assert set(marks.values()) <= {1}
