"""JISC Fig. 8: the migration stage, worst case."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Verdict
from midstream.lab.jisc_transition import BEST, OPERATIONS, WORST, TransitionFigure, listed
from midstream.lab.tidy import column

VISIBLE = 1.1
"""The least factor between two speedups that a figure would show."""

SOURCE = "JISC §6.1, Fig. 8"
ABOVE = Claim("JISC is faster than PT and CACQ also where all states are incomplete.", SOURCE)
LESS = Claim("The speedup decreases compared to Fig. 7 due to the overhead of state completion.", SOURCE)
SAME = Claim("The performance of both CACQ and PT is the same as in Fig. 7.", SOURCE)


class Jisc08(TransitionFigure):
    """All states incomplete: the lowest and the topmost stream change places."""

    name: ClassVar[str] = "jisc_08"
    title: ClassVar[str] = "the migration stage, worst case"
    source: ClassVar[str] = SOURCE
    transition: ClassVar[str] = WORST

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        pt, cacq = (self.ratios(data, case, WORST) for case in ("parallel_track", "cacq"))
        best = self.ratios(data, "parallel_track", BEST)
        here, there = (column(data, OPERATIONS, case="parallel_track", transition=t) for t in (WORST, BEST))
        off = float(abs(here / there - 1).max())
        return (
            ABOVE.judged(
                min(*pt.values(), *cacq.values()) > 1,
                f"PT / JISC by joins: {listed(pt)}; CACQ / JISC: {listed(cacq)}",
                "completion costs more than a second plan",
            ),
            LESS.sized(
                all(pt[joins] < best[joins] for joins in pt),
                all(pt[joins] < best[joins] / VISIBLE for joins in pt),
                f"PT / JISC by joins: {listed(pt)}; in the best case {listed(best)}",
                "a key is completed once, for one comparison a join, which every row of it costs anyway",
            ),
            SAME.judged(
                off < 0.02,
                f"PT's operations differ by at most {off:.1%}; CACQ knows no transition",
                "the new plan's order makes other intermediate results",
            ),
        )
