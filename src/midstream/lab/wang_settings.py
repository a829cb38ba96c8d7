"""Wang's analytic figures (ch. 5 and 6): what state-slice saves, as maps over the unit square of two ratios."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from midstream.embedded import Engine
from midstream.lab.costs.join_tree import JoinTree, scaled
from midstream.lab.figure import Canvas, Claim, Figure, Scale, Verdict
from midstream.lab.tidy import column, table
from midstream.model.ids import StateKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOWER, UPPER, COUNTED = 20, 10, 10
"""The wider windows in seconds, in Table 6.2's proportion, and the seconds that are counted once both are full."""

ROWS, PARTS = 20, 10
"""Rows a second of each stream; a join is a nested loop, as in §6.4, and one pair in so many joins (Table 6.2)."""

FILTERS = ("{0}.v < 0.25", "{0}.v > 0.05 AND {0}.v < 0.3")
"""Filters of a quarter of the rows, of which four fifths pass the other's as well (Table 6.2)."""


@dataclass(frozen=True)
class TreeTally:
    """Counts of a run: pairs examined, rows and results held against filters and windows, rows purged.

    `tuples` is the mean of the tuples in the states of the joins; a pair is two, as in M_t of §6.3.
    """

    examined: int
    tested: int
    purged: int
    tuples: float

    @property
    def operations(self) -> int:
        """One comparison each, as in §6.4."""
        return self.examined + self.tested + self.purged


@lru_cache(maxsize=64)
def tree_tally(m: float, n: float, sharing: str) -> TreeTally:
    """Run both queries; Q_1's lower windows are `m` times Q_2's, Q_2's upper window is `n` times Q_1's."""
    engine, random = Engine(sharing=sharing), np.random.default_rng(6)
    for name in "ABC":
        engine.create_stream(name, "k BIGINT, v DOUBLE, ts TIMESTAMP", timestamp="ts")
    joins = " AND ".join(f"({one}.k + {other}.k) % {PARTS} < 1" for one, other in ("AB", "BC"))
    for number, (condition, lower, upper) in enumerate(zip(FILTERS, (m, 1.0), (1.0, n), strict=True), 1):
        seconds = {"A": LOWER * lower, "B": LOWER * lower, "C": UPPER * upper}
        sizes = ", ".join(f"{name} [RANGE {round(1_000 * size)} MILLISECONDS]" for name, size in seconds.items())
        where = "".join(f" AND {condition.format(name)}" for name in seconds)
        sql = f"SELECT A.k AS k FROM {sizes} WHERE {joins}{where}"
        engine.add_query(f"q{number}", sql, plan="((A B) C)")
    before, held = (0, 0, 0), list[int]()
    for second in range(LOWER + 1 + COUNTED):
        if second == LOWER + 1:
            before = _counted(engine)
        engine.push({name: _rows(random, second) for name in "ABC"})
        if second > LOWER:
            held.append(_tuples(engine))
    examined, tested, purged = (now - then for now, then in zip(_counted(engine), before, strict=True))
    return TreeTally(examined, tested, purged, sum(held) / len(held))


def _rows(random: np.random.Generator, second: int) -> pa.Table:
    times = np.sort(second * 1_000_000 + random.integers(0, 1_000_000, ROWS))
    keys, values = random.integers(0, PARTS, ROWS), random.random(ROWS)
    return pa.table({"k": keys, "v": values, "ts": pa.array(times, pa.timestamp("us"))})


def _counted(engine: Engine) -> tuple[int, int, int]:
    counted = {key.operator: one for key, one in engine.manifest.operators.items() if key.operator.slice is None}
    return (
        sum(one.comparisons for one in counted.values()),
        sum(one.predicates for one in counted.values()),
        # Base rows are purged from the states of the joins that they are in.
        sum(one.purged for id, one in counted.items() if not id.name.endswith(f".{StateKind.ROWS.value}")),
    )


def _tuples(engine: Engine) -> int:
    # Join states are kept under their index; the base rows below them do not count.
    return sum(
        listing.live * len(id.owner.split("+"))
        for lane in engine.manifest.lane_states.values()
        for id, listing in lane.states.items()
        if id.kind is not StateKind.ROWS
    )


Numbers = npt.NDArray[np.float64]

S_JOIN = (0.025, 0.1, 0.4)
"""The join selectivities low, middle and high of Table 8.1; Figs. 5.9 and 5.10 do not say theirs."""

SLOW, FAST = 20.0, 80.0
"""The lowest and the highest input rate of §8.2, rows a second."""

WIDE = 30.0
"""The widest window of Table 8.1 in seconds: W_2."""


GRID = 16
"""Points across an analytic figure, at any scale: with 50 the verdicts are the same."""

MIDDLES = tuple((at + 0.5) / GRID for at in range(GRID))
"""The middles of equal parts of the unit interval: their mean is that over the interval, without its ends."""


class Map(Figure, ABC):
    """An analytic figure: panels of `saved` over `x` and `y`, one for each of the `panels`, which are cases.

    A saving is a share: 0.2 is 20 % less than the rival takes, below 0 it takes more. There is no engine in it, and
    no migration strategy has its figure here.
    """

    x: ClassVar[str]
    y: ClassVar[str]
    saved: ClassVar[str]
    panels: ClassVar[tuple[str, ...]]

    def over_all(self, data: pa.Table, case: str, saved: str = "") -> Numbers:
        """Select the savings of a case at all inner points: neither ratio is 1."""
        found: Numbers = column(data, saved or self.saved, case=case)
        inner: npt.NDArray[np.bool_] = (column(data, self.x, case=case) < 1) & (column(data, self.y, case=case) < 1)
        return found[inner]

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        reach = max(float(np.abs(column(data, self.saved, case=case)).max()) for case in self.panels)
        every = canvas.subplots(1, len(self.panels), squeeze=False)[0]
        for axes, case in zip(every, self.panels, strict=True):
            self._panel(axes, data, case, reach)

    def _panel(self, axes: Axes, data: pa.Table, case: str, reach: float) -> None:
        xs, ys = (np.unique(column(data, name, case=case)) for name in (self.x, self.y))
        # The rows of a case run through x, and for each x through y.
        grid = column(data, self.saved, case=case).reshape(len(xs), len(ys)).T
        # One scale for all panels, white where nothing is saved, red where it takes more.
        axes.contourf(xs, ys, grid, levels=np.linspace(-reach, reach, 41), cmap="RdBu")
        inked = axes.contour(xs, ys, grid, levels=_levels(grid), colors="black", linewidths=0.6)
        axes.clabel(inked, fmt=lambda level: f"{level:.0%}", fontsize="x-small")
        axes.set_title(case, fontsize="small")
        axes.set_xlabel(self.x)
        axes.set_ylabel(self.y)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)


def percent(shares: Sequence[float] | npt.NDArray[Any]) -> str:
    """Format the span of shares in percent.

    >>> percent([0.123, 0.5]), percent([0.2, 0.2])
    ('12.30% to 50.00%', '20.00%')
    """
    low, high = (f"{found:.2%}" for found in (min(shares), max(shares)))
    return low if low == high else f"{low} to {high}"


def _levels(grid: Numbers) -> Numbers:
    # Some five round levels inside a panel's values.
    low, high = float(grid.min()), float(grid.max())
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if (high - low) / s <= 8)
    inside = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    return inside[(inside > low) & (inside < high)]


TABLE_6_2 = "Table 6.2, in full"
"""The case of one point: the values of the text's worked numbers."""


SIGNIFICANT = 0.1
"""A saving of CPU that may be called significant."""


ENGINE = "measured on the engine"
"""The case of what the engine counted, at each of these ratios m and n."""

MEASURED = (0.1, 0.5, 1.0)


class OfTree(Map):
    """A figure of this family: `printed` and `in_full` over the ratios m and n, and the worked example's saving.

    At a few ratios the engine runs both queries, and `counted` of what it counts is compared with the rival's.
    """

    x: ClassVar[str] = "m = W_AB^1 / W_AB^2"
    y: ClassVar[str] = "n = W_BC^2 / W_BC^1"
    printed: ClassVar[str]
    in_full: ClassVar[str]
    counted: ClassVar[str]
    setting: ClassVar[str] = (
        "From the equations with the values of Table 6.2: two queries over (A join B) join C, the one with "
        "the wider window below, the other above. The text has W_BC^1 = n 30 and W_BC^2 = 60, of which n is not the "
        "ratio; W_BC^1 = 30 and W_BC^2 = n 30 are meant. Left the closed form that the figure was drawn from, right "
        "the chapter's own equations without anything dropped. Averages are over 0 < m, n < 1. "
        f"Numbers in a panel are measured on the engine: windows up to {LOWER} s below and {UPPER} s above, {ROWS} "
        f"rows a second of each stream, nested loops in which one pair of {PARTS} joins, the filters of Table 6.2. "
        "There a pair lives as long as both of its rows do, where the text gives it a window of its own. Pull-up "
        "filters no row before the joins there. CPU is pairs examined, rows and results held against filters and "
        "windows, and rows purged."
    )

    @abstractmethod
    def ratios(self, t: JoinTree, m: float, n: float) -> dict[str, float]:
        """Compute state-slice over its rival at these windows, case by case."""

    @override
    def measure(self, scale: Scale) -> pa.Table:
        places = [*MIDDLES, 1.0]
        points = [(m, n) for m in places for n in places]
        rows = [
            {"case": case, self.x: m, self.y: n, self.saved: 1 - ratio}
            for m, n in points
            for case, ratio in self.ratios(scaled(m, n), m, n).items()
        ]
        rows.sort(key=lambda row: self.panels.index(str(row["case"])))
        m, n = 1 / 60, 1 / 2
        worked = self.ratios(scaled(m, n), m, n)[self.in_full]
        rows.append({"case": TABLE_6_2, self.x: m, self.y: n, self.saved: 1 - worked})
        (rival,) = self.schemes - {"mem_opt"}
        for m, n in product(MEASURED, MEASURED):
            own, other = (float(getattr(tree_tally(m, n, mode), self.counted)) for mode in ("mem_opt", rival))
            rows.append({"case": ENGINE, self.x: m, self.y: n, self.saved: 1 - own / other})
        return table(rows)

    def on_engine(self, data: pa.Table, least: float, reason: str) -> Verdict:
        """Judge by the engine's counts whether more than so much is saved at most of the ratios, or at all for 0."""
        saved = column(data, self.saved, case=ENGINE)
        share = float((saved > least).mean())
        wanted = "anything" if not least else f"more than {least:.0%}"
        where = "at every ratio" if not least else "at most ratios"
        claim = Claim(f"Ours, on the engine: state-slice saves {wanted} {where} of windows.", self.source)
        return claim.judged(
            share == 1 if not least else share > 0.5, f"{percent(saved)}, {wanted} at {share:.0%} of the ratios", reason
        )

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        super().draw(data, canvas)
        axes = canvas.axes[self.panels.index(self.in_full)]
        for x, y, saved in zip(*(column(data, c, case=ENGINE) for c in (self.x, self.y, self.saved)), strict=True):
            axes.text(min(x, 0.93), min(y, 0.96), f"{saved:.0%}", ha="center", va="center", fontweight="bold")

    def worked(self, data: pa.Table) -> float:
        """Compute the saving of state-slice over its rival in the text's example."""
        return 1 - float(column(data, self.saved, case=TABLE_6_2)[0])
