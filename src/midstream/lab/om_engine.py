"""OM's queries on one engine, a step a round: what each saw in every round, how often it ran, and how long it waited.

In: queries with the traffic of their own streams. Out: for each query its rounds as the engine's counters have them,
and the reviews by which a `lambda_chart` looked after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from midstream.embedded import Engine
from midstream.lab.om_rounds import MATCH, Q1, Rounds
from midstream.lab.om_streams import Numbers, Traffic
from midstream.model.events import PlanReviewed

MICROS = 1_000_000
HOSTS = round(1 / MATCH)


@dataclass(frozen=True)
class Scheduled:
    """A query that ran among others: `rounds` is what it saw; the rest are steps in which it ran and was reviewed.

    `plans` has by round the plan that it ran by, in the streams' kinds; none for a query without a chart.
    """

    rounds: Rounds
    ran: Sequence[int]
    turns: Sequence[int]
    reviewed: Sequence[int] = ()
    plans: Sequence[str] = ()


def longest_wait(turns: Sequence[int]) -> int:
    """Count the most turns of others between two of these.

    >>> longest_wait([0, 10, 20]), longest_wait([3, 4, 9])
    (9, 4)
    """
    return max((later - earlier - 1 for earlier, later in pairwise(turns)), default=0)


@dataclass
class _Running:
    name: str
    rounds: Rounds
    arrived: list[list[int]] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)

    @property
    def streams(self) -> tuple[str, ...]:
        kinds = ("TCP",) if self.rounds.query is Q1 else ("TCP", "UDP", "SF")
        return tuple(f"{kind}_{self.name}" for kind in kinds)

    @property
    def sql(self) -> str:
        one, *others = self.streams
        where = " AND ".join(f"{one}.host = {other}.host" for other in others) or f"{one}.kind < 1"
        sizes = ", ".join(f"{stream} [RANGE 1 SECONDS]" for stream in self.streams)
        return f"SELECT {one}.host AS host FROM {sizes} WHERE {where}"

    def arrivals(self, second: int, random: np.random.Generator) -> dict[str, pa.Table]:
        traffic, found = self.rounds.traffic, {}
        for column, stream in enumerate(self.streams):
            rows = round(traffic.rates[second, column])
            # Q1 selects the first kind.
            kinds = (np.arange(rows) >= round(rows * traffic.selectivity[second])).astype(np.int64)
            times = np.sort(second * MICROS + random.integers(0, MICROS, rows))
            hosts = random.integers(0, HOSTS, rows)
            found[stream] = pa.table({"host": hosts, "kind": kinds, "ts": pa.array(times, pa.timestamp("us"))})
        return found

    def see(self, engine: Engine) -> None:
        """Note what the query's sources have counted by now."""
        counted = {
            key.operator.name.partition(".")[0]: one
            for key, one in engine.manifest.operators.items()
            if key.operator.kind == "source"
        }
        self.arrived.append([counted[stream].rows_in for stream in self.streams])
        self.passed.append(counted[self.streams[0]].rows_out)
        self.plans.append(engine.manifest.queries[self.name].plan.replace(f"_{self.name}", ""))

    def traffic(self) -> Traffic:
        rates: Numbers = np.diff(np.array(self.arrived, np.float64), axis=0, prepend=0)
        passed = np.diff(np.array(self.passed, np.float64), prepend=0)
        return Traffic(rates, passed / rates[:, 0] if self.rounds.query is Q1 else np.ones(len(rates)))


def scheduled(queries: Sequence[Rounds], rounds: int) -> list[Scheduled]:
    """Run queries over some rounds of their traffic on one engine, joins by a live chart of OM's."""
    engine, random = Engine(sharing="off"), np.random.default_rng(5)
    running = [_Running(f"q{number}", one) for number, one in enumerate(queries)]
    for one in running:
        for stream in one.streams:
            engine.create_stream(stream, "host BIGINT, kind BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query(one.name, one.sql)
        if one.rounds.query is not Q1:
            engine.optimize(
                one.name, "lambda_chart", "auto",
                review="1 seconds", effort=1.0, cost="om", estimates="om", contested=0,
            )  # fmt: skip
    turns: list[str] = []
    for second in range(rounds):
        turns += engine.push({s: rows for one in running for s, rows in one.arrivals(second, random).items()})
        for one in running:
            one.see(engine)
    return [_scheduled(engine, one, turns) for one in running]


def _scheduled(engine: Engine, one: _Running, turns: Sequence[str]) -> Scheduled:
    traffic = one.traffic()
    return Scheduled(
        rounds=Rounds(one.rounds.query, traffic),
        ran=np.flatnonzero(traffic.rates.sum(axis=1)).tolist(),
        turns=[place for place, name in enumerate(turns) if name == one.name],
        reviewed=[e.step for e in engine.events if isinstance(e, PlanReviewed) and e.query == one.name],
        plans=() if one.rounds.query is Q1 else one.plans,
    )
