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
    "moving_state": "#cc3311",
    "parallel_track": "#0077bb",
    "hybmig": "#009e73",
    "hybmig+bsc": "#00553d",
    "jisc": "#6f4ba8",
    "m_join": "#8c564b",
    "cacq": "#ee7733",
    "stairs": "#ee3377",
    "jisc_stairs": "#a69500",
    "gms": "#7a1027",
    "gpt": "#33bbee",
    "ghm": "#7cae00",
    "mem_opt": "#0072b2",
    "cpu_opt": "#56b4e9",
    "pull_up": "#d55e00",
    "push_down": "#009e73",
    "one_lane": "#7f7f7f",
    "lanes": "#b8860b",
    "hash_hops": "#009e73",
    "psp": "#0072b2",
    "psp_i": "#56b4e9",
    "psp_d": "#e07b39",
    "atr": "#8b3a62",
    "ctr": "#cc79a7",
    "OM chart": "#0072b2",
    "adaptive": "#009e73",
    "RATE": "#8c564b",
    "EDDY": "#ee7733",
    "RAND": "#cc79a7",
}
"""A colour per strategy, way of sharing, spread and policy, the same in every figure; within each of these kinds no two
are alike. Other cases take matplotlib's.
"""

MARKS: Mapping[str, str] = {
    "moving_state": "s",
    "parallel_track": "^",
    "hybmig": "D",
    "hybmig+bsc": "d",
    "jisc": "o",
    "m_join": "P",
    "cacq": "v",
    "stairs": "X",
    "jisc_stairs": "*",
    "gms": "<",
    "gpt": ">",
    "ghm": "h",
}
"""And a mark, so that who cannot tell the colours can tell the lines."""


def lines(axes: Axes, data: pa.Table, x: str, y: str, case: str = "case", *, marks: bool = False) -> None:
    """Draw a line per case: `y` over `x`; with `marks` a point at each observation."""
    for name in cases(data, case):
        axes.plot(
            column(data, x, **{case: name}),
            column(data, y, **{case: name}),
            label=str(name),
            color=ink(str(name)),
            marker=mark_of(str(name)) if marks else None,
            markersize=6,
            **stroke(str(name)),
        )
    named(axes, x, y)


def ink(case: str) -> str | None:
    """Return the colour of a case, which depends on the part before a comma, a colon or a stroke.

    >>> ink("parallel_track, purge by watermark") == ink("parallel_track / jisc") == ink("parallel_track")
    True
    """
    return INK.get(_strategy(case))


def mark_of(case: str) -> str:
    """Return the mark of a case's observations.

    >>> mark_of("jisc_stairs"), mark_of("what else")
    ('*', 'o')
    """
    return MARKS.get(_strategy(case), "o")


def _strategy(case: str) -> str:
    return re.split("[,:/]", case)[0].strip()


def stroke(case: str) -> dict[str, Any]:
    """Choose the style of a case's line: variants dotted, models dashed, runs without a migration broad and beneath."""
    if case in ("old", "new"):
        return {"linewidth": 3.5, "alpha": 0.5, "zorder": 1}
    if case.startswith("model"):
        return {"linewidth": 1.2, "linestyle": ":" if "," in case else "--", "alpha": 0.6, "zorder": 3}
    return {"linewidth": 1.4, "linestyle": ":" if "," in case else "-", "zorder": 2}


def bars(axes: Axes, data: pa.Table, x: str, y: str, case: str = "case") -> None:
    """Draw a group of bars per `x`, one bar per case."""
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


FEW_DECADES = 40
"""A logarithmic axis from one number to less than so many times it has ticks at 2 and 5 too."""


def plain(canvas: Canvas) -> None:
    """Format the numbers of all axes as people write them: 1,000 and 0.01, never 10 to a power.

    Ticks between are removed; panels whose legends are equal get one below them.
    """
    from matplotlib.ticker import FuncFormatter, LogFormatter, LogLocator, NullFormatter, NullLocator, ScalarFormatter

    _one_legend(canvas)
    written = FuncFormatter(lambda value, _: number_text(value))
    for axes in canvas.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() in ("log", "symlog"):
                axis.set_minor_locator(NullLocator())
                axis.set_minor_formatter(NullFormatter())
                low, high = axis.get_view_interval()
                if axis.get_scale() == "log" and high < FEW_DECADES * low:
                    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            if isinstance(axis.get_major_formatter(), ScalarFormatter | LogFormatter):
                axis.set_major_formatter(written)


def _one_legend(canvas: Canvas) -> None:
    legends = [(axes, legend) for axes in canvas.axes if (legend := axes.get_legend()) is not None]
    texts = [[text.get_text() for text in legend.get_texts()] for _, legend in legends]
    # On bars it would stand in their way.
    if legends and all(one == texts[0] for one in texts) and (len(legends) > 1 or legends[0][0].containers):
        for _, legend in legends:
            legend.remove()
        legend_below(canvas, legends[0][0])


def number_text(value: float) -> str:
    """Format a tick's number.

    >>> number_text(1_000_000.0), number_text(0.05), number_text(2.5), number_text(0.0)
    ('1,000,000', '0.05', '2.5', '0')
    """
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.6f}".rstrip("0").rstrip(".") or "0"


def mark(axes: Axes, second: float, text: str = "migration") -> None:
    """Draw a vertical line at a moment."""
    axes.axvline(second, color="#bbbbbb", linewidth=0.8, linestyle=":")
    axes.annotate(text, (second, 0.98), xycoords=("data", "axes fraction"), fontsize="small", color="#888888",
                  rotation=90, va="top", ha="right")  # fmt: skip


if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def draw_panels(canvas: Canvas, data: pa.Table, panels: Iterable[str], drawn: str, **where: Any) -> None:
    """Draw up to six panels; a title is broken after its first comma."""
    grid = canvas.subplots(2, 3, sharex=True)
    free = list(grid.flat)
    for panel in panels:
        axes = free.pop(0)
        for case in cases(data, CASE):
            xs, ys = (column(data, name, **{PANEL: panel, CASE: case, **where}) for name in (RATE, drawn))
            axes.plot(xs, ys, label=case, color=ink(case), marker=mark_of(case), markersize=5, **stroke(case))
        axes.set_title(panel.replace(", ", "\n", 1), fontsize="small")
        axes.tick_params(labelsize="small")
        axes.margins(y=0.1)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in free:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel(RATE, fontsize="small")
    legend_below(canvas, grid[0][0])
    canvas.supylabel(drawn, fontsize="small")


def draw_rows(canvas: Canvas, data: pa.Table, x: str, drawn: Iterable[str]) -> Iterator[tuple[str, str, Axes]]:
    """Draw a row of panels for each of `drawn`, over `x`; yields name, panel and axes of each, to add to it."""
    names, panels = list(drawn), cases(data, PANEL)
    grid = canvas.subplots(len(names), len(panels), sharex=True, squeeze=False)
    for axes, (y, panel) in zip(grid.flat, product(names, panels), strict=True):
        lines(axes, data.filter(pa.array([found == panel for found in data[PANEL].to_pylist()])), x, y)
        axes.get_legend().remove()
        axes.tick_params(labelsize="small")
        axes.set_xlabel(x if y == names[-1] else "", fontsize="small")
        axes.set_ylabel(y if panel == panels[0] else "", fontsize="small")
        axes.set_title(panel if y == names[0] else "", fontsize="small")
        yield y, panel, axes
    legend_below(canvas, grid[0][0])


def draw_bars(canvas: Canvas, data: pa.Table, drawn: Iterable[str], columns: int = 4) -> list[Axes]:
    """Draw bars for each of `drawn` side by side, a group for each panel; returns the axes."""
    names = list(drawn)
    grid = list(canvas.subplots(1, len(names)))
    for axes, name in zip(grid, names, strict=True):
        bars(axes, data, PANEL, name, CASE)
        axes.tick_params(labelsize="small")
        axes.set_xlabel("")
        axes.get_legend().remove()
    legend_below(canvas, grid[0], columns)
    return grid


def legend_below(canvas: Canvas, axes: Axes, columns: int = 4) -> None:
    """Draw one legend for all panels, that of these axes, below them."""
    handles, labels = axes.get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
