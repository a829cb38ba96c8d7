"""JISC Fig. 11: the frequency of plan transitions, worst case."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Verdict
from midstream.lab.jisc_frequency import WORST, FrequencyFigure


class Jisc11(FrequencyFigure):
    """Every state is incomplete after every transition."""

    name: ClassVar[str] = "jisc_11"
    title: ClassVar[str] = "frequency of transitions, worst case"
    source: ClassVar[str] = "JISC §6.4, Fig. 11"
    transition: ClassVar[str] = WORST

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        return self.common(data)
