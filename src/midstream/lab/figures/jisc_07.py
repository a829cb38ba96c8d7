"""JISC Fig. 7: the migration stage, best case."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.figure import Claim, Verdict
from midstream.lab.jisc_transition import BEST, COMPARISONS, TransitionFigure, listed

SOURCE = "JISC §6.1, Fig. 7"
FASTEST = Claim("JISC has the best performance during the migration stage.", SOURCE)
ORDER = Claim("The speedup over PT reaches an order of magnitude at 100 joins.", SOURCE)
GROWS = Claim("JISC's speedup is greatest for plans with a large number of joins.", SOURCE)
BETWEEN = Claim("CACQ takes less time than PT and more than JISC.", SOURCE)


class Jisc07(TransitionFigure):
    """One incomplete state: the two topmost streams change places."""

    name: ClassVar[str] = "jisc_07"
    title: ClassVar[str] = "the migration stage, best case"
    source: ClassVar[str] = SOURCE
    transition: ClassVar[str] = BEST

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        pt, cacq = (self.ratios(data, case, BEST) for case in ("parallel_track", "cacq"))
        compared = self.ratios(data, "parallel_track", BEST, COMPARISONS)
        most = max(pt)
        often, rows = self.checks(data, BEST, 10.0)
        dearer = all(pt[joins] >= ratio for joins, ratio in cacq.items())
        return (
            FASTEST.judged(
                min(*pt.values(), *cacq.values()) > 1,
                f"PT / JISC by joins: {listed(pt)}; CACQ / JISC: {listed(cacq)}",
                "another is as good",
            ),
            ORDER.judged(
                pt[most] >= 7,
                f"PT / JISC at {most} joins: {pt[most]:.2f} in operations, {compared[most]:.2f} in comparisons",
                "PT runs two plans, each of which does at most what JISC's one does, so its joins can cost it no more "
                "than a factor of 2. The rest of the paper's factor must be what its PT does besides: eliminating "
                f"duplicates, and looking through the old plan's states for old rows (§4.3). {often:.0f} such looks "
                f"would make it 10, with windows of 10,000 rows one after every {rows:,} rows that arrive; the engine "
                "compares watermarks instead",
            ),
            GROWS.judged(
                pt[most] == max(pt.values()),
                f"PT / JISC by joins: {listed(pt)}",
                "two plans cost twice as much as one however many joins they have",
            ),
            BETWEEN.judged(
                dearer and min(cacq.values()) > 1,
                f"CACQ / JISC by joins: {listed(cacq)}; PT / JISC: {listed(pt)}",
                "each row visits all SteMs, in a plan on average half of the joins: CACQ takes about twice JISC's "
                "operations at any time, PT less than twice during a migration",
            ),
        )
