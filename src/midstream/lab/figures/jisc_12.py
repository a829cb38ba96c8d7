"""JISC Fig. 12: the frequency of plan transitions, best case."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Verdict
from midstream.lab.jisc_frequency import BEST, VISIBLE, WORST, FrequencyFigure


class Jisc12(FrequencyFigure):
    """One state is incomplete after every transition, the one below the root."""

    name: ClassVar[str] = "jisc_12"
    title: ClassVar[str] = "frequency of transitions, best case"
    source: ClassVar[str] = "JISC §6.4, Fig. 12"
    transition: ClassVar[str] = BEST

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        rise = {t: (found := self.of(data, "jisc", t))[0] - found[-1] for t in (BEST, WORST)}
        slope = Claim("The slope of JISC's execution time is lower than in Fig. 11.", self.source)
        return (
            *self.common(data),
            slope.sized(
                rise[BEST] < rise[WORST],
                rise[BEST] * VISIBLE < rise[WORST],
                f"from the rarest to the most frequent transitions {rise[BEST]:,.0f} operations more, "
                f"in the worst case {rise[WORST]:,.0f}",
                "completing one state costs nearly as much as completing all",
            ),
        )
