"""OM Fig. 3(a): fidelity of a single-stream query over time, with a burst."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import lines, mark
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.om_figures import CASE, DRIFTING, FIDELITY, MOVES, ROUNDS, STREAMS, SWITCHES, WIDTHS, OmFigure
from midstream.lab.om_rounds import PAPER, Q1, WEIGHED, Rounds
from midstream.lab.om_streams import real_single, with_burst
from midstream.lab.tidy import column, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

SOURCE = "OM §5.2, Fig. 3(a)"
WELL = Claim("The estimations work very well, except when there is a sudden burst of inputs.", SOURCE)
AVERAGE = Claim("The optimizer performs with an average fidelity of 80 %.", SOURCE)
FEWER = Claim("A move does not necessarily imply a switch: there were 84 moves and 23 switches.", SOURCE)

TIME = "time (s)"
SPAN, BURST, QUIET, TIMES, SEED = 100, 530, 570, 3.0, 1
"""Seconds that are averaged; a burst of three times the rows, from 530 s to 570 s."""


class Om03A(OmFigure):
    """The share of rounds that ran the best plan, of each hundred."""

    name: ClassVar[str] = "om_03_a"
    title: ClassVar[str] = "fidelity of a single-stream query over time"
    source: ClassVar[str] = SOURCE
    policies: ClassVar[frozenset[str]] = frozenset({"sel_lambda_chart"})
    x: ClassVar[str] = TIME
    setting: ClassVar[str] = (
        STREAMS
        + WIDTHS
        + f"Q1, coefficient of variation {DRIFTING}; from {BURST} s to {QUIET} s a burst of {TIMES:g} times "
        "the rows that nothing has averaged. Once as in the paper; once, where the corners of a region have different "
        "best plans, those few are weighed anew at the point."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        known = real_single(ROUNDS, DRIFTING, SEED)
        # The chart is made beforehand: nobody knew of the burst.
        chart = Rounds(Q1, known).chart()
        rounds = Rounds(Q1, with_burst(known, BURST, QUIET, TIMES, SEED))
        rows = []
        for case in (PAPER, WEIGHED):
            course, plans = rounds.course(case, chart)
            for begin in range(0, ROUNDS, SPAN):
                pairs = zip(plans[begin : begin + SPAN], rounds.best[begin : begin + SPAN], strict=True)
                hits = sum(plan == best for plan, best in pairs)
                row = {CASE: case, TIME: begin + SPAN / 2, FIDELITY: hits / SPAN}
                rows.append({**row, MOVES: course.moves, SWITCHES: course.switches})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        found = self.fidelity(data, PAPER)
        quiet = [value for second, value in found.items() if second < ROUNDS - SPAN]
        burst, mean = found[ROUNDS - SPAN / 2], sum(found.values()) / len(found)
        moves, switches = (int(column(data, name, case=PAPER)[0]) for name in (MOVES, SWITCHES))
        return (
            WELL.judged(
                min(quiet) > burst,
                f"{sum(quiet) / len(quiet):.0%} on average before, {burst:.0%} in the hundred seconds with the burst",
                "some quiet hundred seconds were worse",
            ),
            AVERAGE.sized(
                mean >= 0.8, mean < 0.85, f"{mean:.0%} on average", "our streams are foreseen better than the paper's"
            ),
            FEWER.judged(
                0 < switches < moves / 2, f"{moves} moves and {switches} switches", "nearly every move is a switch"
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        axes = canvas.subplots()
        lines(axes, data, TIME, FIDELITY, marks=True)
        mark(axes, BURST, "burst")
        axes.set_ylim(0, 1.02)
