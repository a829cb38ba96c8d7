"""Zhu Fig. 13: intermediate tuple counts where the system has power to spare."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Verdict
from midstream.lab.trace import Numbers
from midstream.lab.zhu import LOW, MIGRATED
from midstream.lab.zhu_cases import INTERMEDIATE, POWER, CasesFigure, Conditions, Course, courses

SMALLER = Claim(
    "The new plan has a much smaller intermediate tuple count than the old plan throughout.", "Zhu §6.3, Fig. 13"
)
OVERLAP = Claim("During the first 10,000 ms the other three lines overlap.", "Zhu §6.3, Fig. 13")
EARLIER = Claim(
    "Moving state comes to the new plan's intermediate tuple count earlier than parallel track.", "Zhu §6.3, Fig. 13"
)
SAME = Claim("Both strategies eventually have the count of the new plan alone.", "Zhu §6.3, Fig. 13")


class Zhu13(CasesFigure):
    """Intermediate tuples over time, low configuration."""

    name: ClassVar[str] = "zhu_13"
    title: ClassVar[str] = "intermediate tuple counts, low configuration"
    source: ClassVar[str] = "Zhu §6.3, Fig. 13"
    conditions: ClassVar[Conditions] = Conditions(LOW, tick=0.1, quick=20, full=50)
    drawn: ClassVar[str] = INTERMEDIATE
    setting: ClassVar[str] = (
        "Table 2, §6.3 set 1: W = 1000 ms, a row every 100 ms from each stream, reduction factors 0.1, 0.02, 0.02; "
        f"{POWER:,} comparisons a second. Counted are the living combinations of two or three streams in all states, "
        "at the middle of each second."
    )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        lines = courses(data)
        new, old, moving, parallel = lines.values()
        ratio = new.intermediate.mean() / old.intermediate.mean()
        throughout = float((new.intermediate <= old.intermediate).mean())
        before = [line.within(line.intermediate, 0, MIGRATED) for line in (old, moving, parallel)]
        apart = max(float(abs(other - before[0]).max()) for other in before[1:])
        since = [joins(line, new) for line in (moving, parallel)]
        return (
            SMALLER.judged(
                bool(ratio < 0.5 and throughout > 0.9),
                f"{ratio:.0%} of the old plan's on average, and not above it in {throughout:.0%} of the seconds",
                "the reduction factors are too alike",
            ),
            OVERLAP.judged(apart == 0, f"they differ by at most {apart:.0f} tuples", "the runs are not alike"),
            EARLIER.judged(
                since[0] < since[1],
                f"moving state from {since[0]:.1f} s on, parallel track from {since[1]:.1f} s on",
                "parallel track's empty new plan is filled, and its old plan gone, as soon as moving state is done",
            ),
            SAME.judged(
                bool(np.isfinite(since).all()),
                "in every second from then on the counts are equal",
                "the counts differ at the end",
            ),
        )


def joins(line: Course, other: Course) -> float:
    """Find the first second after the migration's begin from which on both counts are equal."""
    unequal: Numbers = line.seconds[(line.intermediate != other.intermediate) & (line.seconds >= MIGRATED)]
    later = line.seconds[line.seconds > unequal.max(initial=MIGRATED)]
    return float(later[0]) if len(later) else float("inf")
