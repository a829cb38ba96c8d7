"""Charts of plans: sel-lambda and lambda-lambda (OM §4.4, Algorithm 1), and the lookup in them.

A course records where a stream has been on a chart, and what that was worth: moves, switches, hits (OM §4.5, Algorithm
2; §5.1). A panel is a chart reduced to two axes, as it is drawn (OM §4.4 draws charts of two dimensions).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Literal

import numpy as np
import numpy.typing as npt

from midstream.optimizer.cost.units import comparable

Dimension = Literal["rate", "selectivity"]
Points = npt.NDArray[np.float64]
"""A row for each point, a column for each axis."""

Numbers = npt.NDArray[np.float64]
Region = tuple[int, ...]
"""Along each axis the number of the partition, from 0 on."""

PARTITIONS = 10  # k of the paper's experiments (§5.1)
MOST_REGIONS = 10_000  # a chart of more is not made: its axes get fewer partitions
MOST_CORNERS = 1 << 21  # nor one whose regions have more corners together


@dataclass(frozen=True)
class Axis:
    """One dimension of a chart: the rate of a source, or the selectivity of its operators, from `low` to `high`.

    >>> Axis("rate", "A", 0.0, 50.0).partition(32.0, k=5)
    3
    """

    dimension: Dimension
    source: str
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"an axis must ascend, but this one goes from {self.low} to {self.high}")

    def partition(self, value: float, k: int) -> int:
        """Find the partition of a value; what lies outside counts to the nearest."""
        place = int((value - self.low) / (self.high - self.low) * k)
        return min(max(place, 0), k - 1)

    def middles(self, k: int) -> Numbers:
        """Compute the centre of every partition."""
        return np.linspace(self.low, self.high, 2 * k + 1)[1::2].astype(np.float64)


@dataclass(frozen=True)
class Chart:
    """The best plan of each region: `k` partitions along every axis.

    `best` has for each region, the last axis the fastest, the number of its plan in `plans`, which are in notation.
    Beyond the paper, `contested` has for each region, by its number as a text, the plans that are best at some corner
    of it, where they are several: there the chart alone cannot tell.
    """

    axes: tuple[Axis, ...]
    k: int
    plans: tuple[str, ...]
    best: tuple[int, ...]
    contested: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def region(self, point: Sequence[float]) -> Region:
        """Find the region that bounds a point (Algorithm 2, step 1)."""
        return tuple(axis.partition(value, self.k) for axis, value in zip(self.axes, point, strict=True))

    def plan(self, region: Region) -> str:
        """Look up the plan that is indexed at a region's centroid (Algorithm 2, steps 2 and 3)."""
        return self.plans[self.best[self.number(region)]]

    def rivals(self, region: Region) -> tuple[str, ...]:
        """List the plans that are best somewhere in a region, including that of its centroid."""
        numbers = self.contested.get(str(self.number(region)), (self.best[self.number(region)],))
        return tuple(self.plans[i] for i in numbers)

    def number(self, region: Region) -> int:
        """Number a region by its place among all."""
        number = 0
        for partition in region:
            number = number * self.k + partition
        return number

    def grid(self) -> npt.NDArray[np.int64]:
        """Return the number of the best plan, with a dimension for each axis."""
        return np.array(self.best, np.int64).reshape((self.k,) * len(self.axes))


def make_chart(axes: Sequence[Axis], plans: Sequence[str], cost: Callable[[Points], Numbers], k: int) -> Chart:
    """Divide the space into k regions a dimension, and find the cheapest plan at each centroid (Algorithm 1).

    `cost` has for many points a row each with the cost of every plan. Of plans that cost the same the first is taken.
    Where k partitions a dimension would be too many regions, k is as great as it can be.

    >>> axes = [Axis("rate", "A", 0.0, 10.0), Axis("rate", "B", 0.0, 10.0)]
    >>> chart = make_chart(axes, ["few A", "few B"], lambda points: points, k=4)
    >>> chart.plan(chart.region([1.0, 9.0])), chart.plan(chart.region([9.0, 1.0]))
    ('few A', 'few B')
    """
    many = max(len(axes), 1)
    k = min(k, int(MOST_REGIONS ** (1 / many)) + 1)
    while k > 1 and (k**many > MOST_REGIONS or (2 * k) ** many > MOST_CORNERS):
        k -= 1
    best = _cheapest([axis.middles(k) for axis in axes], cost)
    around = _at_corners(axes, cost, k) if (2 * k) ** many <= MOST_CORNERS else []
    somewhere = np.stack([best, *around]).reshape(len(around) + 1, -1)
    used = np.unique(somewhere)
    places = np.searchsorted(used, somewhere)
    contested = {
        str(region): tuple(np.unique(places[:, region]).tolist())
        for region in np.flatnonzero(places.min(axis=0) != places.max(axis=0)).tolist()
    }
    return Chart(tuple(axes), k, tuple(plans[i] for i in used), tuple(places[0].tolist()), contested)


def _at_corners(axes: Sequence[Axis], cost: Callable[[Points], Numbers], k: int) -> list[npt.NDArray[np.int64]]:
    # One array for each corner that a region has.
    corners = _cheapest([np.linspace(axis.low, axis.high, k + 1) for axis in axes], cost)
    return [corners[tuple(slice(i, i + k) for i in offset)] for offset in product((0, 1), repeat=len(axes))]


def _cheapest(grid: Sequence[Numbers], cost: Callable[[Points], Numbers]) -> npt.NDArray[np.int64]:
    points = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1)
    costs = cost(points.reshape(-1, len(grid)))
    found: npt.NDArray[np.int64] = np.argmin(comparable(costs), axis=1).reshape(points.shape[:-1])
    return found


@dataclass(frozen=True)
class ChartCourse:
    """The rounds so far.

    A *move* is a round in another region than the round before, a *switch* one with another plan, a *hit* one whose
    plan was the best one there was, as far as that was judged afterwards: `judged` rounds. `visits` has for regions, by
    their number, how many rounds were spent there; `here` is the region of the last round.
    """

    rounds: int = 0
    moves: int = 0
    switches: int = 0
    hits: int = 0
    judged: int = 0
    here: Region = ()
    plan: str = ""
    visits: dict[str, int] = field(default_factory=dict)

    @property
    def fidelity(self) -> float:
        """The share of rounds that ran the best plan; 1 where none was judged yet."""
        return self.hits / self.judged if self.judged else 1.0

    def to(self, chart: Chart, point: Sequence[float], plan: str | None = None) -> ChartCourse:
        """Add a round, scheduled by what the stream is estimated to be like.

        The plan is that of the region's centroid, as in the paper, unless another one is given.

        >>> from midstream.optimizer.charts.chart import Axis
        >>> chart = Chart((Axis("rate", "A", 0, 10),), 2, ("few", "many"), (0, 1))
        >>> course = ChartCourse().to(chart, [1.0]).to(chart, [2.0]).to(chart, [9.0])
        >>> course.plan, course.moves, course.switches, course.visits
        ('many', 1, 1, {'0': 2, '1': 1})
        """
        here = chart.region(point)
        run, number = plan or chart.plan(here), str(chart.number(here))
        return replace(
            self,
            rounds=self.rounds + 1,
            moves=self.moves + (self.rounds > 0 and here != self.here),
            switches=self.switches + (self.rounds > 0 and run != self.plan),
            here=here,
            plan=run,
            visits={**self.visits, number: self.visits.get(number, 0) + 1},
        )

    def against(self, best: str) -> ChartCourse:
        """Judge the last round by the plan that turned out to be the best one.

        >>> ChartCourse(plan="a").against("a").against("b").fidelity
        0.5
        """
        return replace(self, hits=self.hits + (self.plan == best), judged=self.judged + 1)


MOST_PANELS = 6

Drawn = Sequence[tuple[Chart, ChartCourse]]
"""Charts that are drawn together, with where the stream has been on each."""


@dataclass(frozen=True)
class ChartPanel:
    """A chart over two of its axes, by their numbers; a chart of one axis is drawn against itself."""

    chart: Chart
    course: ChartCourse
    across: int
    up: int

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The horizontal and the vertical axis."""
        return self.chart.axes[self.across], self.chart.axes[self.up]

    def plans(self) -> npt.NDArray[np.int64]:
        """Number the plans over both axes, with the others as in the last round; in the middle before it.

        >>> chart = Chart((Axis("rate", "A", 0, 9), Axis("rate", "B", 0, 9)), 2, ("few", "many"), (0, 1, 0, 1))
        >>> ChartPanel(chart, ChartCourse(), 0, 1).plans().tolist()
        [[0, 1], [0, 1]]
        """
        here = self.course.here or (self.chart.k // 2,) * len(self.chart.axes)
        if self.across == self.up:
            return np.repeat(self.chart.grid()[:, None], self.chart.k, axis=1)
        return self.chart.grid()[tuple(slice(None) if i in (self.across, self.up) else at for i, at in enumerate(here))]

    def rounds(self) -> dict[tuple[int, int], int]:
        """Count the rounds that were spent in each region."""
        found: dict[tuple[int, int], int] = {}
        for number, rounds in self.course.visits.items():
            region = np.unravel_index(int(number), (self.chart.k,) * len(self.chart.axes))
            place = int(region[self.across]), int(region[self.up])
            found[place] = found.get(place, 0) + rounds
        return found

    def here(self) -> tuple[int, int] | None:
        """Return the region of the last round; None before the first."""
        here = self.course.here
        return (here[self.across], here[self.up]) if here else None


def panels(charts: Drawn, most: int = MOST_PANELS) -> list[ChartPanel]:
    """Make a panel for each two axes of a chart, at most `most`."""
    return [
        ChartPanel(chart, course, across, up)
        for chart, course in charts
        for across, up in list(combinations(range(len(chart.axes)), 2)) or [(0, 0)]
    ][:most]


def axis_label(axis: Axis) -> str:
    """Format the label of an axis.

    >>> axis_label(Axis("rate", "A", 0.0, 9.0))
    'rate of A (rows/s)'
    """
    return f"{axis.dimension} of {axis.source}" + (" (rows/s)" if axis.dimension == "rate" else "")
