"""The embedded host: the harness hands over what has arrived, tick by tick."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

import midstream as ms
from benchmarks.plan_change.clock import Clock
from benchmarks.plan_change.contestants import RESTART
from benchmarks.plan_change.rows import Counts
from benchmarks.plan_change.task import QUERY, Task
from benchmarks.plan_change.trace import Recorder, Trace
from midstream.model.events import StepDone


def run(task: Task, *, wait: bool = False) -> Trace:
    """Run a contestant.

    The engine works only when it is called, so the idle time between two ticks is skipped unless `wait` is set.
    """
    gc.collect()
    paced = Paced(task)
    paced.go(wait)
    return paced.trace()


@dataclass(frozen=True)
class Pushed:
    """A step before it is looked at, the engine that did it, and the rows that had been taken in before a restart."""

    at: float
    seconds: float
    results: pa.Table
    engine: int
    before: Counts


@dataclass
class Paced:
    """A run under way."""

    task: Task
    steps: list[Pushed] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    engines: list[ms.Engine] = field(default_factory=list)
    before: Counts = field(default_factory=dict)

    def go(self, wait: bool) -> None:
        """From the first row to the last."""
        task, rows = self.task, self.task.rows
        taken, end = dict.fromkeys(rows.tables, 0), task.end
        self._begin(task.start)
        for moment, arrived in task.history():
            self._push(rows.between(taken, arrived), Clock(moment))
            taken = arrived
        waiting, due = list(task.changes), task.begin + task.load.tick
        clock = Clock(task.begin, skip=not wait)
        while taken != end:
            now = clock.wait_until(due)
            while waiting and waiting[0][0] <= now:
                self.asked.append(now)
                self._change(waiting.pop(0)[1], taken, clock)
            arrived = {stream: min(end[stream], count) for stream, count in rows.arrived(clock.now()).items()}
            self._push(rows.between(taken, arrived), clock)
            taken, due = arrived, max(due + task.load.tick, clock.now())
        for arrived in task.epilogue():
            self._push(rows.between(taken, arrived), clock)
            taken = arrived

    def _begin(self, plan: str) -> None:
        engine = ms.Engine()
        self.task.declare(engine, plan)
        self.engines.append(engine)

    def _change(self, plan: str, taken: Counts, clock: Clock) -> None:
        contestant, rows = self.task.contestant, self.task.rows
        if contestant.strategy == RESTART:
            self.before = dict(taken)
            self._begin(plan)
            self._push(rows.between(rows.still_in_window(taken, self.task.load.window), taken), clock)
            return
        self.engines[-1].migrate(QUERY, plan, strategy=contestant.strategy, **contestant.options)

    def _push(self, tables: Mapping[str, pa.Table], clock: Clock) -> None:
        begun = clock.now()
        results = self.engines[-1].push(tables)[QUERY]
        at = clock.now()
        self.steps.append(Pushed(at, at - begun, results, len(self.engines) - 1, self.before))

    def trace(self) -> Trace:
        """What happened, once it is over: the engines' events tell the rest."""
        recorder = Recorder(asked=self.asked)
        for number, engine in enumerate(self.engines):
            own = [step for step in self.steps if step.engine == number]
            done = {event.step: event for event in engine.events if isinstance(event, StepDone)}
            for step, pushed in enumerate(own):
                said = done[step]
                recorder.keep(
                    pushed.at, pushed.seconds, pushed.results, sum(said.rows_in.values()), said.comparisons,
                    said.state_rows, pushed.before,
                )  # fmt: skip
            if number > 0:  # The first step of a restart is the replay.
                recorder.extra += done[0].comparisons
                recorder.alone = own[0].at
            recorder.migrated(engine.events, {step: pushed.at for step, pushed in enumerate(own)}.get)
        if self.engines[-1].migration(QUERY) is not None:
            recorder.alone = None
        return recorder.trace()
