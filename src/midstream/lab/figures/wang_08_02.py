"""Wang Fig. 8.2: service rate of three ways of sharing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import RATE
from midstream.lab.figure import Claim, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.wang_engine import TICK
from midstream.lab.wang_queries import THREE
from midstream.lab.wang_settings import S_JOIN, Numbers, percent
from midstream.lab.wang_three import MEM_OPT, MIDDLE, PULL_UP, PUSH_DOWN, RIVALS, OfThree, named, shared

SOURCE = "Wang §8.2, Fig. 8.2"
ALWAYS = Claim("State-slice sharing always achieves the maximum service rate.", SOURCE)
FASTER = Claim("With increasing input rate more improvement can be expected.", SOURCE)
ROUTING = Claim("The routing cost increases quadratically with the input rate.", SOURCE)
PURGING = Claim("The extra purging cost of state-slice only increases linearly.", SOURCE)
FORTY = Claim("For large join selectivity and fast streams the improvement can reach 40 %.", SOURCE)

SERVICE, PROBED, WORK = "service rate (results/s)", "pairs examined", "operations"
PURGE, ROUTE = "purging", "routing"
SPEED = 1_000_000
"""Operations the processor does in a second."""

BY_WINDOWS = [(windows, MIDDLE, S_JOIN[1]) for windows in THREE]
BY_JOIN = [("Uniform", MIDDLE, s_join) for s_join in S_JOIN]


class Wang0802(OfThree):
    """Results a second of work."""

    name: ClassVar[str] = "wang_08_02"
    title: ClassVar[str] = "service rate of three ways of sharing"
    source: ClassVar[str] = SOURCE
    schemes: ClassVar[frozenset[str]] = frozenset({"mem_opt", "pull_up", "push_down"})
    drawn: ClassVar[str] = SERVICE
    panels: ClassVar[Mapping[str, tuple[str, float, float]]] = {
        f"{letter}: {named(*p)}": p for letter, p in zip("abcdef", (*BY_WINDOWS, *BY_JOIN), strict=True)
    }
    setting: ClassVar[str] = (
        "The runs of Fig. 8.1. The service rate is the results delivered to all queries for a second of work, at a "
        "million operations a second. Operations are those of the dissertation's operators (Equations 4.1, 4.2, 5.1), "
        "one comparison each, from the engine's exact counters: pairs that both rows live to see, filters on rows, a "
        "purge for each row and join it enters, each result against every window of a router but the widest and "
        "against the filter of each query that takes it, push-down's merge by results of Q_1, state-slice's unions by "
        "input rows. Each way's pairs are those that the engine examined in it. By the equations state-slice and "
        f"push-down examine the same; in steps of {TICK:g} s filters spare state-slice whole chunks only. The text "
        "does not say what the other settings of a panel are: here the middle ones."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        rows = []
        for at, setting in self.runs(scale):
            found = shared(setting)
            for case, (run, cost) in found.items():
                measured = {
                    PROBED: float(run.probed),
                    PURGE: float(cost.cpu["purge"]),
                    ROUTE: float(cost.cpu.get("route", 0)),
                    WORK: float(cost.c_p),
                }
                rows.append({**at, "case": case, SERVICE: run.results / cost.c_p * SPEED, **measured})
        return table(rows)

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        panels, rates = len(self.panels), len(np.unique(column(data, RATE)))
        gains = {case: _by_panel(_gain(data, case), panels, rates) for case in RIVALS}
        routing = _order(data, _by_panel(column(data, ROUTE, case=PULL_UP), panels, rates))
        extra = column(data, PURGE, case=MEM_OPT) - column(data, PURGE, case=PULL_UP)
        purging = _order(data, _by_panel(extra, panels, rates))
        fastest = {case: float(found[-1, -1]) for case, found in gains.items()}
        probed = column(data, PROBED, case=MEM_OPT) / column(data, PROBED, case=PUSH_DOWN)
        return (
            ALWAYS.judged(
                all(bool((found >= 0).all()) for found in gains.values()),
                "; ".join(f"{percent(found.ravel())} more than {case}" for case, found in gains.items())
                + f"; it examines {probed.min():.3f} to {probed.max():.3f} times push_down's pairs",
                "what it saves of routing is less than what it pays for purges and unions in more operators, and for "
                "the pairs that filters do not spare within a chunk",
            ),
            FASTER.judged(
                all(bool((found[:, -1] > found[:, 0]).all()) for found in gains.values()),
                "; ".join(
                    f"over {case} by {percent(found[:, -1] - found[:, 0])} from the slowest to the fastest rate"
                    for case, found in gains.items()
                ),
                "what grows with the square of the rate outweighs the rest from the slowest rate on, so the ratio "
                "hardly moves, and random arrivals move it both ways",
            ),
            ROUTING.judged(
                bool((abs(routing - 2) < 0.15).all()),
                f"with the power {routing.min():.2f} to {routing.max():.2f} of the rate",
                "it does not",
            ),
            PURGING.judged(
                bool((abs(purging - 1) < 0.15).all()),
                f"with the power {purging.min():.2f} to {purging.max():.2f} of the rate",
                "it does not",
            ),
            FORTY.judged(
                max(fastest.values()) >= 0.4,
                ", ".join(f"{gain:.0%} over {case}" for case, gain in fastest.items()),
                "the probes, which all pay, outweigh the routing",
            ),
        )


def _gain(data: pa.Table, case: str) -> Numbers:
    gain: Numbers = column(data, SERVICE, case=MEM_OPT) / column(data, SERVICE, case=case) - 1
    return gain


def _by_panel(found: Numbers, panels: int, rates: int) -> Numbers:
    # Runs go by panel, and in each by ascending rate.
    return found.reshape(panels, rates)


def _order(data: pa.Table, costs: Numbers) -> Numbers:
    # The power of the rate that each panel's cost grows with, from the slowest to the fastest.
    slow, *_, fast = np.unique(column(data, RATE))
    order: Numbers = np.log(costs[:, -1] / costs[:, 0]) / np.log(fast / slow)
    return order
