"""The hand of the lab: how every figure draws its lines and bars, so that a strategy looks the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from midstream.lab.tidy import cases, column

PANEL, CASE, RATE = "panel", "case", "input rate (rows/s)"


if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK: Mapping[str, str] = {
    "old": "#9a9a9a",
    "new": "#4d4d4d",
    "model": "#000000",
    "moving_state": "#c44e52",
    "parallel_track": "#4c72b0",
    "hybmig": "#55a868",
    "hybmig+bsc": "#1f6f3f",
    "jisc": "#8172b3",
    "m_join": "#937860",
    "cacq": "#dd8452",
    "stairs": "#da8bc3",
    "jisc_stairs": "#ccb974",
    "gms": "#c44e52",
    "gpt": "#4c72b0",
    "ghm": "#55a868",
}
"""A colour per case, the same in every figure; others take matplotlib's."""


def lines(axes: Axes, data: pa.Table, x: str, y: str, case: str = "case", *, marks: bool = False) -> None:
    """A line per case: `y` over `x`; with `marks` a point at each observation."""
    for name in cases(data, case):
        axes.plot(
            column(data, x, **{case: name}),
            column(data, y, **{case: name}),
            label=str(name),
            color=ink(str(name)),
            marker="o" if marks else None,
            markersize=4,
            **stroke(str(name)),
        )
    named(axes, x, y)


def ink(case: str) -> str | None:
    """The colour of a case: what stands before a comma or colon counts.

    >>> ink("parallel_track, purge by watermark") == ink("parallel_track")
    True
    """
    return INK.get(re.split("[,:]", case)[0])


def stroke(case: str) -> dict[str, Any]:
    """How a case's line is drawn: variants dotted, models dashed, runs without a migration broad and beneath."""
    if case in ("old", "new"):
        return {"linewidth": 3.5, "alpha": 0.5, "zorder": 1}
    if case.startswith("model"):
        return {"linewidth": 1.2, "linestyle": ":" if "," in case else "--", "alpha": 0.6, "zorder": 3}
    return {"linewidth": 1.4, "linestyle": ":" if "," in case else "-", "zorder": 2}


def bars(axes: Axes, data: pa.Table, x: str, y: str, case: str = "case") -> None:
    """A group of bars per `x`, one bar per case."""
    groups, names = cases(data, x), cases(data, case)
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        heights = {g: column(data, y, **{case: name, x: g}) for g in groups}
        axes.bar(
            [at + (number - (len(names) - 1) / 2) * width for at in range(len(groups))],
            [float(h[0]) if len(h) else 0.0 for h in heights.values()],
            width,
            label=str(name),
            color=ink(str(name)),
        )
    axes.set_xticks(range(len(groups)), [f"{group:g}" if isinstance(group, float) else str(group) for group in groups])
    named(axes, x, y)


def named(axes: Axes, x: str, y: str) -> None:
    """Label the axes, show the legend, keep the frame light."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize="small")


def mark(axes: Axes, second: float, text: str = "migration") -> None:
    """A vertical line at a moment."""
    axes.axvline(second, color="#bbbbbb", linewidth=0.8, linestyle=":")
    axes.annotate(text, (second, 0.98), xycoords=("data", "axes fraction"), fontsize="x-small", color="#888888",
                  rotation=90, va="top", ha="right")  # fmt: skip


if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


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
    legend_below(canvas, grid[0][0])
    canvas.supylabel(drawn, fontsize="x-small")


def draw_rows(canvas: Canvas, data: pa.Table, x: str, drawn: Iterable[str]) -> Iterator[tuple[str, str, Axes]]:
    """A row of panels for each of `drawn`, over `x`; each with its name and its panel's, for what is to be added."""
    names, panels = list(drawn), cases(data, PANEL)
    grid = canvas.subplots(len(names), len(panels), sharex=True, squeeze=False)
    for axes, (y, panel) in zip(grid.flat, product(names, panels), strict=True):
        lines(axes, data.filter(pa.array([found == panel for found in data[PANEL].to_pylist()])), x, y)
        axes.get_legend().remove()
        axes.tick_params(labelsize="x-small")
        axes.set_xlabel(x if y == names[-1] else "", fontsize="x-small")
        axes.set_ylabel(y if panel == panels[0] else "", fontsize="x-small")
        axes.set_title(panel if y == names[0] else "", fontsize="small")
        yield y, panel, axes
    legend_below(canvas, grid[0][0])


def draw_bars(canvas: Canvas, data: pa.Table, drawn: Iterable[str], columns: int = 4) -> list[Axes]:
    """Bars for each of `drawn` beside one another, a group for each panel; the axes, for what is to be added."""
    names = list(drawn)
    grid = list(canvas.subplots(1, len(names)))
    for axes, name in zip(grid, names, strict=True):
        bars(axes, data, PANEL, name, CASE)
        axes.tick_params(labelsize="x-small")
        axes.set_xlabel("")
        axes.get_legend().remove()
    legend_below(canvas, grid[0], columns)
    return grid


def legend_below(canvas: Canvas, axes: Axes, columns: int = 4) -> None:
    """One legend for all panels, that of these axes, below them."""
    handles, labels = axes.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize="x-small")
