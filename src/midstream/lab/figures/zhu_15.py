"""Zhu Fig. 15: intermediate tuple counts where the system cannot keep up with the old plan."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Verdict
from midstream.lab.zhu import HIGH, MIGRATED
from midstream.lab.zhu_cases import INTERMEDIATE, POWER, CasesFigure, Conditions, courses

DRAMATIC = Claim(
    "The new plan and both migrated ones outperform the old plan dramatically.", "Zhu §6.3, Figs. 15 and 16"
)
FEWER = Claim(
    "Parallel track has a smaller intermediate tuple count than moving state during the migration stage.",
    "Zhu §6.3, Fig. 15",
)
SHORTER = Claim(
    "The total time for the migration stage is smaller for moving state, which ends the overall execution earlier.",
    "Zhu §6.3, Fig. 15",
)


class Zhu15(CasesFigure):
    """Intermediate tuples over time, high configuration."""

    name: ClassVar[str] = "zhu_15"
    title: ClassVar[str] = "intermediate tuple counts, high configuration"
    source: ClassVar[str] = "Zhu §6.3, Fig. 15"
    conditions: ClassVar[Conditions] = Conditions(HIGH, tick=0.2, quick=24, full=50)
    drawn: ClassVar[str] = INTERMEDIATE
    setting: ClassVar[str] = (
        "Table 2, §6.3 set 2: W = 2000 ms, a row every 50 ms from each stream, reduction factors 0.2, 0.05, 0.05; "
        f"{POWER:,} comparisons a second, about half of what the old plan needs. Counted as in Fig. 13. A run ends "
        "when every arrival is processed."
    )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        lines = courses(data)
        new, old, moving, parallel = lines.values()
        faster = [old.run_ends / line.run_ends for line in (new, moving, parallel)]
        end = parallel.stage_ends
        caught_up = [line.caught_up(HIGH.rate("A") * len(HIGH.inter_arrival)) for line in (moving, parallel)]
        counts = [line.within(line.intermediate, MIGRATED, end).mean() for line in (moving, parallel)]
        return (
            DRAMATIC.judged(
                min(faster) > 1.5,
                f"the old plan ends after {old.run_ends:.0f} s; the new plan {faster[0]:.1f} times, moving state "
                f"{faster[1]:.1f} times and parallel track {faster[2]:.1f} times earlier",
                "parallel track runs both plans on the queue that the old one left behind, so it first falls further "
                "back before it can catch up",
            ),
            FEWER.untested(
                f"from {MIGRATED:.0f} s to {end:.1f} s, while parallel track migrates, it holds {counts[1]:.0f} "
                f"intermediate tuples on average, moving state {counts[0]:.0f}",
                "it holds the states of both plans, while moving state has only the new plan's once it has recomputed "
                "them, which takes no longer than half a window on a processor that can keep up with the new plan (see "
                "Fig. 12)",
            ),
            SHORTER.judged(
                moving.stage_ends < parallel.stage_ends and caught_up[0] < caught_up[1],
                f"moving state's stage ends at {moving.stage_ends:.1f} s, parallel track's at "
                f"{parallel.stage_ends:.1f} s; arrivals wait until {caught_up[0]:.0f} s and {caught_up[1]:.0f} s",
                "parallel track is done earlier",
            ),
        )
