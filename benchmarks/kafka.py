"""A job between topics beside a plain copy: `python -m benchmarks.kafka [ROWS [PEERS]]`.

Two topics of so many messages each are joined one to one into a third, by the embedded engine in one process. The copy
reads the same messages and sends them on, in one process too, without a look at them: what a Python client can do at
most. All use the same broker, in turn. Rows a second are by the clock, and by seconds of the processor of all threads
of the process, which what else the machine does changes less; the broker's own are in neither. Delays are from sending
a message to its result, or its copy, at a reader. `PEERS` is a Python with bytewax: `benchmarks.kafka_peer`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pyarrow as pa

from benchmarks import kafka_peer
from midstream.embedded.file_formats import json_rows
from midstream.embedded.job_run import FileJob
from midstream.sql.ddl import parse_ddl
from midstream.sql.job_file import parse_job
from tests.kafka.broker import Broker, broker, job_text, stream

SQL = "SELECT A.k, A.v, B.v AS w FROM A, B WHERE A.k = B.k WINDOW 1 SECOND"
DELAYED = "SELECT A.k, B.s FROM A, B WHERE A.k = B.k WINDOW 1 SECOND"
ROUNDS = 3
STEP = 100_000
"""Messages of each topic in a step: of a backlog of several steps the next is read while one is done."""
RATES = (1_000, 100_000)
SECONDS = 10
"""How long messages are sent at each rate."""
TICK = 0.005
WHAT = {
    "rows a second": "clock",
    "rows a second of a core, without the broker's core time": "processor",
}
DRAINED = 20.0
"""Seconds without a result after which a reader has them all."""
TOGETHER = 500
"""Messages that the copy takes together; with 10,000 it does half as many, for the garbage collector."""


class Took(NamedTuple):
    """Seconds by the clock, and of the processor."""

    clock: float
    processor: float

    @staticmethod
    def of(work: Callable[[], None]) -> Took:
        clock, processor = time.perf_counter(), time.process_time()
        work()
        return Took(time.perf_counter() - clock, time.process_time() - processor)


def values(rows: int) -> list[bytes]:
    """JSON objects a millisecond apart."""
    found = []
    for k in range(rows):
        moment = f"2024-01-01T{k // 3_600_000:02}:{k // 60_000 % 60:02}:{k // 1000 % 60:02}.{k % 1000:03}Z"
        found.append(f'{{"k": {k}, "v": "value {k}", "ts": "{moment}"}}'.encode())
    return found


def filled(kafka: Broker, name: str, rows: int) -> str:
    """A topic of so many messages."""
    topic = kafka.topic(name)
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.servers, "queue.buffering.max.messages": 10**6})
    for at, value in enumerate(values(rows)):
        producer.produce(topic, value)
        if at % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    producer.produce(topic, b'{"k": -1, "v": "", "ts": "2024-01-01T23:00:00Z"}')  # A batch of its own: see tests.kafka.
    producer.flush()
    return topic


def decoded(rows: int) -> float:
    """Rows of JSON that are decoded in a second of the processor."""
    columns, given = parse_ddl("k BIGINT, v VARCHAR, ts TIMESTAMP"), pa.array(values(rows), pa.large_binary())
    share = 1 << 14

    def decode() -> None:
        for at in range(0, rows, share):
            json_rows(given.slice(at, share), columns)

    return rows / Took.of(decode).processor


def copy(servers: str, topics: list[str], out: str, count: int) -> None:
    """Read so many messages of topics, and send them on."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 10**6})
    own = {"bootstrap.servers": servers, "group.id": "copy", "fetch.wait.max.ms": 20, "fetch.queue.backoff.ms": 10}
    reader = confluent_kafka.Consumer(own)  # As the job's: by its own settings the client pauses for a second.
    reader.assign([confluent_kafka.TopicPartition(topic, 0, 0) for topic in topics])
    idle = time.monotonic()
    while count and time.monotonic() < idle + DRAINED:
        first = reader.poll(0.1)
        for message in [] if first is None else [first, *reader.consume(TOGETHER, 0)]:
            producer.produce(out, message.value())
            count, idle = count - 1, time.monotonic()
        producer.poll(0)
    producer.flush()
    reader.close()


def joined(kafka: Broker, topics: list[str]) -> tuple[Took, dict[str, float]]:
    """What a job takes to join the topics into another, and the seconds of its phases."""
    out = kafka.topic("joined")
    options = {"maxOffsetsPerTrigger": STEP}
    streams = {name: stream(kafka, topic, options=options) for name, topic in zip("AB", topics, strict=True)}
    text = job_text(streams, SQL, {"type": "kafka", "topic": out, "servers": kafka.servers})
    phases: dict[str, float] = {}

    def join() -> None:
        with FileJob(parse_job(text)) as job:
            while job.step():
                pass
            phases.update(job.engine.times[-1].totals.phases)

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        took = Took.of(join)
        os.chdir("/")
    return took, phases


def send(servers: str, topics: list[str], rate: int) -> None:
    """Send rows to topics in turn, so many a second of all topics together, each with the time that it has then."""
    # With one request at a time: on a busy machine a pipeline of small ones waits for seconds at the broker.
    own = {"bootstrap.servers": servers, "linger.ms": 5, "max.in.flight": 1, "queue.buffering.max.messages": 10**6}
    producer = confluent_kafka.Producer(own)
    begun, sent, rate = time.perf_counter(), 0, rate // len(topics)
    while sent < rate * SECONDS:
        due = min(rate * SECONDS, int((time.perf_counter() - begun) * rate))
        for k in range(sent, due):
            moment = f"2024-01-01T00:00:{k / rate % 60:09.6f}Z"
            for topic in topics:
                producer.produce(topic, f'{{"k": {k}, "s": {time.time_ns() // 1000}, "ts": "{moment}"}}')
        sent = due
        producer.poll(0)
        time.sleep(TICK)
    producer.flush()
    for topic in topics:
        producer.produce(topic, '{"k": -1, "s": 0, "ts": "2024-01-01T00:00:59Z"}')  # A batch of its own.
    producer.flush()


def receive(servers: str, topic: str, count: int, found: Any) -> None:
    """Put the delays of so many results, in milliseconds and in order."""
    reader = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "delays", "fetch.wait.max.ms": 5})
    reader.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    delays, idle = list[float](), time.monotonic()
    while len(delays) < count and time.monotonic() < idle + DRAINED:
        first = reader.poll(0.1)
        for message in [] if first is None else [first, *reader.consume(TOGETHER, 0)]:
            if message.error() is None and (sent := json.loads(message.value())["s"]):
                delays.append(time.time() * 1000 - sent / 1000)
                idle = time.monotonic()
    reader.close()
    found.put(sorted(delays))


def delays(kafka: Broker, rate: int, *, copies: bool) -> str:
    """Measure the delays of the job, or of the copy, while messages are sent at a rate: median, 99th percentile."""
    topics, out = [kafka.topic(name) for name in "AB"], kafka.topic("out")
    spawned = multiprocessing.get_context("spawn")
    rows, found = rate * SECONDS, spawned.Queue()
    results = rows if copies else rows // 2
    workers = [
        spawned.Process(target=receive, args=(kafka.servers, out, results, found)),
        spawned.Process(target=send, args=(kafka.servers, topics, rate)),
    ]
    if copies:
        workers.append(spawned.Process(target=copy, args=(kafka.servers, topics, out, rows + 2)))
    for worker in workers:
        worker.start()
    if not copies:
        shape = {"schema": "k BIGINT, s BIGINT, ts TIMESTAMP", "lateness": "1 minute"}
        streams = {name: stream(kafka, topic, **shape) for name, topic in zip("AB", topics, strict=True)}
        text = job_text(streams, DELAYED, {"type": "kafka", "topic": out, "servers": kafka.servers})
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with FileJob(parse_job(text)) as job:
                job.run(0.001, lambda: not workers[0].is_alive() or not found.empty(), lambda patience: None)
            os.chdir("/")
    got = found.get(timeout=600)
    for worker in workers:
        worker.join(60)
    if len(got) < results:
        return f"{len(got):,} of {results:,} messages"
    return f"{got[len(got) // 2]:,.0f} ms, {got[len(got) * 99 // 100]:,.0f} ms"


def of_peer(kafka: Broker, python: str, topics: list[str], rows: int) -> str:
    """Describe what Bytewax does with the same topics."""
    command = [python, str(Path(kafka_peer.__file__)), kafka.servers, *topics, kafka.topic("peer")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"bytewax failed: {done.stderr[-500:]}"
    took = Took(*json.loads(done.stdout.splitlines()[-1]))
    return f"bytewax {rates(2 * rows, took)}"


def rates(rows: int, took: Took) -> str:
    """Rows a second by the clock, and of the processor."""
    return f"{rows / took.clock:,.0f} rows/s, {rows / took.processor:,.0f} of a core"


def spread(rows: int, seconds: Iterable[float]) -> str:
    """Return the least and the greatest rows a second, in ten thousands, as docs/kafka.md has them."""
    found = sorted(round(rows / one, -4) for one in seconds)
    return f"{found[0]:,.0f} to {found[-1]:,.0f}"


def main(rows: int, peer: str) -> None:
    """Print each round and its ratios, which noise changes less; at last the table of docs/kafka.md."""
    print(f"JSON: {decoded(rows):,.0f} rows a second and core are decoded")
    with broker() as kafka:
        topics = [filled(kafka, name, rows) for name in "AB"]
        if peer:
            print(of_peer(kafka, peer, topics, rows))
        rounds = []
        for _ in range(ROUNDS):
            print(f"load average {os.getloadavg()[0]:.1f}")
            out = kafka.topic("copy")
            plain = Took.of(lambda out=out: copy(kafka.servers, topics, out, 2 * (rows + 1)))  # type: ignore[misc]
            join, phases = joined(kafka, topics)
            rounds.append((plain, join))
            of = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in phases.items())
            print(f"copy {rates(2 * rows, plain)}; join {rates(2 * rows, join)} ({of})")
            clock, processor = plain.clock / join.clock, plain.processor / join.processor
            print(
                f"the join does {clock:.2f} of the copy's rows a second, {processor:.2f} of its rows a second of a core"
            )
        table = {
            what: [spread(2 * rows, [getattr(one, seconds) for one in kind]) for kind in zip(*rounds, strict=True)]
            for what, seconds in WHAT.items()
        }
        for rate in RATES:
            what = f"delay at {rate:,} rows a second: median, 99th percentile"
            table[what] = [delays(kafka, rate, copies=copies) for copies in (True, False)]
    print("| what | plain copy | join |\n|---|---|---|")
    for what, (of_copy, of_join) in table.items():
        print(f"| {what} | {of_copy} | {of_join} |")


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    given = sys.argv[1:]
    main(int(given[0]) if given else 400_000, given[1] if given[1:] else "")
