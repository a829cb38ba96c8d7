"""OM §5.4: ten queries in a queue, served round-robin. The paper reports it without a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.embedded import Engine
from midstream.lab.drawing import bars
from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.om_figures import CASE, DRIFTING, EXCESS, FIDELITY, ROUNDS, STREAMS, WIDTHS, OmFigure, span
from midstream.lab.om_rounds import MATCH, PAPER, Q1, Q2, WEIGHED, Rounds
from midstream.lab.om_streams import Numbers, Traffic, real_joined, real_single
from midstream.lab.tidy import column, table
from midstream.lab.wang_settings import percent
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
        for place, stream in enumerate(self.streams):
            rows = round(traffic.rates[second, place])
            # Q1 selects the first kind.
            kinds = (np.arange(rows) >= round(rows * traffic.selectivity[second])).astype(np.int64)
            times = np.sort(second * MICROS + random.integers(0, MICROS, rows))
            hosts = random.integers(0, HOSTS, rows)
            found[stream] = pa.table({"host": hosts, "kind": kinds, "ts": pa.array(times, pa.timestamp("us"))})
        return found

    def see(self, engine: Engine) -> None:
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


SOURCE = "OM §5.4"
FIDELITIES = Claim("Single stream queries experience a fidelity of 95 % and the join queries of 90 %.", SOURCE)
FAIR = Claim("The scheduling is fair because the queue is not sorted after each round.", SOURCE)
STARVATION = Claim("The approach is starvation-free: each query is serviced in FIFO fashion.", SOURCE)
TURNS = Claim("Ours: live reviews take turns, and no join is reviewed a tenth more often than another.", SOURCE)
LITTLE_MORE = Claim("Ours: a live `lambda_chart` costs at most 2 % more than the best plan of every round.", SOURCE)

QUERIES = 10
WAIT, SERVED, KIND = "longest wait (rounds)", "rounds served", "kind"
SINGLE, JOINED = "single stream", "join"
LIVE = "lambda_chart, live"


class Om054(OmFigure):
    """Fidelity of each query, how often it was served and how long it waited."""

    name: ClassVar[str] = "om_05_4"
    title: ClassVar[str] = "ten queries, round-robin"
    source: ClassVar[str] = SOURCE
    policies: ClassVar[frozenset[str]] = frozenset({"sel_lambda_chart", "lambda_chart"})
    x: ClassVar[str] = "query"
    setting: ClassVar[str] = (
        "Ten queries on one engine, a step of a second a round: five like Q1 and five like Q2 over streams of their "
        f"own, coefficient of variation {DRIFTING}, k = 10. A round's rates and selectivities are those that the "
        "engine counted, a round was served if the query took rows in, and turns are in order of the answers. "
        f"Plans{STREAMS.removeprefix('No engine: plans')}{WIDTHS}"
        f"`{LIVE}` is the policy itself on the joins, by OM's cost and estimates; it is served when it is reviewed, "
        "and a hit is a round that it ran by the plan which was the best one for what the round turned out to be. The "
        "paper reports this without a figure."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        queries = [_query(number) for number in range(QUERIES)]
        rows = []
        for number, one in enumerate(scheduled(queries, ROUNDS), 1):
            about = {self.x: number, KIND: SINGLE if one.rounds.query is Q1 else JOINED}
            chart = one.rounds.chart()
            found = {case: one.rounds.course(case, chart)[1] for case in (PAPER, WEIGHED)} | {LIVE: one.plans}
            turns = {LIVE: one.reviewed}
            for case, plans in found.items():
                if plans:
                    served, waited = len(turns.get(case, one.ran)), longest_wait(turns.get(case, one.turns))
                    hits = sum(map(str.__eq__, plans, one.rounds.best)) / len(plans)
                    cost = {FIDELITY: hits, EXCESS: one.rounds.excess(plans)}
                    rows.append({CASE: case, **about, **cost, SERVED: served, WAIT: waited})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        single, joined = (column(data, FIDELITY, case=PAPER, **{KIND: kind}) for kind in (SINGLE, JOINED))
        anew = [column(data, FIDELITY, case=WEIGHED, **{KIND: kind}).mean() for kind in (SINGLE, JOINED)]
        served, waited = (column(data, name, case=PAPER) for name in (SERVED, WAIT))
        live, reviews, between, excess = (column(data, name, case=LIVE) for name in (FIDELITY, SERVED, WAIT, EXCESS))
        return (
            FIDELITIES.judged(
                bool(single.mean() >= 0.945 and joined.mean() >= 0.895),
                f"{single.mean():.0%} ({span(single)}) and {joined.mean():.0%} ({span(joined)}); contested regions "
                f"weighed anew {anew[0]:.0%} and {anew[1]:.0%}",
                "ten partitions tell three streams of equal mean rates apart less well, and in whole rows a round's "
                "rates and selectivity are estimated less well",
            ),
            FAIR.judged(len(set(served.tolist())) == 1, f"each runs {served[0]} rounds", "some run more often"),
            STARVATION.judged(
                max(waited) < QUERIES, f"none waits longer than for {max(waited)} others", "some wait longer"
            ),
            TURNS.judged(
                max(reviews) <= 1.1 * min(reviews),
                f"{min(reviews)} to {max(reviews)} reviews, none waits longer than {max(between)} rounds for one",
                "some are reviewed more often",
            ),
            LITTLE_MORE.judged(
                float(max(excess)) <= 0.02,
                f"{percent(excess)} more, with the best plan in {span(live)} of the rounds: the plans of three streams "
                "of equal mean rates cost nearly the same, and the errors of sampled joins decide between them",
                "the errors of sampled joins choose plans that cost more",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        bars(axes, data, self.x, FIDELITY)
        axes.set_ylim(0, 1.02)


def _query(number: int) -> Rounds:
    if number % 2:
        return Rounds(Q2, real_joined(ROUNDS, DRIFTING, seed=number))
    return Rounds(Q1, real_single(ROUNDS, DRIFTING, seed=number))
