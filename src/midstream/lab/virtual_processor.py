"""The virtual processor: the real engine, whose work takes virtual time.

The papers measured seconds on machines of their day. Here a step's work is what its counters say, a second of virtual
time does so much of it, and nothing else takes time: the same run gives the same figure everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.embedded import Engine
from midstream.embedded.stream_generator import Schedule
from midstream.lab.generator import Arrivals, Workload
from midstream.lab.trace import Step, Trace
from midstream.model.counters import Counters
from midstream.model.events import Event, MigrationBegun, MigrationEnded, StepDone
from midstream.model.window import SECOND

QUERY = "q"
"""The name of the only query of a run."""


@dataclass(frozen=True)
class Prices:
    """What a unit of work costs, in comparisons: Zhu's T_j is `comparison`, his T_s `insert` (Table 1).

    `hop` is the price of a routing step of an eddy, `row` of a row that enters an operator.
    """

    comparison: float = 1.0
    insert: float = 0.0
    row: float = 0.0
    hop: float = 0.0

    def of(self, counted: Counters) -> float:
        """Price the work of these counters.

        >>> Prices(insert=2.0).of(Counters(comparisons=10, inserted=3))
        16.0
        """
        return (
            self.comparison * counted.comparisons
            + self.insert * counted.inserted
            + self.row * counted.rows_in
            + self.hop * counted.hops
        )


@dataclass(frozen=True)
class PlanSwitch:
    """A migration to ask for, at a second of virtual time.

    With `drained` it first waits until the rows that have arrived by then are processed (Zhu §4.1.3).
    """

    at: float
    plan: str
    strategy: str = "moving_state"
    options: Mapping[str, Any] = field(default_factory=dict)
    drained: bool = False


@dataclass(frozen=True)
class Processor:
    """So many comparisons a second of virtual time; a step begins every `tick` seconds, or when the last one is done.

    A step takes the arrivals of the next tick of event time that are there when it begins. While the processor is
    behind, steps follow without pause and the other arrivals wait, so every step is of like size however long the
    queue is. A switch has a step of its own, without rows: what that costs is what the migration does at once. Results
    come out when their step ends. The run ends when every arrival has been taken. The speed may be a schedule: a step
    has the speed of the moment it begins.
    """

    speed: float | Schedule
    tick: float
    prices: Prices = Prices()

    def play(
        self, workload: Workload, plan: str, until: float, switches: Sequence[PlanSwitch] = (), *, settle: bool = False
    ) -> Trace:
        """Run the arrivals up to `until` seconds; no switches means never to migrate. Deterministic.

        With `settle` the run ends as soon as every migration has.
        """
        engine = _engine(workload, plan)
        arrivals = workload.arrivals(until)
        waiting = sorted(switches, key=lambda switch: switch.at)
        steps: list[Step] = []
        events: list[Event] = []
        now = 0.0

        def step(taken: float, upto: float) -> float:
            done, happened = self._step(engine, arrivals, now, taken, upto)
            steps.append(done)
            events.extend(happened)
            return done.end

        for number in range(ceil(until / self.tick - 1e-9)):
            taken, upto = number * self.tick, min((number + 1) * self.tick, until)
            now = max(now, upto)
            while waiting and waiting[0].at <= (taken if waiting[0].drained else now):
                switch = waiting.pop(0)
                engine.migrate(QUERY, switch.plan, switch.strategy, **switch.options)
                now = step(taken, taken)
            now = step(taken, upto)
            if settle and not waiting and not _under_way(events):
                break
        return Trace(tuple(steps), tuple(events))

    def _step(
        self, engine: Engine, arrivals: Mapping[str, Arrivals], now: float, taken: float, upto: float
    ) -> tuple[Step, list[Event]]:
        batch = {name: rows.between(taken, upto) for name, rows in arrivals.items()}
        before = engine.manifest.totals
        results = engine.push(batch)[QUERY]
        number = engine.manifest.step
        happened = list(takewhile(lambda event: event.step == number, reversed(engine.events)))[::-1]
        done = next(event for event in happened if isinstance(event, StepDone))
        counted = _since(before, engine.manifest.totals)
        work = self.prices.of(counted)
        end = now + work / float(Schedule.of(self.speed).at(np.array([now]))[0])
        delays = end - _moments(results) / SECOND
        step = Step(
            step=number,
            begin=now,
            end=end,
            upto=upto,
            rows=sum(table.num_rows for table in batch.values()),
            queue=sum(rows.before(now) - rows.before(upto) for rows in arrivals.values()),
            results=results.num_rows,
            delay_greatest=float(delays.max()) if len(delays) else 0.0,
            comparisons=counted.comparisons,
            inserted=counted.inserted,
            hops=counted.hops,
            operator_rows=counted.rows_in,
            work=work,
            state_rows=done.state_rows,
            intermediate_rows=_intermediate(engine),
        )
        return step, happened


def _engine(workload: Workload, plan: str) -> Engine:
    engine = Engine(seed=workload.seed)
    for source in workload.sources:
        engine.create_stream(source.name, source.schema, timestamp="ts")
    engine.add_query(QUERY, workload.sql, plan=plan)
    return engine


def _under_way(events: Sequence[Event]) -> bool:
    begun = sum(isinstance(event, MigrationBegun) for event in events)
    return begun > sum(isinstance(event, MigrationEnded) for event in events)


def _since(before: Counters, after: Counters) -> Counters:
    return Counters(**{name: value - getattr(before, name) for name, value in vars(after).items()})


def _moments(results: pa.Table) -> npt.NDArray[np.int64]:
    # Results without a timestamp have no time.
    moments = [
        results.column(at).cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
        for at, column in enumerate(results.schema)
        if pa.types.is_timestamp(column.type)
    ]
    return np.maximum.reduce(moments) if moments else np.zeros(0, np.int64)


def _intermediate(engine: Engine) -> int:
    # A state under several indexes counts once.
    found: dict[str, int] = {}
    for lane, state in engine.manifest.lane_states.items():
        for state_id, listing in state.states.items():
            # The streams of a state stand first in its name.
            if "+" in state_id.owner:
                sign = f"{lane} {state_id.owner}.{state_id.content}"
                found[sign] = max(found.get(sign, 0), listing.live)
    return sum(found.values())
