"""OM §5.4: ten queries in a queue, served round-robin. The paper reports it without a figure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import bars
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.om_figures import CASE, DRIFTING, FIDELITY, ROUNDS, STREAMS, WIDTHS, OmFigure, span
from midstream.lab.om_rounds import PAPER, Q1, Q2, WEIGHED, Rounds
from midstream.lab.om_streams import real_joined, real_single
from midstream.lab.tidy import column, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

SOURCE = "OM §5.4"
FIDELITIES = Claim("Single stream queries experience a fidelity of 95 % and the join queries of 90 %.", SOURCE)
FAIR = Claim("The scheduling is fair because the queue is not sorted after each round.", SOURCE)
STARVATION = Claim("The approach is starvation-free: each query is serviced in FIFO fashion.", SOURCE)

QUERIES = 10
WAIT, SERVED, KIND = "longest wait (rounds)", "rounds served", "kind"
SINGLE, JOINED = "single stream", "join"


class Om054(OmFigure):
    """Fidelity of each query, how often it was served and how long it waited."""

    name: ClassVar[str] = "om_05_4"
    title: ClassVar[str] = "ten queries, round-robin"
    source: ClassVar[str] = SOURCE
    policies: ClassVar[frozenset[str]] = frozenset({"sel_lambda_chart", "lambda_chart"})
    x: ClassVar[str] = "query"
    setting: ClassVar[str] = (
        STREAMS + WIDTHS + f"Five queries like Q1 and five like Q2 over streams of their own, coefficient of variation "
        f"{DRIFTING}, k = 10. They wait in a queue; the first one runs one round and goes to the back. The paper "
        "reports this without a figure."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        queries = [_query(number) for number in range(QUERIES)]
        charts = [rounds.chart() for rounds in queries]
        queue, served, waited = deque(range(QUERIES)), [0] * QUERIES, [0] * QUERIES
        last = [-1] * QUERIES
        for turn in range(QUERIES * ROUNDS):
            number = queue.popleft()
            waited[number] = max(waited[number], turn - last[number] - 1 if last[number] >= 0 else number)
            last[number], served[number] = turn, served[number] + 1
            queue.append(number)
        return table(
            {
                CASE: case,
                self.x: number + 1,
                KIND: SINGLE if rounds.query is Q1 else JOINED,
                FIDELITY: rounds.course(case, chart)[0].fidelity,
                SERVED: served[number],
                WAIT: waited[number],
            }
            for case in (PAPER, WEIGHED)
            for number, (rounds, chart) in enumerate(zip(queries, charts, strict=True))
        )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        single, joined = (column(data, FIDELITY, case=PAPER, **{KIND: kind}) for kind in (SINGLE, JOINED))
        anew = [column(data, FIDELITY, case=WEIGHED, **{KIND: kind}).mean() for kind in (SINGLE, JOINED)]
        served, waited = (column(data, name, case=PAPER) for name in (SERVED, WAIT))
        return (
            FIDELITIES.judged(
                bool(single.mean() >= 0.945 and joined.mean() >= 0.895),
                f"{single.mean():.0%} ({span(single)}) and {joined.mean():.0%} ({span(joined)}); contested regions "
                f"weighed anew {anew[0]:.0%} and {anew[1]:.0%}",
                "ten partitions tell three streams of equal mean rates apart less well",
            ),
            FAIR.judged(len(set(served.tolist())) == 1, f"each runs {served[0]} rounds", "some run more often"),
            STARVATION.judged(
                max(waited) < QUERIES, f"none waits longer than for {max(waited)} others", "some wait longer"
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
