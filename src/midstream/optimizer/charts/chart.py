"""Charts of plans: sel-lambda and lambda-lambda (OM §4.4, Algorithm 1), and the lookup in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
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

PARTITIONS = 10
"""k of the paper's experiments (§5.1)."""

MOST_REGIONS = 10_000
"""A chart of more is not made: its axes get fewer partitions."""

MOST_CORNERS = 1 << 21
"""Nor one whose regions have more corners together."""


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
            raise ValueError(f"an axis goes upwards, not from {self.low} to {self.high}")

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
