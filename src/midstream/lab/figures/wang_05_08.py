"""Wang Fig. 5.8: memory saved by state-slice sharing of two queries."""

from __future__ import annotations

from typing import ClassVar

import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.two_queries import TwoQueries, pull_up, push_down, state_slice
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.wang_settings import Map, middles, percent

SOURCE = "Wang §5.3, Fig. 5.8"
AVERAGE = Claim("With selections state-slice saves about 20 % to 30 % memory over the alternatives on average.", SOURCE)
EXTREME = Claim("For extreme settings the memory savings can reach about 50 %.", SOURCE)
BASE = Claim("Without selections state-slice takes the same memory as pull-up.", SOURCE)
POSITIVE = Claim("All the savings are positive.", SOURCE)

RIVALS = {"over pull_up": pull_up, "over push_down": push_down}


class Wang0508(Map):
    """Memory saved over the window ratio and the selectivity of the filter."""

    name: ClassVar[str] = "wang_05_08"
    title: ClassVar[str] = "memory saved by state-slice, two queries"
    source: ClassVar[str] = SOURCE
    schemes: ClassVar[frozenset[str]] = frozenset({"mem_opt", "pull_up", "push_down"})
    x: ClassVar[str] = "rho = W_1 / W_2"
    y: ClassVar[str] = "S_sigma"
    saved: ClassVar[str] = "memory saved"
    panels: ClassVar[tuple[str, ...]] = tuple(RIVALS)
    setting: ClassVar[str] = (
        "From Equations 4.1, 4.2 and 5.1, no engine: Q_1 with window W_1, Q_2 with W_2 and a filter of selectivity "
        "S_sigma on A, equal rates. The share of the rival's state memory that state-slice does without. Averages are "
        "over the whole square; the text does not say over which settings its own are."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for case, rival in RIVALS.items():
            for rho in middles(scale):
                for s_sigma in (*middles(scale), 1.0):
                    q = TwoQueries(lambda_=1, w_1=rho, w_2=1, s_sigma=s_sigma, s_join=0.1)
                    saved = 1 - state_slice(q).c_m / rival(q).c_m
                    rows.append({"case": case, self.x: rho, self.y: s_sigma, self.saved: saved})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        savings = {case: self.over_all(data, case) for case in RIVALS}
        means = {case: float(found.mean()) for case, found in savings.items()}
        base = column(data, self.saved, **{"case": "over pull_up", self.y: 1.0})
        return (
            AVERAGE.judged(
                all(0.2 <= mean <= 0.3 for mean in means.values()),
                f"{', '.join(f'{mean:.1%} {case}' for case, mean in means.items())}",
                "over all ratios and selectivities (1 - rho)(1 - S_sigma)/2 averages to an eighth: it takes a narrow "
                "first window and a strict filter to save more over pull_up",
            ),
            EXTREME.judged(
                max(found.max() for found in savings.values()) > 0.45,
                "; ".join(f"at most {found.max():.1%} {case}" for case, found in savings.items()),
                "the grid does not reach into the corner",
            ),
            BASE.judged(bool((abs(base) < 1e-9).all()), f"{percent(abs(base))} saved at S_sigma = 1", "it differs"),
            POSITIVE.judged(
                all((found > 0).all() for found in savings.values()),
                "; ".join(f"{percent(found)} {case}" for case, found in savings.items()) + ", where S_sigma < 1",
                "state-slice takes more somewhere",
            ),
        )
