"""Zhu Fig. 16: output rate where the system cannot keep up with the old plan."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Verdict
from midstream.lab.zhu import HIGH, MIGRATED
from midstream.lab.zhu_cases import BIN, POWER, RATE, CasesFigure, Conditions, courses

HIGHER = Claim(
    "Parallel track has a higher output rate than moving state at the initial stage of migration.", "Zhu §6.3, Fig. 16"
)
SILENCE = Claim(
    "There is a noticeable output silence between 10,000 ms and 20,000 ms for moving state.", "Zhu §6.3, Fig. 16"
)
GENERATED = Claim("Parallel track generates output while the migration is ongoing.", "Zhu §6.3, Fig. 16")


class Zhu16(CasesFigure):
    """Output rate over time, high configuration."""

    name: ClassVar[str] = "zhu_16"
    title: ClassVar[str] = "output rate, high configuration"
    source: ClassVar[str] = "Zhu §6.3, Fig. 16"
    conditions: ClassVar[Conditions] = Conditions(HIGH, tick=0.2, quick=24, full=50)
    drawn: ClassVar[str] = RATE
    setting: ClassVar[str] = (
        f"As Fig. 15: Table 2, §6.3 set 2, {POWER:,} comparisons a second; results in each second of virtual time. "
        "Parallel track holds the new plan's results until the old plan is gone, as in the paper."
    )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        lines = courses(data)
        moving, parallel = lines["moving_state"], lines["parallel_track"]
        initial = (MIGRATED, MIGRATED + HIGH.seconds)
        rates = [line.within(line.rate, *initial).mean() for line in (moving, parallel)]
        quiet = longest_zero(moving.within(moving.rate, MIGRATED, 2 * MIGRATED)) * BIN
        by_second = parallel.within(parallel.rate, MIGRATED, np.floor(parallel.stage_ends))
        return (
            HIGHER.untested(
                f"in the first W after the begin parallel track gives {rates[1]:,.0f} results a second, moving state "
                f"{rates[0]:,.0f}",
                "parallel track runs the old plan, which was too slow before, and the new one beside it, and holds the "
                "new one's results; moving state has the cheaper plan at once",
            ),
            SILENCE.untested(
                f"the stage lasts {moving.stage_ends - moving.stage_begins:.2f} s, and moving state is silent for "
                f"{quiet:.0f} whole seconds of it",
                "recomputing S_BC and S_BCD takes a fraction of W (see Fig. 12). The paper first lets the old plan "
                "process all accumulated tuples (§4.1.3), here several seconds of arrivals at half the speed they "
                "need. The engine need not: base rows outlive whatever could still join them, so that the tuples in "
                "the queue may count as new",
            ),
            GENERATED.judged(
                bool((by_second > 0).sum() > len(by_second) / 2),
                f"in {int((by_second > 0).sum())} of the {len(by_second)} seconds of its stage",
                "toward the end of the stage the old plan has only few results with an old tuple left, and the new "
                "plan's are held",
            ),
        )


def longest_zero(rates: np.ndarray) -> int:
    """Find the length of the longest run of zeros."""
    longest = run = 0
    for rate in rates:
        run = 0 if rate else run + 1
        longest = max(longest, run)
    return longest
