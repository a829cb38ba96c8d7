"""Wang Fig. 5.10: comparisons saved by state-slice over selection push-down."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from midstream.lab.costs.cost_terms import Cost
from midstream.lab.costs.two_queries import TwoQueries, cpu_saved_over_push_down, push_down
from midstream.lab.wang_cpu_of_two import CpuOfTwo


class Wang0510(CpuOfTwo):
    """CPU saved over push-down."""

    name: ClassVar[str] = "wang_05_10"
    title: ClassVar[str] = "CPU saved by state-slice over push-down"
    source: ClassVar[str] = "Wang §5.3, Fig. 5.10"
    schemes: ClassVar[frozenset[str]] = frozenset({"mem_opt", "push_down"})
    why_not_average: ClassVar[str] = (
        "push-down probes just as little as state-slice; what is saved is its router, S_sigma S_join of the wide "
        "window's probes, and that is little unless many pairs join"
    )

    @override
    def rival(self, q: TwoQueries) -> Cost:
        return push_down(q)

    @override
    def equation(self, rho: float, s_sigma: float, s_join: float) -> float:
        return cpu_saved_over_push_down(rho, s_sigma, s_join)
