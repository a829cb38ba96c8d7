"""Wang Figs. 5.9 and 5.10: comparisons saved by state-slice sharing of two queries, over one rival each."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.cost_terms import Cost
from midstream.lab.costs.two_queries import TwoQueries, state_slice
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.tidy import table
from midstream.lab.wang_settings import FAST, S_JOIN, SLOW, WIDE, Map, middles, percent

CASES = {f"S_join = {s_join:g}": s_join for s_join in S_JOIN}
AT_SLOW, AT_FAST = f"at {SLOW:.0f} rows a second", f"at {FAST:.0f} rows a second"


class CpuOfTwo(Map):
    """A figure of this family: CPU saved over the window ratio and the selectivity, a panel per join selectivity."""

    x: ClassVar[str] = "rho = W_1 / W_2"
    y: ClassVar[str] = "S_sigma"
    saved: ClassVar[str] = "CPU saved"
    panels: ClassVar[tuple[str, ...]] = tuple(CASES)
    setting: ClassVar[str] = (
        "From the equations, no engine; two queries as in Fig. 5.8, S_join as in Table 8.1, for the text does not say. "
        "Drawn is Equation 5.2, which leaves out the terms in lambda; the data have the saving with them, too, for "
        f"W_2 = {WIDE:.0f} s at the lowest and the highest rate of §8.2. Averages are over each whole square."
    )

    why_not_average: ClassVar[str]

    @abstractmethod
    def rival(self, q: TwoQueries) -> Cost:
        """Compute the cost of the other way of sharing."""

    @abstractmethod
    def equation(self, rho: float, s_sigma: float, s_join: float) -> float:
        """Compute the saving by Equation 5.2."""

    @override
    def measure(self, scale: Scale) -> pa.Table:
        return table(
            {
                "case": case,
                self.x: rho,
                self.y: s_sigma,
                self.saved: self.equation(rho, s_sigma, s_join),
                AT_SLOW: self._in_full(SLOW, rho, s_sigma, s_join),
                AT_FAST: self._in_full(FAST, rho, s_sigma, s_join),
            }
            for case, s_join in CASES.items()
            for rho in middles(scale)
            for s_sigma in (*middles(scale), 1.0)
        )

    def _in_full(self, rate: float, rho: float, s_sigma: float, s_join: float) -> float:
        q = TwoQueries(lambda_=rate, w_1=rho * WIDE, w_2=WIDE, s_sigma=s_sigma, s_join=s_join)
        return 1 - state_slice(q).c_p / self.rival(q).c_p

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        savings = {case: self.over_all(data, case) for case in CASES}
        slow, fast = ({case: self.over_all(data, case, saved) for case in CASES} for saved in (AT_SLOW, AT_FAST))
        means = {case: float(found.mean()) for case, found in savings.items()}
        less = max(float((savings[case] - slow[case]).max()) for case in CASES)
        below = sum(int((found <= 0).sum()) for found in slow.values())
        overall = float(np.mean(list(means.values())))
        points = sum(len(found) for found in slow.values())
        least = min(float(found.min()) for found in slow.values())
        return (
            Claim("With selections state-slice saves about 10 % to 40 % CPU on average.", self.source).judged(
                all(0.095 <= mean <= 0.405 for mean in means.values()),
                f"{', '.join(f'{mean:.1%} at {case}' for case, mean in means.items())}; {overall:.1%} over all three",
                self.why_not_average,
            ),
            Claim("All the savings are positive.", self.source).judged(
                all((found > 0).all() for found in savings.values()),
                "by Equation 5.2 " + "; ".join(f"{percent(found)} at {case}" for case, found in savings.items()),
                "Equation 5.2 is negative somewhere",
            ),
            Claim("The effect of lambda is small, so Equation 5.2 may omit it, two queries.", self.source).judged(
                below == 0,
                f"at {SLOW:.0f} rows a second the saving is less by up to {100 * less:.1f} points; it is not positive "
                f"at {below} of {points} settings, {least:.2%} at the least",
                "state-slice has 7 lambda of such terms, push-down 4 lambda: it turns a saving "
                "into a loss where lambda W_2 S_sigma S_join is below 3/2",
            ),
            Claim("The CPU savings increase with lambda.", self.source).judged(
                all(bool((np.asarray(fast[case]) > slow[case]).all()) for case in CASES),
                f"from {SLOW:.0f} to {FAST:.0f} rows a second every saving grows, by up to "
                f"{100 * max(float((fast[case] - slow[case]).max()) for case in CASES):.1f} points",
                "it shrinks somewhere",
            ),
        )
