"""Wang Fig. 8.3: service rate of the Mem-Opt and the CPU-Opt chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL, RATE, draw_panels
from midstream.lab.figure import Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.lab.wang_engine import TICK, tally
from midstream.lab.wang_operators import chain, engine_work
from midstream.lab.wang_queries import RATES, RUN, WangSetting, small_large
from midstream.lab.wang_settings import S_JOIN, Numbers, percent
from midstream.sharing.chain_cost import ChainLoad, UnitCosts, edge_lengths
from midstream.sharing.schemes.cpu_opt import cheapest_cuts

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

SOURCE = "Wang §8.3, Fig. 8.3"
SAME = Claim("For uniform windows the CPU-Opt chain is the same as the Mem-Opt chain.", SOURCE)
FEWER = Claim("For skewed windows the CPU-Opt chain has fewer operators than the Mem-Opt chain.", SOURCE)
MERGED = Claim("Mostly-Small: all the small windows are merged together.", SOURCE)
TWO = Claim("Small-Large: the CPU-Opt chain has only 2 slices, all small and all large windows merged.", SOURCE)
GROWS = Claim("The benefit of CPU-Opt over Mem-Opt increases with the number of queries.", SOURCE)
MEMORY = Claim("Without selections CPU-Opt takes the same memory as Mem-Opt.", "Wang §7.2")

SERVICE, ROWS = "service rate (results/s)", "state (rows)"
SLICES, ENDS, MEASURED, C_SYS = "slices", "first slice ends (s)", "slices in the engine", "C_sys"
ENGINE = "service rate in the engine (results/s)"
SPEED = 1_000_000

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
    paper: ClassVar[str] = "Wang"
    source: ClassVar[str] = SOURCE
    schemes: ClassVar[frozenset[str]] = frozenset({"cpu_opt", "mem_opt"})
    strategies: ClassVar[frozenset[str]] = frozenset()
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
        reckoned, gains = ({panel: _gain(data, panel, of) for panel in MORE} for of in (SERVICE, ENGINE))
        few, more, most = (float(found.mean()) for found in gains.values())
        rows = [column(data, ROWS, case=case) for case in ("mem_opt", "cpu_opt")]
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
        draw_panels(canvas, data, PANELS, SERVICE, **{C_SYS: IN_AND_OUT})


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
                ROWS: run.state_rows,
                SERVICE: run.results / work * SPEED,
                ENGINE: run.results / engine_work(run),
            }


def _by_queries(gains: Mapping[str, Numbers]) -> str:
    return ", ".join(f"{percent(found)} with {name.split()[1]}" for name, found in gains.items()) + " queries"


def _gain(data: pa.Table, panel: str, of: str) -> Numbers:
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
