"""The embedded host: nodes take turns in this process, so that it shows what they do and gains nothing by them."""

from __future__ import annotations

import gc
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measurement import Batch, answer_of_tables
from benchmarks.ring.balance import CONDITIONS, WINDOW, bounds, busiest, compared, in_a_burst
from benchmarks.ring.balance import engine_for as balanced_engine
from benchmarks.ring.contestants import Contestant, engine_for
from benchmarks.ring.load import Load
from benchmarks.ring.record import Burst, Even, Record, measured
from benchmarks.ring.scenarios import QUERY, RingScenario
from benchmarks.scenarios.base import BATCH_SPAN
from benchmarks.scenarios.base import WINDOW as SCENARIO_WINDOW
from midstream.model.events import StepDone
from midstream.model.node_spread import NodeSpread

FILLING = SCENARIO_WINDOW // BATCH_SPAN
"""Batches until windows are full."""

EVEN = ("psp", "psp_i", "psp_d")
TIMES = 10
"""So many times the rows come in a burst, for a quarter of a window."""
RATE, STEP = 40.0, 0.5
"""Rows a second of a stream, and seconds of a step, where it is looked how even the nodes of rings are."""


def run(asked: RingScenario, contestant: Contestant, load: Load, folder: Path) -> Record:
    """Push the batches one by one and time each push; nothing is kept in the folder."""
    scenario = asked.on("embedded", load.quick)
    engine = engine_for(asked, scenario, contestant)
    gc.collect()
    batches, results, filled, begun = list[Batch](), list[pa.Table](), list[int](), time.monotonic()
    for number, tables in enumerate(scenario.steps()):
        if time.monotonic() - begun > load.budget:
            why = f"not done within {load.budget:g} s ({number} of {scenario.batches} batches)"
            return Record.nothing(contestant, scenario.name, stopped=why)
        at = time.perf_counter()
        results.append(engine.push(tables)[QUERY])
        batches.append(Batch(sum(table.num_rows for table in tables.values()), time.perf_counter() - at))
        if number == FILLING - 1:
            filled = _compared(engine.manifest.queries[QUERY].nodes)
    steps = [event for event in engine.events if isinstance(event, StepDone)]
    spread = engine.manifest.queries[QUERY].nodes
    return Record(
        contestant, measured(contestant, scenario.name, batches, answer_of_tables(results)),
        tuple(step.comparisons for step in steps), tuple(step.state_rows for step in steps),
        tuple(after - before for after, before in zip(_compared(spread), filled, strict=True)),
        spread.sent if spread is not None else (),
    )  # fmt: skip


def evenness(load: Load) -> list[Even]:
    """How even the nodes of rings are over a steady stream in short steps, once its window is full."""
    found = []
    filling = int(WINDOW / STEP)
    for scheme in EVEN:
        for nodes in [nodes for nodes in load.nodes if nodes > 1]:
            engine = balanced_engine(scheme, nodes, next(iter(CONDITIONS.values())))
            steps = filling + (filling // 4 if load.quick else 2 * filling)
            rate = RATE / 4 if load.quick else RATE
            work = compared(engine, [rate] * steps, STEP)[filling:]
            found.append(Even(scheme, nodes, busiest(np.asarray(work))[0]))
    return found


def bursts(load: Load) -> list[Burst]:
    """How even the nodes of a ring are in a burst, without a bound on its slices and with two."""
    rate, condition = RATE / 4 if load.quick else RATE, next(iter(CONDITIONS.values()))
    return [
        Burst(nodes, bound, busiest(in_a_burst(condition, nodes, rate, TIMES, STEP, bound))[0])
        for nodes in load.nodes
        if nodes > 1
        for bound in bounds(rate, nodes)
    ]


def _compared(spread: NodeSpread | None) -> list[int]:
    return [node.comparisons for node in spread.work] if spread is not None else []
