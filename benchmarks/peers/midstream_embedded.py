"""midstream in this process: the same fold as on Spark, state in memory; by one thread, or by two."""

from __future__ import annotations

import time

import pyarrow as pa

import midstream as ms
from benchmarks.measurement import Batch, Measurement, answer_of_tables
from benchmarks.peers import Task
from benchmarks.peers.one_core import keep_to_one_core


def run(task: Task) -> Measurement:
    """Measure with one thread on one core."""
    keep_to_one_core()
    return _run(task, "embedded", 1)


def two_threads(task: Task) -> Measurement:
    """Measure with two lanes in two threads, as many as Spark has tasks."""
    return _run(task, "embedded_2", 2)


def _run(task: Task, name: str, threads: int) -> Measurement:
    """Push the batches one by one and time each push."""
    scenario = task.scenario
    engine = ms.Engine(lanes=threads, threads=threads)
    for stream in scenario.streams:
        engine.create_stream(stream, scenario.schema(stream), timestamp="ts")
    for table, static in scenario.tables.items():
        engine.table(table, static)
    for query, sql in scenario.queries.items():
        engine.add_query(query, sql)
    batches: list[Batch] = []
    results: list[pa.Table] = []
    last = list(scenario.queries)[-1]
    steps = list(scenario.steps())
    cpu = time.process_time()
    for tables in steps:
        begin = time.perf_counter()
        results.append(engine.push(tables)[last])
        seconds = time.perf_counter() - begin
        batches.append(Batch(sum(table.num_rows for table in tables.values()), seconds))
    cpu = round(time.process_time() - cpu, 3)
    metrics = engine.metrics()
    notes = {metric: metrics[metric] for metric in ("state_rows", "state_bytes", "comparisons")}
    notes["cpu_seconds"] = cpu
    answer = answer_of_tables(results, by_value=scenario.by_value)
    return Measurement(name, scenario.name, tuple(batches[: scenario.batches]), answer, notes)
