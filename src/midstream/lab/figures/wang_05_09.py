"""Wang Fig. 5.9: comparisons saved by state-slice over selection pull-up."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.cost_terms import Cost
from midstream.lab.costs.two_queries import TwoQueries, cpu_saved_over_pull_up, pull_up
from midstream.lab.figure import Claim, Verdict
from midstream.lab.tidy import column
from midstream.lab.wang_cpu_of_two import CASES, CpuOfTwo
from midstream.lab.wang_settings import S_JOIN

SOURCE = "Wang §5.3, Fig. 5.9"
EXTREME = Claim("For extreme settings the CPU savings can reach about 100 %.", SOURCE)
PROPORTIONAL = Claim("Without selections the CPU saving is proportional to the join selectivity.", SOURCE)


class Wang0509(CpuOfTwo):
    """CPU saved over pull-up."""

    name: ClassVar[str] = "wang_05_09"
    title: ClassVar[str] = "CPU saved by state-slice over pull-up"
    source: ClassVar[str] = SOURCE
    schemes: ClassVar[frozenset[str]] = frozenset({"mem_opt", "pull_up"})
    why_not_average: ClassVar[str] = (
        "the average is (1/4 + 3/2 S_join) / (1 + 2 S_join), which passes 40 % at S_join = 0.21: the more results, the "
        "more the router costs"
    )

    @override
    def rival(self, q: TwoQueries) -> Cost:
        return pull_up(q)

    @override
    def equation(self, rho: float, s_sigma: float, s_join: float) -> float:
        return cpu_saved_over_pull_up(rho, s_sigma, s_join)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        most = max(float(self.over_all(data, case).max()) for case in CASES)
        base = [float(column(data, self.saved, **{"case": case, self.y: 1.0}).mean()) for case in CASES]
        grows, expected = base[-1] / base[0], S_JOIN[-1] / S_JOIN[0]
        return (
            *super().judge(data),
            EXTREME.judged(most > 0.9, f"at most {most:.1%}", "the grid does not reach into the corner"),
            PROPORTIONAL.judged(
                abs(grows / expected - 1) < 0.1,
                f"at S_sigma = 1 it is {', '.join(f'{b:.1%} at {case}' for case, b in zip(CASES, base, strict=True))} "
                f"on average: {grows:.1f} times for {expected:.0f} times the selectivity",
                "it is (2 - rho) S_join / (1 + 2 S_join): the comparisons saved are proportional, their share is not",
            ),
        )
