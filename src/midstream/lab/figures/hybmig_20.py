"""HybMig Fig. 20: what subquery sharing saves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import bars
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.hybmig_overhead import CPU, MEASURES, MEMORY
from midstream.lab.hybmig_settings import CLIQUE, STREAMS, HybMigTask, Machine
from midstream.lab.tidy import column, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

SOURCE = "HybMig §5.2, Fig. 20"
FACTOR = Claim("Sharing improves performance up to a factor of 2.", SOURCE)

DOMAIN = 180
PLAIN, SHARED = "hybmig without sharing", "hybmig with sharing"


class HybMig20(Figure):
    """Peak memory and comparisons of HybMig with and without decomposition, over n."""

    name: ClassVar[str] = "hybmig_20"
    title: ClassVar[str] = "effect of sharing"
    paper: ClassVar[str] = "HybMig"
    source: ClassVar[str] = SOURCE
    strategies: ClassVar[frozenset[str]] = frozenset({"hybmig"})
    setting: ClassVar[str] = (
        f"{CLIQUE} From the left-deep plan to the one that joins its last two streams first. A window holds the "
        f"paper's 180 rows and the common domain {DOMAIN} keys: where a join multiplies its input, the topmost joins, "
        "which cannot be shared, do most of the work."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        machine = replace(Machine.smooth(scale), domain=DOMAIN)
        for streams in STREAMS:
            task = HybMigTask(machine, streams=streams, shape="sharing", ticks=scale.pick(quick=18, full=36))
            for case, decompose in ((PLAIN, False), (SHARED, True)):
                trace = task.play("hybmig", {"decompose": decompose})
                rows.append(
                    {
                        "case": case,
                        "n": streams,
                        MEMORY: trace.peak("state_rows", task.start),
                        CPU: trace.total("comparisons", task.start),
                    }
                )
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        ratios = {m: column(data, m, case=PLAIN) / column(data, m, case=SHARED) for m in MEASURES}
        every = np.concatenate(list(ratios.values()))
        shown = "; ".join(f"{m}: {', '.join(f'{r:.2f}' for r in found)}" for m, found in ratios.items())
        return (
            FACTOR.judged(
                bool(every.min() >= 1 and 1.5 <= every.max() <= 2.2),
                f"without sharing / with sharing, by n = {', '.join(map(str, column(data, 'n', case=PLAIN)))}: {shown}",
                "what is shared is computed once instead of twice, but most of the work is above it"
                if every.max() < 1.5
                else "the more streams are shared, the more is spared: the lower plan's state is not even kept twice",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for axes, measure in zip(canvas.subplots(1, 2), MEASURES, strict=True):
            bars(axes, data, "n", measure)
            axes.set_yscale("log")
