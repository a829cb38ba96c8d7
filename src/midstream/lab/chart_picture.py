"""A chart of plans as a picture: which plan rules where, and where the stream has been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from midstream.lab.run import need_matplotlib
from midstream.optimizer.charts.chart import Axis, Chart
from midstream.optimizer.charts.course import ChartCourse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

MOST_PANELS = 6
INCHES, DOTS = 3.4, 110

Drawn = Sequence[tuple[Chart, ChartCourse]]
"""Charts that are drawn together, with where the stream has been on each."""


def chart_picture(charts: Drawn, title: str, path: Path) -> None:
    """Draw charts into a PNG file, whose folder is made if need be; equal charts and courses give equal files."""
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    count = len(_panels(charts))
    columns = min(count, 3)
    canvas = Canvas(figsize=(INCHES * columns + 1, INCHES * -(-count // columns) + 0.9), layout="constrained")
    FigureCanvasAgg(canvas)
    canvas.suptitle(title, fontsize="medium")
    draw_charts(charts, canvas)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=DOTS, metadata={"Software": None})


def draw_charts(charts: Drawn, canvas: Canvas) -> None:
    """Draw charts onto an empty matplotlib figure: a panel for each two axes of a chart, `MOST_PANELS` at most.

    A panel is the cut through the region of the last round. Each plan has a colour; a dot for each region that the
    stream has been in, the larger the longer, whatever its place along the other axes; a cross where it is.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex
    from matplotlib.patches import Patch

    plans = dict.fromkeys(plan for chart, _ in charts for plan in chart.plans)
    colours = {plan: to_hex(colormaps["tab10"](i % 10)) for i, plan in enumerate(plans)}
    panels = _panels(charts)
    columns = min(len(panels), 3)
    grid = canvas.subplots(-(-len(panels) // columns), columns, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw_panel(axes, *panel, colours)
    handles = [Patch(color=colour, label=plan) for plan, colour in colours.items()]
    canvas.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize="x-small")


def _panels(charts: Drawn) -> list[tuple[Chart, ChartCourse, int, int]]:
    """The pairs of axes that are drawn; a chart of one axis is drawn against itself."""
    return [
        (chart, course, across, up)
        for chart, course in charts
        for across, up in list(combinations(range(len(chart.axes)), 2)) or [(0, 0)]
    ][:MOST_PANELS]


def _draw_panel(
    axes: Axes, chart: Chart, course: ChartCourse, across: int, up: int, colours: Mapping[str, str]
) -> None:
    from matplotlib.colors import ListedColormap

    one, other = chart.axes[across], chart.axes[up]
    axes.imshow(
        _cut(chart, course, across, up).T,
        origin="lower",
        extent=(one.low, one.high, other.low, other.high),
        aspect="auto",
        cmap=ListedColormap([colours[plan] for plan in chart.plans]),
        vmin=-0.5,
        vmax=len(chart.plans) - 0.5,
        alpha=0.55,
    )
    been = _been(chart, course, across, up)
    longest = max(been.values(), default=1)
    for (x, y), rounds in been.items():
        at = one.middles(chart.k)[x], other.middles(chart.k)[y]
        axes.plot(*at, "o", color="#333333", alpha=0.75, markersize=2 + 7 * (rounds / longest) ** 0.5)
    if course.here:
        here = one.middles(chart.k)[course.here[across]], other.middles(chart.k)[course.here[up]]
        axes.plot(*here, "x", color="black", markersize=9, markeredgewidth=2)
    axes.set_xlabel(axis_label(one), fontsize="small")
    axes.set_ylabel(axis_label(other), fontsize="small")
    axes.tick_params(labelsize="x-small")


def axis_label(axis: Axis) -> str:
    """What stands along an axis.

    >>> axis_label(Axis("rate", "A", 0.0, 9.0))
    'rate of A (rows/s)'
    """
    return f"{axis.dimension} of {axis.source}" + (" (rows/s)" if axis.dimension == "rate" else "")


def _cut(chart: Chart, course: ChartCourse, across: int, up: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The plans over two axes, where the others are as in the last round; in the middle before the first."""
    here = course.here or (chart.k // 2,) * len(chart.axes)
    if across == up:
        return np.repeat(chart.grid()[:, None], chart.k, axis=1)
    return chart.grid()[tuple(slice(None) if i in (across, up) else at for i, at in enumerate(here))]


def _been(chart: Chart, course: ChartCourse, across: int, up: int) -> dict[tuple[int, int], int]:
    """How many rounds were spent where, over two axes."""
    found: dict[tuple[int, int], int] = {}
    for number, rounds in course.visits.items():
        region = np.unravel_index(int(number), (chart.k,) * len(chart.axes))
        place = int(region[across]), int(region[up])
        found[place] = found.get(place, 0) + rounds
    return found
