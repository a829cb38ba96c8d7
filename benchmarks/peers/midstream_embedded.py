"""midstream in this process: the same fold as on Spark, one thread, state in memory."""

from __future__ import annotations

import time

import pyarrow as pa

import midstream as ms
from benchmarks.measurement import Batch, Measurement, answer_of_tables
from benchmarks.peers import Task
from benchmarks.peers.one_core import keep_to_one_core


def run(task: Task) -> Measurement:
    """Push the batches one by one and time each push."""
    keep_to_one_core()
    scenario = task.scenario
    engine = ms.Engine()
    for stream in scenario.streams:
        engine.create_stream(stream, scenario.schema(stream), timestamp="ts")
    for name, static in scenario.tables.items():
        engine.table(name, static)
    for name, sql in scenario.queries.items():
        engine.add_query(name, sql)
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
    notes = {name: metrics[name] for name in ("state_rows", "state_bytes", "comparisons")}
    notes["cpu_seconds"] = cpu
    answer = answer_of_tables(results, by_value=scenario.by_value)
    return Measurement("embedded", scenario.name, tuple(batches[: scenario.batches]), answer, notes)
