"""The embedded engine: one engine a contestant, all in this process, each given every step in turn."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

import midstream as ms
from benchmarks.sharing.answer import Answer, answer
from benchmarks.sharing.pace import Pace
from benchmarks.sharing.record import Record
from benchmarks.sharing.workload import SCHEMA, STREAMS, Feed, Workload
from midstream.model.events import StepDone

AT_ONCE = 50


@dataclass
class Runner:
    """A contestant under way: its engine, the measured steps, and the answer of each."""

    mode: str
    engine: ms.Engine
    spent: float = 0.0
    seconds: list[float] = field(default_factory=list)
    comparisons: list[int] = field(default_factory=list)
    answers: dict[int, Answer] = field(default_factory=dict)

    def push(self, tables: Mapping[str, pa.Table], measured: int | None) -> None:
        """One step; it counts if it is a measured one, of which `measured` is the number."""
        seconds, results = timed_push(self.engine, tables)
        self.spent += seconds
        if measured is not None:
            self.seconds.append(seconds)
            self.comparisons.append(last_step(self.engine).comparisons)
            self.answers[measured] = answer(results)


def race(workload: Workload, modes: Sequence[str], pace: Pace, slow: Mapping[str, int]) -> list[Record]:
    """Every mode on one workload, step by step in turn; who begins a step changes from step to step.

    `slow` are modes that take their history in one step and have only so many steps measured.
    """
    records: dict[str, Record] = {}
    runners: dict[str, Runner] = {}
    for mode in modes:
        try:
            runners[mode] = Runner(mode, engine_for(mode, workload.sqls()))
        except ms.MidstreamError as error:
            records[mode] = Record.refusal(workload, mode, pace, str(error))
    steps = list(_steps(Feed(pace.rate), pace))
    whole = {s: pa.concat_tables([tables[s] for tables, number in steps if number is None]) for s in STREAMS}
    for mode in [mode for mode in slow if mode in runners]:
        runners[mode].push(whole, None)
    del whole
    for turn, (tables, number) in enumerate(steps):
        gc.collect()
        for place in range(len(runners)):
            runner = list(runners.values())[(place + turn) % len(runners)]
            if runner.mode in slow and (number is None or number >= slow[runner.mode]):
                continue
            if runner.spent > pace.budget:
                continue
            runner.push(tables, number)
    for mode, runner in runners.items():
        records[mode] = _record(workload, runner, pace)
    return _compared([records[mode] for mode in modes], runners)


def engine_for(mode: str, sqls: Mapping[str, str]) -> ms.Engine:
    """An engine that shares by this mode and has these queries."""
    engine = ms.Engine(sharing=mode)
    for stream in STREAMS:
        engine.create_stream(stream, SCHEMA, timestamp="ts")
    for number, (name, sql) in enumerate(sqls.items()):
        engine.add_query(name, sql)
        if number % AT_ONCE == AT_ONCE - 1:
            engine.push({})
    engine.push({})
    return engine


def timed_push(engine: ms.Engine, tables: Mapping[str, pa.Table]) -> tuple[float, dict[str, pa.Table]]:
    """A step, and the seconds it took."""
    with _no_collection():
        begin = time.perf_counter()
        results = engine.push(tables)
        return time.perf_counter() - begin, results


def last_step(engine: ms.Engine) -> StepDone:
    """What the last step says of itself."""
    return next(event for event in reversed(engine.events) if isinstance(event, StepDone))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's garbage collector looks at the objects of all contestants: nobody's step shall pay for the others."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _steps(feed: Feed, pace: Pace) -> Iterator[tuple[dict[str, pa.Table], int | None]]:
    """Rows of each step, and the number of a measured one."""
    unmeasured = len(pace.history) + pace.settle
    for number, seconds in enumerate(pace.ticks()):
        yield feed.next(seconds), number - unmeasured if number >= unmeasured else None


def _record(workload: Workload, runner: Runner, pace: Pace) -> Record:
    step = last_step(runner.engine)
    comparisons = round(sum(runner.comparisons) / len(runner.comparisons)) if runner.comparisons else 0
    rows = round(sum(a.rows for a in runner.answers.values()) / len(runner.answers)) if runner.answers else 0
    return Record(
        queries=workload.queries, distribution=workload.distribution, filters=workload.filters, mode=runner.mode,
        rate=pace.rate, seconds=tuple(runner.seconds), results=rows, state_rows=step.state_rows,
        comparisons=comparisons, planned=pace.measured,
    )  # fmt: skip


def _compared(records: Sequence[Record], runners: Mapping[str, Runner]) -> list[Record]:
    """The records, each marked where its answer to a step is not that of the most."""
    found = []
    for record in records:
        runner = runners.get(record.mode)
        wrong = []
        for number, own in (runner.answers if runner else {}).items():
            others = [r.answers[number] for r in runners.values() if number in r.answers]
            if own != max(others, key=others.count):
                wrong.append(number)
        found.append(record.marked(f"another answer than the others in {len(wrong)} steps" if wrong else ""))
    return found
