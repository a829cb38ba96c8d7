"""Rows a second and delay of a job between topics, beside a plain copy: `python -m benchmarks.kafka [ROWS]`.

Two topics of so many messages each are joined one to one into a third, by the embedded engine in one process. The copy
reads the same messages and sends them on, in one process too, without a look at them: what a Python client can do at
most. Both use the same broker, in turn. Rows a second are by seconds of the processor, of all threads of the process,
so what else the machine does counts little. The delay is from a message that completes a pair to its result at a
reader.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka

from midstream.engine.job_run import FileJob
from midstream.language.job_file import parse_job
from tests.kafka.broker import Broker, broker, job_text, stream

SQL = "SELECT A.k, A.v, B.v AS w FROM A, B WHERE A.k = B.k WINDOW 1 SECOND"
ROUNDS = 3


def filled(kafka: Broker, name: str, rows: int) -> str:
    """A topic of so many messages, a millisecond apart."""
    topic = kafka.topic(name)
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.servers, "queue.buffering.max.messages": 10**6})
    for k in range(rows):
        moment = f"2024-01-01T{k // 3_600_000:02}:{k // 60_000 % 60:02}:{k // 1000 % 60:02}.{k % 1000:03}Z"
        producer.produce(topic, f'{{"k": {k}, "v": "value {k}", "ts": "{moment}"}}')
        if k % 10_000 == 0:
            producer.poll(0)
    producer.flush()
    producer.produce(topic, b'{"k": -1, "v": "", "ts": "2024-01-01T23:00:00Z"}')  # A batch of its own: see tests.kafka.
    producer.flush()
    return topic


def copied(kafka: Broker, topics: list[str], rows: int) -> float:
    """Seconds to read all messages of topics, and to send them on."""
    out = kafka.topic("copy")
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.servers, "queue.buffering.max.messages": 10**6})
    reader = confluent_kafka.Consumer({"bootstrap.servers": kafka.servers, "group.id": "copy"})
    reader.assign([confluent_kafka.TopicPartition(topic, 0, 0) for topic in topics])
    begun, left = time.process_time(), len(topics) * (rows + 1)
    while left:
        first = reader.poll(1)
        for message in [] if first is None else [first, *reader.consume(10_000, 0)]:
            producer.produce(out, message.value())
            left -= 1
        producer.poll(0)
    producer.flush()
    seconds = time.process_time() - begun
    reader.close()
    return seconds


def joined(kafka: Broker, topics: list[str]) -> tuple[float, dict[str, float]]:
    """Seconds that a job takes to join the topics into another, and what they are of."""
    out = kafka.topic("joined")
    options = {"maxOffsetsPerTrigger": 200_000}
    streams = {name: stream(kafka, topic, options=options) for name, topic in zip("AB", topics, strict=True)}
    text = job_text(streams, SQL, {"type": "kafka", "topic": out, "servers": kafka.servers})
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        begun = time.process_time()
        with FileJob(parse_job(text)) as job:
            while job.step():
                pass
            seconds = time.process_time() - begun
            phases = dict(job.engine.times[-1].totals.phases)
        os.chdir("/")
    return seconds, phases


def delays(kafka: Broker, rate: int, seconds: float) -> list[float]:
    """From sending a row of B, whose partner is there, to its result at a reader, in milliseconds."""
    topics, out = {name: kafka.topic(name) for name in "AB"}, kafka.topic("out")
    streams = {name: stream(kafka, topic, lateness="1 minute") for name, topic in topics.items()}
    text = job_text(streams, SQL, {"type": "kafka", "topic": out, "servers": kafka.servers})
    sent, found, stopping = dict[int, float](), list[float](), threading.Event()

    def read() -> None:
        settings = {"bootstrap.servers": kafka.servers, "group.id": "delays", "fetch.wait.max.ms": 5}
        reader = confluent_kafka.Consumer(settings)
        reader.assign([confluent_kafka.TopicPartition(out, 0, 0)])
        while not stopping.is_set():
            message = reader.poll(0.1)
            if message is not None and message.error() is None:
                found.append(1000 * (time.perf_counter() - sent[json.loads(message.value())["k"]]))
        reader.close()

    def send() -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": kafka.servers, "linger.ms": 0, "batch.num.messages": 1}
        )
        begun = time.perf_counter()
        for k in range(int(rate * seconds)):
            while time.perf_counter() < begun + k / rate:
                time.sleep(0.001)
            sent[k] = time.perf_counter()
            for topic in topics.values():
                producer.produce(topic, f'{{"k": {k}, "v": "x", "ts": "2024-01-01T00:00:{k / rate % 60:09.6f}Z"}}')
            producer.poll(0)
        producer.flush()
        time.sleep(2)
        stopping.set()

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with FileJob(parse_job(text)) as job:
            workers: list[Callable[[], None]] = [read, send]
            threads = [threading.Thread(target=one) for one in workers]
            for thread in threads:
                thread.start()
            job.run(0.001, stopping.is_set, lambda patience: None)
            for thread in threads:
                thread.join()
        os.chdir("/")
    return found


def main(rows: int) -> None:
    """Print both in turn, and their ratio, which noise changes less."""
    with broker() as kafka:
        topics = [filled(kafka, name, rows) for name in "AB"]
        ratios = []
        for _ in range(ROUNDS):
            copy = copied(kafka, topics, rows)
            join, phases = joined(kafka, topics)
            ratios.append(copy / join)
            of = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in phases.items())
            print(f"copy {2 * rows / copy:,.0f} rows/s, join {2 * rows / join:,.0f} rows/s: {copy / join:.2f} ({of})")
        print(f"the join does {statistics.median(ratios):.2f} of the copy's rows a second of a core")
        found = sorted(delays(kafka, 1_000, 10))
        median, late = found[len(found) // 2], found[len(found) * 99 // 100]
        print(f"delay at 1,000 rows/s: median {median:.0f} ms, 99th percentile {late:.0f} ms, {len(found):,} results")


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main(int(sys.argv[1]) if sys.argv[1:] else 200_000)
