"""Flink's interval joins, by the Python of another virtual environment.

`FLINK_PYTHON` names that Python; `pip install 'apache-flink==2.*'` is enough for it, beside Java. Flink runs in one
process, as Spark's `local[2]` does, and takes a checkpoint every 10 s. The package reads no Parquet, so it gets the
input as CSV, and writes its results as CSV: one file a stream and task, each in order of time.

Flink's times have milliseconds: its windows are a millisecond wider than asked, and a condition on microseconds cuts
them. A batch ends when every stream has brought its rows, so that one stream that is read ahead ends none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The other Python has none of this.
    from benchmarks.measurement import Measurement
    from benchmarks.peers import Task

PYTHON = "FLINK_PYTHON"
THROWN = "rows a second if results are thrown away"
PORT = 18_081
TICK = 0.1
SMALL = 2_000_000
"""Rows up to which the join runs once more, and its results are thrown away."""

W1 = """
    SELECT AB.k, AB.v, AB.bv, C.v AS cv
    FROM (
        SELECT A.k, A.ts, A.us, A.v, B.us AS b_us, B.v AS bv
        FROM A JOIN B ON A.k = B.k
            AND A.ts BETWEEN B.ts - INTERVAL '20.001' SECOND AND B.ts + INTERVAL '20.001' SECOND
            AND ABS(A.us - B.us) <= 20000000) AS AB
    JOIN C ON AB.k = C.k
        AND AB.ts BETWEEN C.ts - INTERVAL '20.001' SECOND AND C.ts + INTERVAL '20.001' SECOND
        AND ABS(AB.us - C.us) <= 20000000 AND ABS(AB.b_us - C.us) <= 20000000"""

QUERIES = {"w1a": W1, "w1b": W1}
"""The texts by scenario."""

COLUMNS = ("k", "v", "bv", "cv")


def heap(task: Task) -> Measurement:
    """Measure with the state on the heap and two tasks."""
    return _run(task, "flink", "hashmap", 2)


def one_task(task: Task) -> Measurement:
    """Measure with the state on the heap and one task."""
    return _run(task, "flink_1", "hashmap", 1)


def rocksdb(task: Task) -> Measurement:
    """Measure with the state in RocksDB and two tasks."""
    return _run(task, "flink_rocksdb", "rocksdb", 2)


def _run(task: Task, name: str, backend: str, tasks: int) -> Measurement:
    import duckdb

    from benchmarks.measurement import Batch, Measurement, answer_of_tables

    if not (python := os.environ.get(PYTHON)):
        raise RuntimeError(f"{PYTHON} names no Python: make a virtual environment with apache-flink, and name its own")
    scenario, steps = task.scenario, list(task.scenario.steps())
    with duckdb.connect() as connection:
        for stream in scenario.streams:
            (task.work / stream).mkdir()
            for part in range(tasks):
                rows = [step[stream].take(list(range(part, step[stream].num_rows, tasks))) for step in steps]
                connection.register("given", _as_microseconds(rows))
                connection.execute(f"COPY given TO '{task.work / stream / str(part)}.csv' (HEADER false)")
    rows = [sum(table.num_rows for table in step.values()) for step in steps]
    asked = {
        "work": str(task.work),
        "backend": backend,
        "tasks": tasks,
        "streams": list(scenario.streams),
        "sql": QUERIES[scenario.name],
        "ends": [sum(rows[: n + 1]) // len(scenario.streams) for n in range(len(rows))],
        "thrown": backend == "hashmap" and sum(rows) <= SMALL,
    }
    done = subprocess.run([python, __file__, json.dumps(asked)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Flink ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    names = ", ".join(f"'{column}': '{'BIGINT' if column == 'k' else 'DOUBLE'}'" for column in COLUMNS)
    with duckdb.connect() as connection:
        # The files of a streaming sink are hidden until a checkpoint has committed them; all are by the end.
        results = f"read_csv('{task.work}/results/part-*', header = false, columns = {{{names}}})"
        answer = answer_of_tables([connection.sql(f"FROM {results}").to_arrow_table()], by_value=scenario.by_value)
    batches = tuple(Batch(n, seconds) for n, seconds in zip(rows, told["seconds"], strict=True))
    return Measurement(name, scenario.name, batches[: scenario.batches], answer, told["notes"])


def _as_microseconds(tables: list[Any]) -> Any:
    import pyarrow as pa

    table = pa.concat_tables(tables)
    return table.set_column(table.schema.get_field_index("ts"), "ts", table["ts"].cast(pa.int64()))


def _environment(asked: Mapping[str, Any]) -> Any:
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    settings = Configuration()
    for key, value in {
        "rest.port": str(PORT),
        "parallelism.default": str(asked["tasks"]),
        "taskmanager.numberOfTaskSlots": str(asked["tasks"]),
        "state.backend.type": asked["backend"],
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": f"file://{asked['work']}/checkpoint",
        "metrics.fetcher.update-interval": "100",
        "pipeline.object-reuse": "true",
        "table.local-time-zone": "UTC",
    }.items():
        settings.set_string(key, value)
    made = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings).build()
    tables = TableEnvironment.create(made)
    files = f"'connector' = 'filesystem', 'format' = 'csv', 'path' = 'file://{asked['work']}"
    for stream in asked["streams"]:
        tables.execute_sql(
            f"CREATE TABLE {stream} (k BIGINT, us BIGINT, v DOUBLE, ts AS TO_TIMESTAMP_LTZ(us / 1000, 3), "
            f"WATERMARK FOR ts AS ts) WITH ({files}/{stream}')"
        )
    columns = ", ".join(f"{column} {'BIGINT' if column == 'k' else 'DOUBLE'}" for column in COLUMNS)
    tables.execute_sql(f"CREATE TABLE results ({columns}) WITH ({files}/results')")
    tables.execute_sql(f"CREATE TABLE thrown ({columns}) WITH ('connector' = 'blackhole')")
    return tables


def _timed(tables: Any, asked: Mapping[str, Any], sink: str) -> list[float]:
    """Run the join; return the seconds of each batch, from its first row on."""
    running = tables.execute_sql(f"INSERT INTO {sink} {asked['sql']}")
    job, ends, found, ended = running.get_job_client().get_job_id(), list(asked["ends"]), [], threading.Event()

    def watch() -> None:
        while not ended.wait(TICK):
            try:
                with urllib.request.urlopen(f"http://localhost:{PORT}/jobs/{job}", timeout=5) as answer:
                    vertices = json.loads(answer.read())["vertices"]
            except OSError:
                continue
            sources = [one["metrics"]["write-records"] for one in vertices if one["name"].startswith("Source")]
            if max(sources) and not found:
                found.append(time.perf_counter())
            # The last batch ends with the job.
            while 0 < len(found) < len(ends) and min(sources) >= ends[len(found) - 1]:
                found.append(time.perf_counter())

    watcher = threading.Thread(target=watch)
    watcher.start()
    running.wait()
    now = time.perf_counter()
    ended.set()
    watcher.join()
    if not found:
        raise SystemExit("the job ended before a row was seen")
    found += [now] * (len(ends) + 1 - len(found))
    return [after - before for before, after in pairwise(found)]


def _processor() -> float:
    """Return the seconds of the processor of Flink's process, a child of this one."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    stats = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split() for child in children]
    return sum(int(one[11]) + int(one[12]) for one in stats) / os.sysconf("SC_CLK_TCK")


def _measure(asked: Mapping[str, Any]) -> dict[str, Any]:
    tables = _environment(asked)
    begun = _processor()
    seconds = _timed(tables, asked, "results")
    notes = {"cpu_seconds": round(_processor() - begun, 1)}
    if asked["thrown"]:
        begun = _processor()
        thrown = _timed(tables, asked, "thrown")
        steady = thrown[len(thrown) // 2 :]
        rows = len(asked["streams"]) * asked["ends"][0] * len(steady)  # All batches have the same rows.
        notes[THROWN] = round(rows / sum(steady))
        notes["cpu_seconds if results are thrown away"] = round(_processor() - begun, 1)
    return {"seconds": seconds, "notes": notes}


if __name__ == "__main__":
    print("\n" + json.dumps(_measure(json.loads(sys.argv[1]))))
