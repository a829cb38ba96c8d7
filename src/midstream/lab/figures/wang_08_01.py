"""Wang Fig. 8.1: state memory of three ways of sharing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL, RATE
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.wang_queries import S_SIGMA, THREE
from midstream.lab.wang_settings import S_JOIN, percent
from midstream.lab.wang_three import MEM_OPT, MIDDLE, PULL_UP, PUSH_DOWN, RIVALS, OfThree, named, shared

SOURCE = "Wang §8.2, Fig. 8.1"
ALWAYS = Claim("State-slice sharing always achieves the minimal memory consumption.", SOURCE)
RANGE = Claim("The memory savings range from 20 % to 30 %, depending on the overlap of the windows.", SOURCE)
WINDOWS = Claim("The memory usage is sensitive to the window distributions.", SOURCE)
JOIN = Claim("S_join does not affect the memory usage.", SOURCE)

ROWS = "state (rows)"
BY_WINDOWS = [(windows, MIDDLE, S_JOIN[1]) for windows in THREE]
BY_FILTER = [("Uniform", s_sigma, S_JOIN[0]) for s_sigma in S_SIGMA]
ONE_JOIN, OTHER_JOIN = named(*BY_WINDOWS[1]), named(*BY_FILTER[1])


class Wang0801(OfThree):
    """Rows in the states of the joins."""

    name: ClassVar[str] = "wang_08_01"
    title: ClassVar[str] = "memory of three ways of sharing"
    source: ClassVar[str] = SOURCE
    schemes: ClassVar[frozenset[str]] = frozenset({"mem_opt", "pull_up", "push_down"})
    drawn: ClassVar[str] = ROWS
    panels: ClassVar[Mapping[str, tuple[str, float, float]]] = {named(*p): p for p in (*BY_WINDOWS, *BY_FILTER)}
    setting: ClassVar[str] = (
        "The engine in each mode of sharing over the same Poisson arrivals for 90 s: Q_1 without a filter, Q_2 and Q_3 "
        "with one filter on A, windows by Table 8.1. Quick: 60 s instead, and a second takes half of one. "
        "Memory is the mean of the rows in the states of the joins once the widest window is full. The engine holds "
        "each row once below them, whatever the mode; push-down's joins list rows of B once for each part of A. The "
        "text does not say what the other settings of a panel are: here the middle ones, and S_join low in the second "
        "row."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        return table(
            {**at, "case": case, ROWS: run.state_rows}
            for at, setting in self.runs(scale)
            for case, (run, _) in shared(setting).items()
        )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        least = column(data, ROWS, case=MEM_OPT)
        saved = {case: 1 - least / column(data, ROWS, case=case) for case in RIVALS}
        panels, rates = len(self.panels), len(np.unique(column(data, RATE)))
        # Runs go through the panels, and in each through the rates: the mean over rates is that of the panel.
        means = {case: found.reshape(panels, rates).mean(axis=1) for case, found in saved.items()}
        greater = np.maximum(means[PULL_UP], means[PUSH_DOWN])
        by_windows = [column(data, ROWS, case=MEM_OPT, **{PANEL: named(*panel)}) for panel in BY_WINDOWS]
        spread = max(float((high / low).max()) for low in by_windows for high in by_windows) - 1
        one, other = (column(data, ROWS, **{PANEL: panel}) for panel in (ONE_JOIN, OTHER_JOIN))
        return (
            ALWAYS.judged(
                all(bool((found > 0).all()) for found in saved.values()),
                "; ".join(f"{percent(found)} less than {case}" for case, found in saved.items()),
                "another way takes less somewhere",
            ),
            RANGE.judged(
                bool((greater >= 0.2).all() and (greater <= 0.3).all()),
                f"by panel {percent(greater)} over the rival that takes more, "
                + ", ".join(f"{percent(means[case])} over {case}" for case in RIVALS),
                "by Equation 5.2 it is (1 - rho)(1 - S_sigma)/2 over pull_up and rho/(1 + 2 rho + (1 - rho) S_sigma) "
                "over push_down, rho the narrowest window's share of the widest: at rho = 1/3 and S_sigma = 0.5 a "
                "sixth over either",
            ),
            WINDOWS.judged(spread > 0.1, f"up to {spread:.0%} apart with equal filters", "it hardly changes"),
            JOIN.judged(
                bool((one == other).all()),
                f"rows at S_join {S_JOIN[1]} and {S_JOIN[0]} differ by at most {abs(one - other).max():g}",
                "they differ",
            ),
        )
