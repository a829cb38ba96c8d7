"""Zhu Fig. 14: output rate where the system has power to spare."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Verdict
from midstream.lab.zhu import LOW, MIGRATED
from midstream.lab.zhu_cases import POWER, RATE, CasesFigure, Conditions, courses

NEITHER = Claim("No strong advantage in output rate can be observed for either strategy.", "Zhu §6.3, Fig. 14")
NEGLECTED = Claim("Moving state's output silence is short enough to be neglected.", "Zhu §6.3, Fig. 14")

SETTLED = 5.0
"""Seconds after which both migrations are long over."""


class Zhu14(CasesFigure):
    """Output rate over time, low configuration."""

    name: ClassVar[str] = "zhu_14"
    title: ClassVar[str] = "output rate, low configuration"
    source: ClassVar[str] = "Zhu §6.3, Fig. 14"
    conditions: ClassVar[Conditions] = Conditions(LOW, tick=0.1, quick=20, full=50)
    drawn: ClassVar[str] = RATE
    setting: ClassVar[str] = (
        f"As Fig. 13: Table 2, §6.3 set 1, {POWER:,} comparisons a second; results in each second of virtual time. "
        "Parallel track holds the new plan's results until the old plan is gone, as in the paper."
    )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        lines = courses(data)
        moving, parallel = lines["moving_state"], lines["parallel_track"]
        during = [line.within(line.rate, MIGRATED, MIGRATED + SETTLED).sum() for line in (moving, parallel)]
        stage = 1000 * (moving.stage_ends - moving.stage_begins)
        return (
            NEITHER.judged(
                abs(during[0] - during[1]) <= 0.1 * during[0],
                f"in the {SETTLED:.0f} s from the migration on, moving state gives {during[0]:.0f} results, parallel "
                f"track {during[1]:.0f}",
                "the results that parallel track holds back are not out yet",
            ),
            NEGLECTED.judged(stage < 100, f"the stage lasts {stage:.1f} ms", "it lasts longer than a step"),
        )
