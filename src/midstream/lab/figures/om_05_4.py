"""OM §5.4: ten queries in a queue, served round-robin. The paper reports it without a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import bars
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.om_engine import longest_wait, scheduled
from midstream.lab.om_figures import CASE, DRIFTING, EXCESS, FIDELITY, ROUNDS, STREAMS, WIDTHS, OmFigure, span
from midstream.lab.om_rounds import PAPER, Q1, Q2, WEIGHED, Rounds
from midstream.lab.om_streams import real_joined, real_single
from midstream.lab.tidy import column, table
from midstream.lab.wang_settings import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

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
