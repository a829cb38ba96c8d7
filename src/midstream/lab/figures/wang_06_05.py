"""Wang Fig. 6.5: memory saved by state-slice over isolated execution, a tree of joins."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.join_tree import JoinTree
from midstream.lab.costs.join_tree_ratios import Ratios, memory_over_isolated
from midstream.lab.figure import Claim, Verdict
from midstream.lab.tidy import column
from midstream.lab.wang_settings import OfTree, percent

SOURCE = "Wang §6.3.4, Fig. 6.5"
AVERAGE = Claim("State-slice saves about 20 % to 30 % memory over the alternatives on average.", SOURCE)
LOWEST = Claim("State-slice achieves the lowest memory consumption under all these settings.", SOURCE)
EXAMPLE = Claim("State-slice and isolated execution consume almost the same memory (Table 6.2).", SOURCE)


class Wang0605(OfTree):
    """Memory saved over isolated execution."""

    name: ClassVar[str] = "wang_06_05"
    title: ClassVar[str] = "memory saved by state-slice over isolated execution, join tree"
    source: ClassVar[str] = SOURCE
    schemes: ClassVar[frozenset[str]] = frozenset({"mem_opt", "off"})
    saved: ClassVar[str] = "memory saved"
    printed: ClassVar[str] = "Equation 6.4"
    in_full: ClassVar[str] = "Equations 6.1 and 6.3"
    counted: ClassVar[str] = "tuples"
    panels: ClassVar[tuple[str, ...]] = (printed, in_full)

    @override
    def ratios(self, t: JoinTree, m: float, n: float) -> dict[str, float]:
        return {self.printed: memory_over_isolated(m, n), self.in_full: Ratios.of(t).memory_over_isolated}

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        mean = float(self.over_all(data, self.in_full).mean())
        full = column(data, self.saved, case=self.in_full)
        worked = self.worked(data)
        return (
            AVERAGE.judged(
                0.2 <= mean <= 0.3,
                f"{mean:.1%} over isolated execution, {percent(full)}",
                "28 % is the most there is, where both queries have the same windows; the narrower Q_1's lower window "
                "and Q_2's upper one, the less there is to share",
            ),
            LOWEST.judged(
                bool((full > 0).all()), f"{percent(full)} saved in full", "isolated execution takes less somewhere"
            ),
            EXAMPLE.judged(
                abs(worked - 1) < 0.02,
                f"{worked:.2%} of isolated execution, which takes 2329.175 MB (the text adds up 2325.8)",
                "they differ",
            ),
            self.on_engine(data, 0.0, "isolated execution takes less somewhere"),
        )
