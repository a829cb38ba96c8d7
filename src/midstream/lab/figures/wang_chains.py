"""Wang Figs. 8.1 to 8.3: state memory and service rate of three ways of sharing, and of two chains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL, RATE, draw_panels
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.wang_engine import (
    FINE,
    MEM_OPT,
    MIDDLE,
    PULL_UP,
    PUSH_DOWN,
    RATES,
    RIVALS,
    RUN,
    S_SIGMA,
    THREE,
    TICK,
    OfThree,
    WangSetting,
    chain,
    engine_work,
    named,
    shared,
    small_large,
    tally,
)
from midstream.lab.wang_settings import S_JOIN, Numbers, percent
from midstream.sharing.chain_cost import ChainLoad, UnitCosts, edge_lengths
from midstream.sharing.schemes.cpu_opt import cheapest_cuts

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


SOURCE_08_02 = "Wang §8.2, Fig. 8.2"
ALWAYS_08_02 = Claim("State-slice sharing always achieves the maximum service rate.", SOURCE_08_02)
FASTER = Claim("With increasing input rate more improvement can be expected.", SOURCE_08_02)
ROUTING = Claim("The routing cost increases quadratically with the input rate.", SOURCE_08_02)
PURGING = Claim("The extra purging cost of state-slice only increases linearly.", SOURCE_08_02)
FORTY = Claim("For large join selectivity and fast streams the improvement can reach 40 %.", SOURCE_08_02)

SERVICE, PROBED, WORK = "service rate (results/s)", "pairs examined", "operations"
PURGE, ROUTE = "purging", "routing"
SPEED = 1_000_000
"""Operations the processor does in a second."""

BY_JOIN = [("Uniform", MIDDLE, s_join) for s_join in S_JOIN]


class Wang0802(OfThree):
    """Results a second of work."""

    name: ClassVar[str] = "wang_08_02"
    title: ClassVar[str] = "service rate of three ways of sharing"
    source: ClassVar[str] = SOURCE_08_02
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
        f"push-down examine the same; in steps of {FINE:g} s filters spare state-slice whole chunks only. The text "
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
            ALWAYS_08_02.judged(
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


SOURCE_08_03 = "Wang §8.3, Fig. 8.3"
SAME = Claim("For uniform windows the CPU-Opt chain is the same as the Mem-Opt chain.", SOURCE_08_03)
FEWER = Claim("For skewed windows the CPU-Opt chain has fewer operators than the Mem-Opt chain.", SOURCE_08_03)
MERGED = Claim("Mostly-Small: all the small windows are merged together.", SOURCE_08_03)
TWO = Claim("Small-Large: the CPU-Opt chain has only 2 slices, all small and all large windows merged.", SOURCE_08_03)
GROWS = Claim("The benefit of CPU-Opt over Mem-Opt increases with the number of queries.", SOURCE_08_03)
MEMORY = Claim("Without selections CPU-Opt takes the same memory as Mem-Opt.", "Wang §7.2")

SERVICE_08_03, ROWS_08_03 = "service rate (results/s)", "state (rows)"
SLICES, ENDS, MEASURED, C_SYS = "slices", "first slice ends (s)", "slices in the engine", "C_sys"
ENGINE = "service rate in the engine (results/s)"

UNIFORM, SMALL, LARGE = "Uniform, 12 queries", "Mostly-Small, 12 queries", "Small-Large, 12 queries"
MORE = (LARGE, "Small-Large, 24 queries", "Small-Large, 36 queries")
PANELS: Mapping[str, tuple[float, ...]] = {
    UNIFORM: tuple(2.5 * at for at in range(1, 13)),
    SMALL: (*map(float, range(1, 11)), 20.0, 30.0),
    **{name: small_large(queries) for name, queries in zip(MORE, (12, 24, 36), strict=True)},
}
"""The windows of Table 8.2, in seconds, and those of more queries."""

OVERHEADS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
IN_AND_OUT = 2.0
"""The C_sys that is drawn: a row is taken out of one queue and put into another."""


class Wang0803(Figure):
    """Results a second of work."""

    name: ClassVar[str] = "wang_08_03"
    title: ClassVar[str] = "service rate of Mem-Opt and CPU-Opt"
    source: ClassVar[str] = SOURCE_08_03
    schemes: ClassVar[frozenset[str]] = frozenset({"cpu_opt", "mem_opt"})
    setting: ClassVar[str] = (
        "Queries without filters, windows by Table 8.2, S_join 0.025; 24 and 36 queries have the Small-Large windows "
        "at proportional distances, for the text does not say whose they are. The engine's exact counters are read as "
        "the operators of either chain would have counted, as in Fig. 8.2, and C_sys for each row and slice (§7.2). "
        "CPU-Opt is the shortest path with one comparison an operation, as in ch. 4 to 7. The text does not give its "
        f"C_sys: the data have {', '.join(f'{c:g}' for c in OVERHEADS)}, drawn is {IN_AND_OUT:g} (a row leaves one "
        "queue and enters another). The data also have the slices that the engine makes in mode cpu_opt by costs "
        f"measured in it, for steps of {TICK:g} s, and its own service rate: results for a second of what it counted, "
        "at those costs. Quick: 45 s instead of 90 s."
    )

    @override
    def measure(self, scale: Scale) -> pa.Table:
        return table(
            {PANEL: panel, RATE: rate, **row}
            for panel, windows in PANELS.items()
            for rate in scale.pick(quick=(RATES[0], RATES[1], RATES[-1]), full=RATES)
            for row in _chains(WangSetting(windows, rate, 1.0, S_JOIN[0], run=scale.pick(quick=45.0, full=RUN)))
        )

    @override
    def judge(self, data: pa.Table) -> tuple[Verdict, ...]:
        reckoned, gains = ({panel: _gain_08_03(data, panel, of) for panel in MORE} for of in (SERVICE_08_03, ENGINE))
        few, more, most = (float(found.mean()) for found in gains.values())
        rows = [column(data, ROWS_08_03, case=case) for case in ("mem_opt", "cpu_opt")]
        return (
            _shape(SAME, data, (UNIFORM,), lambda slices, ends: slices == 12),
            _shape(FEWER, data, (SMALL, LARGE), lambda slices, ends: slices < 12),
            _shape(MERGED, data, (SMALL,), lambda slices, ends: ends == 10),
            _shape(TWO, data, (LARGE,), lambda slices, ends: (slices == 2) & (ends == 6)),
            GROWS.judged(
                few < more < most,
                f"in the engine {_by_queries(gains)}; by the costs of §7.2 {_by_queries(reckoned)}",
                "the engine merges more where there are more queries, and still gains no more",
            ),
            MEMORY.judged(
                bool((rows[0] == rows[1]).all()),
                f"the engine's states differ by {abs(rows[0] - rows[1]).max():g} rows",
                "a merged slice keeps rows too long",
            ),
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        draw_panels(canvas, data, PANELS, SERVICE_08_03, **{C_SYS: IN_AND_OUT})


def _chains(setting: WangSetting) -> Iterator[dict[str, Any]]:
    windows = setting.windows
    load = ChainLoad(windows, setting.rate, setting.rate, setting.s_join)
    runs = {case: tally(setting, case) for case in ("mem_opt", "cpu_opt")}
    for c_sys in OVERHEADS:
        best = cheapest_cuts(windows, partial(edge_lengths, load, UnitCosts(operator=c_sys)))
        for case, ends in (("mem_opt", windows), ("cpu_opt", best)):
            run = runs[case]
            work = chain(run, [windows.index(end) + 1 for end in ends], c_sys).c_p
            yield {
                "case": case,
                C_SYS: c_sys,
                SLICES: len(ends),
                ENDS: float(ends[0]),
                MEASURED: run.slices,
                ROWS_08_03: run.state_rows,
                SERVICE_08_03: run.results / work * SPEED,
                ENGINE: run.results / engine_work(run),
            }


def _by_queries(gains: Mapping[str, Numbers]) -> str:
    return ", ".join(f"{percent(found)} with {name.split()[1]}" for name, found in gains.items()) + " queries"


def _gain_08_03(data: pa.Table, panel: str, of: str) -> Numbers:
    mem_opt, cpu_opt = (
        column(data, of, **{PANEL: panel, "case": case, C_SYS: IN_AND_OUT}) for case in ("mem_opt", "cpu_opt")
    )
    gain: Numbers = cpu_opt / mem_opt - 1
    return gain


def _shape(claim: Claim, data: pa.Table, panels: tuple[str, ...], as_recorded: Callable[..., Any]) -> Verdict:
    # The claim is checked at every rate, with the C_sys drawn.

    def recorded(c_sys: float, name: str, panel: str) -> Numbers:
        found: Numbers = column(data, name, **{PANEL: panel, "case": "cpu_opt", C_SYS: c_sys})
        return found

    def so(c_sys: float) -> npt.NDArray[np.bool_]:
        every = [as_recorded(recorded(c_sys, SLICES, panel), recorded(c_sys, ENDS, panel)) for panel in panels]
        found: npt.NDArray[np.bool_] = np.all(np.array(every), axis=0)
        return found

    chains = "; ".join(
        f"{panel}: {', '.join(f'{n:g}' for n in recorded(IN_AND_OUT, SLICES, panel))} slices, the first up to "
        f"{', '.join(f'{end:g}' for end in recorded(IN_AND_OUT, ENDS, panel))} s (the engine by its own costs makes "
        f"{', '.join(f'{n:g}' for n in recorded(IN_AND_OUT, MEASURED, panel))})"
        for panel in panels
    )
    rates = np.unique(column(data, RATE))
    return claim.judged(
        bool(so(IN_AND_OUT).all()),
        f"{chains}, at {', '.join(f'{rate:g}' for rate in rates)} rows/s. It is so at every rate with C_sys "
        f"{_listed(c for c in OVERHEADS if so(c).all())}, at the slowest with C_sys "
        f"{_listed(c for c in OVERHEADS if so(c)[0])}",
        "what a merge saves grows with the rate, what its router costs with the square of the rate and the width of "
        "the slice: no one C_sys leaves windows of 2.5 s apart and merges all the small ones, at any rate",
    )


def _listed(found: Iterable[float]) -> str:
    return ", ".join(f"{c:g}" for c in found) or "none of those tried"
