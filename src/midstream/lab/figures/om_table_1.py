"""OM Table 1: what the techniques can do, each cell measured."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Canvas, Claim, Scale, Verdict
from midstream.lab.om_figures import CASE, DRIFTING, ROUNDS, STREAMS, OmFigure
from midstream.lab.om_rounds import PAPER, Q2, RATE, Rounds
from midstream.lab.om_streams import real_joined
from midstream.lab.tidy import column, table
from midstream.optimizer.cost.om import OmOperator, OmWeights, Queueing, pipeline_cost

SOURCE = "OM §5, Table 1"
DYNAMIC = Claim("OM and Eddy are dynamic, Rate is static.", SOURCE)
GRANULARITY = Claim("OM and Rate decide per query, Eddy per tuple.", SOURCE)
MEMORY = Claim("OM addresses memory utilization and output rate, Rate only the output rate.", SOURCE)
TUNABLE = Claim("OM is tunable to the user's requirement by the granularity of its chart.", SOURCE)

SWITCHES, DECISIONS, BY_WEIGHTS, BY_K = "switches", "decisions", "plans by weights", "regions by k"
EDDY = "EDDY"
COARSE, FINE, SEED = 5, 10, 1


class OmTable1(OmFigure):
    """What OM, Eddy and Rate do over ten minutes of one three-way join."""

    name: ClassVar[str] = "om_table_1"
    title: ClassVar[str] = "comparison of techniques"
    source: ClassVar[str] = SOURCE
    policies: ClassVar[frozenset[str]] = frozenset({"lambda_chart", "static", "eddy"})
    x: ClassVar[str] = CASE
    setting: ClassVar[str] = (
        STREAMS
        + f"Q2, coefficient of variation {DRIFTING}. Plans by weights: how many different plans are chosen for the "
        "operators of Fig. 2, by a weight on the output rate and by one on memory. Chain is not here: it schedules "
        "queued operators, as tests/unit/lab/test_om_chain.py has it for ten queries."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rounds = Rounds(Q2, real_joined(ROUNDS, DRIFTING, SEED))
        coarse, fine = rounds.chart(COARSE), rounds.chart(FINE)
        ours, rate = (rounds.course(case, fine)[0] for case in (PAPER, RATE))
        # A tuple goes where the plan of its very round would have sent it: an eddy is at its best.
        followed = sum(one != other for one, other in zip(rounds.best, rounds.best[1:], strict=False))
        tuples = int(rounds.traffic.rates.sum())
        return table(
            [
                {CASE: PAPER, SWITCHES: ours.switches, DECISIONS: ours.rounds, BY_WEIGHTS: len(_chosen(True)),
                 BY_K: len(fine.best) - len(coarse.best)},
                {CASE: EDDY, SWITCHES: followed, DECISIONS: tuples, BY_WEIGHTS: len(_chosen(False)), BY_K: 0},
                {CASE: RATE, SWITCHES: rate.switches, DECISIONS: 1, BY_WEIGHTS: len(_chosen(False)), BY_K: 0},
            ]
        )  # fmt: skip

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        def of(name: str) -> dict[str, int]:
            return {case: int(column(data, name, case=case)[0]) for case in (PAPER, EDDY, RATE)}

        switches, decisions, plans, regions = map(of, (SWITCHES, DECISIONS, BY_WEIGHTS, BY_K))
        return (
            DYNAMIC.judged(
                switches[PAPER] > 0 == switches[RATE] < switches[EDDY],
                f"{switches[PAPER]}, {switches[EDDY]} and {switches[RATE]} switches",
                "they switch otherwise",
            ),
            GRANULARITY.judged(
                decisions[RATE] == 1 < decisions[PAPER] < decisions[EDDY] / 100,
                f"{decisions[PAPER]}, {decisions[EDDY]:,} and {decisions[RATE]} decisions",
                "they decide otherwise",
            ),
            MEMORY.judged(
                plans[PAPER] == 2 and plans[RATE] == 1,
                f"{plans[PAPER]} plans by the weights, {plans[RATE]} where only the rate counts",
                "the weights make no difference",
            ),
            TUNABLE.judged(
                regions[PAPER] > 0,
                f"{COARSE**3} regions at k = {COARSE}, {COARSE**3 + regions[PAPER]} at k = {FINE}",
                "there are as many",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.set_axis_off()
        cells = [[f"{row[name]:,}" for name in (SWITCHES, DECISIONS, BY_WEIGHTS, BY_K)] for row in data.to_pylist()]
        labels = [str(row[CASE]) for row in data.to_pylist()]
        drawn = axes.table(
            cellText=cells, rowLabels=labels, colLabels=[SWITCHES, DECISIONS, BY_WEIGHTS, BY_K], loc="center"
        )
        drawn.scale(1, 2)


def _chosen(memory_counts: bool) -> set[int]:
    # Where memory has no weight, the plan chosen for an output rate is that for both.
    operators = (OmOperator("o_1", 0.5, 500), OmOperator("o_2", 0.1, 50))
    orders = (operators, operators[::-1])
    weights = (OmWeights(20_000, 2), OmWeights(0.1, 0.9 if memory_counts else 0.0))
    costs = [[pipeline_cost(order, 500, 1, Queueing.EXAMPLE).weighted(w) for order in orders] for w in weights]
    return {found.index(min(found)) for found in costs}
