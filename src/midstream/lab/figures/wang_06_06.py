"""Wang Fig. 6.6: comparisons saved by state-slice over selection pull-up, a tree of joins."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.join_tree import JoinTree
from midstream.lab.costs.join_tree_ratios import Ratios, cpu_over_pull_up_as_printed
from midstream.lab.figure import Claim, Verdict
from midstream.lab.tidy import column
from midstream.lab.wang_settings import SIGNIFICANT, OfTree, percent

SOURCE = "Wang §6.4.4, Fig. 6.6"
CLOSED = Claim("Equation 6.8 is the comparison of Equations 6.6 and 6.7.", SOURCE)
MOST = Claim("State-slice achieves significant savings of CPU for most of the situations.", SOURCE)
EXAMPLE = Claim("Pull-up consumes about five times the CPU of the others (Table 6.2).", SOURCE)


class Wang0606(OfTree):
    """CPU saved over pull-up."""

    name: ClassVar[str] = "wang_06_06"
    title: ClassVar[str] = "CPU saved by state-slice over pull-up, join tree"
    source: ClassVar[str] = SOURCE
    schemes: ClassVar[frozenset[str]] = frozenset({"mem_opt", "pull_up"})
    saved: ClassVar[str] = "CPU saved"
    printed: ClassVar[str] = "Equation 6.8 as printed"
    in_full: ClassVar[str] = "Equations 6.6 and 6.7"
    counted: ClassVar[str] = "operations"
    panels: ClassVar[tuple[str, ...]] = (printed, in_full)

    @override
    def ratios(self, t: JoinTree, m: float, n: float) -> dict[str, float]:
        return {self.printed: cpu_over_pull_up_as_printed(m, n), self.in_full: Ratios.of(t).cpu_over_pull_up}

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        closed, full = (column(data, self.saved, case=case) for case in self.panels)
        inner = self.over_all(data, self.in_full)
        apart = np.abs(closed - full)
        much = float((inner > SIGNIFICANT).mean())
        times = 1 / self.worked(data)
        return (
            CLOSED.judged(
                float(apart.max()) < 0.01,
                f"the savings differ by up to {100 * float(apart.max()):.0f} points",
                "the probes of AB3 with C3, 187.5 n (1 - m) of 453.8, are missing from its numerator: the very ones of "
                "which the text says that they dominate",
            ),
            MOST.judged(
                much > 0.5,
                f"{inner.mean():.1%} on average, more than {SIGNIFICANT:.0%} at {much:.0%} of the settings; "
                f"{percent(full)}",
                "it saves little at most settings",
            ),
            EXAMPLE.judged(4 < times < 6, f"{times:.2f} times state-slice's", "it is not five times"),
            self.on_engine(data, SIGNIFICANT, "pull-up costs about as much at most ratios"),
        )
