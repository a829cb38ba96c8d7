"""A chart of plans as a picture: which plan rules where, and where the stream has been."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from midstream.lab.lab_report import need_matplotlib
from midstream.optimizer.charts.chart import ChartPanel, Drawn, axis_label, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

INCHES, DOTS = 3.4, 110


def chart_picture(charts: Drawn, title: str, path: Path) -> None:
    """Draw charts into a PNG file, whose folder is created if missing; equal charts and courses give equal files."""
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    count = len(panels(charts))
    columns = min(count, 3)
    canvas = Canvas(figsize=(INCHES * columns + 1, INCHES * -(-count // columns) + 0.9), layout="constrained")
    FigureCanvasAgg(canvas)
    canvas.suptitle(title, fontsize="medium")
    draw_charts(charts, canvas)
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, dpi=DOTS, metadata={"Software": None})


def draw_charts(charts: Drawn, canvas: Canvas) -> None:
    """Draw charts onto an empty matplotlib figure: a panel for each two axes of a chart, a few at most.

    A panel is the cut through the region of the last round. Each plan has a colour; a dot for each region that the
    stream has been in, the larger the longer, at any place along the other axes; a cross where it is.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex
    from matplotlib.patches import Patch

    plans = dict.fromkeys(plan for chart, _ in charts for plan in chart.plans)
    colours = {plan: to_hex(colormaps["tab10"](i % 10)) for i, plan in enumerate(plans)}
    drawn = panels(charts)
    columns = min(len(drawn), 3)
    grid = canvas.subplots(-(-len(drawn) // columns), columns, squeeze=False)
    for axes in grid.flat[len(drawn) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, drawn, strict=False):
        _draw_panel(axes, panel, colours)
    handles = [Patch(color=colour, label=plan) for plan, colour in colours.items()]
    canvas.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize="x-small")


def _draw_panel(axes: Axes, panel: ChartPanel, colours: Mapping[str, str]) -> None:
    from matplotlib.colors import ListedColormap

    chart, (one, other) = panel.chart, panel.axes
    axes.imshow(
        panel.plans().T,
        origin="lower",
        extent=(one.low, one.high, other.low, other.high),
        aspect="auto",
        cmap=ListedColormap([colours[plan] for plan in chart.plans]),
        vmin=-0.5,
        vmax=len(chart.plans) - 0.5,
        alpha=0.55,
    )
    been = panel.rounds()
    longest = max(been.values(), default=1)
    for (x, y), rounds in been.items():
        at = one.middles(chart.k)[x], other.middles(chart.k)[y]
        axes.plot(*at, "o", color="#333333", alpha=0.75, markersize=2 + 7 * (rounds / longest) ** 0.5)
    if (here := panel.here()) is not None:
        at = one.middles(chart.k)[here[0]], other.middles(chart.k)[here[1]]
        axes.plot(*at, "x", color="black", markersize=9, markeredgewidth=2)
    axes.set_xlabel(axis_label(one), fontsize="small")
    axes.set_ylabel(axis_label(other), fontsize="small")
    axes.tick_params(labelsize="x-small")
