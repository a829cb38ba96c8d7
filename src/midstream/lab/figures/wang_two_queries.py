"""Wang Figs. 5.8 to 5.10: memory and comparisons saved by state-slice sharing of two queries."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.costs.cost_terms import Cost
from midstream.lab.costs.two_queries import (
    TwoQueries,
    cpu_saved_over_pull_up,
    cpu_saved_over_push_down,
    pull_up,
    push_down,
    state_slice,
)
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.wang_settings import FAST, MIDDLES, S_JOIN, SLOW, WIDE, Map, percent

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
            for rho in MIDDLES
            for s_sigma in (*MIDDLES, 1.0)
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
            for rho in MIDDLES:
                for s_sigma in (*MIDDLES, 1.0):
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


SOURCE_05_09 = "Wang §5.3, Fig. 5.9"
EXTREME_05_09 = Claim("For extreme settings the CPU savings can reach about 100 %.", SOURCE_05_09)
PROPORTIONAL = Claim("Without selections the CPU saving is proportional to the join selectivity.", SOURCE_05_09)


class Wang0509(CpuOfTwo):
    """CPU saved over pull-up."""

    name: ClassVar[str] = "wang_05_09"
    title: ClassVar[str] = "CPU saved by state-slice over pull-up"
    source: ClassVar[str] = SOURCE_05_09
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
            EXTREME_05_09.judged(most > 0.9, f"at most {most:.1%}", "the grid does not reach into the corner"),
            PROPORTIONAL.judged(
                abs(grows / expected - 1) < 0.1,
                f"at S_sigma = 1 it is {', '.join(f'{b:.1%} at {case}' for case, b in zip(CASES, base, strict=True))} "
                f"on average: {grows:.1f} times for {expected:.0f} times the selectivity",
                "it is (2 - rho) S_join / (1 + 2 S_join): the comparisons saved are proportional, their share is not",
            ),
        )


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
