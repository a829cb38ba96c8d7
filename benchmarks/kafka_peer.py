"""Two topics joined by windows of a second with Bytewax: `kafka_peer.py SERVERS A B OUT`, for `benchmarks.kafka`.

It runs in a virtual environment of its own, for which `pip install bytewax confluent-kafka` is enough. The last line
that it prints has the seconds by the clock, and those of the processor.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any


def flow(servers: str, topics: list[str], out: str) -> Any:
    """Return the dataflow."""
    import bytewax.operators as op
    import bytewax.operators.windowing as win
    from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
    from bytewax.dataflow import Dataflow

    made = Dataflow("join")

    def keyed(message: Any) -> tuple[str, Any]:
        row = json.loads(message.value)
        return str(row["k"]), row

    def moment(row: Any) -> datetime:
        return datetime.fromisoformat(row["ts"].replace("Z", "+00:00"))

    def result(found: Any) -> Any:
        _, (_, (a, b)) = found
        return KafkaSinkMessage(None, json.dumps({"k": a["k"], "v": a["v"], "w": b["v"]}).encode())

    sides = []
    for name, topic in zip("AB", topics, strict=True):
        read = op.input(name, made, KafkaSource([servers], [topic], tail=False, batch_size=1000))
        sides.append(op.map(f"key {name}", read, keyed))
    clock = win.EventClock(moment, wait_for_system_duration=timedelta(minutes=10))
    windows = win.TumblingWindower(length=timedelta(seconds=1), align_to=datetime(2024, 1, 1, tzinfo=UTC))
    pairs = win.join_window("join", clock, windows, *sides).down
    op.output("out", op.map("result", pairs, result), KafkaSink([servers], out))
    return made


if __name__ == "__main__":
    from bytewax.testing import run_main

    begun, processor = time.perf_counter(), time.process_time()
    run_main(flow(sys.argv[1], sys.argv[2:4], sys.argv[4]))
    print(json.dumps([time.perf_counter() - begun, time.process_time() - processor]))
