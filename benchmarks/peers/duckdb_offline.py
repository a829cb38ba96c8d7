"""DuckDB over the whole input at once: the offline limit.

It knows everything beforehand, keeps no state between batches and commits nothing; what an incremental engine pays for
being incremental is the distance to it. Only the query is timed: Arrow tables in memory in, one Arrow table out.
"""

from __future__ import annotations

import time

import duckdb
import pyarrow as pa

from benchmarks.measurement import Batch, Measurement, answer_of_tables
from benchmarks.peers import Task
from benchmarks.peers.one_core import keep_to_one_core


def one_thread(task: Task) -> Measurement:
    """Measure with one thread on one core."""
    keep_to_one_core()
    return _run(task, "duckdb_1", 1)


def two_threads(task: Task) -> Measurement:
    """Measure with two threads, as many as Spark has tasks."""
    return _run(task, "duckdb_2", 2)


def _run(task: Task, name: str, threads: int) -> Measurement:
    scenario = task.scenario
    steps = list(scenario.steps())
    with duckdb.connect(config={"threads": threads, "preserve_insertion_order": False}) as connection:
        for stream in scenario.streams:
            connection.register(f"{stream}_arrow", pa.concat_tables([step[stream] for step in steps]))
            connection.execute(f"CREATE VIEW {stream} AS SELECT {scenario.duckdb_rows[stream]} FROM {stream}_arrow")
        for table, static in scenario.tables.items():
            connection.register(table, static)
        begin, cpu = time.perf_counter(), time.process_time()
        result = connection.sql(scenario.duckdb).to_arrow_table()
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    rows = sum(table.num_rows for step in steps for table in step.values())
    answer = answer_of_tables([result], by_value=scenario.by_value)
    notes = {"cpu_seconds": round(cpu, 3)}
    return Measurement(name, scenario.name, (Batch(rows, seconds),), answer, notes)
