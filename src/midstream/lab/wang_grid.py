"""Small pictures beside each other, as Wang's measured figures have them: a line per case over the input rate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from midstream.lab.drawing import ink, stroke
from midstream.lab.tidy import cases, column

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PANEL, CASE, RATE = "panel", "case", "input rate (rows/s)"


def draw_panels(canvas: Canvas, data: pa.Table, panels: Iterable[str], drawn: str, **where: Any) -> None:
    """Up to six panels; a title is broken after its first comma."""
    grid = canvas.subplots(2, 3, sharex=True)
    free = list(grid.flat)
    for panel in panels:
        axes = free.pop(0)
        for case in cases(data, CASE):
            xs, ys = (column(data, name, **{PANEL: panel, CASE: case, **where}) for name in (RATE, drawn))
            axes.plot(xs, ys, label=case, color=ink(case), marker="o", markersize=3, **stroke(case))
        axes.set_title(panel.replace(", ", "\n", 1), fontsize="x-small")
        axes.tick_params(labelsize="x-small")
        axes.margins(y=0.1)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in free:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel(RATE, fontsize="x-small")
    handles, labels = grid[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize="x-small")
    canvas.supylabel(drawn, fontsize="x-small")
