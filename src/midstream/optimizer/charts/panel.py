"""Charts cut down to two of their axes each, as they are drawn (OM §4.4 draws charts of two dimensions)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from midstream.optimizer.charts.chart import Axis, Chart
from midstream.optimizer.charts.course import ChartCourse

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
