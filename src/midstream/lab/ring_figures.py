"""What the figures of Wang's ring (ch. 15 and 16) share: the frame, and response time and state over the nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from typing_extensions import override

from midstream.lab.drawing import PANEL, draw_rows
from midstream.lab.figure import Canvas, Figure, Scale
from midstream.lab.ring_cluster import RingCounts
from midstream.lab.tidy import cases, column, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CASE, NODES, RESPONSE, ROWS = "case", "nodes", "response time (ms)", "state (rows)"
PAIRS, SENT, RESULTS = "pairs compared", "sent", "results"

Curves = Mapping[tuple[str, str], npt.NDArray[Any]]
"""A column of each panel and case."""


class OfRing(Figure, ABC):
    """A figure of a join spread over nodes; no strategy's."""

    @abstractmethod
    def runs(self, scale: Scale) -> Iterator[Mapping[str, Any]]:
        """Yield the observations, one after another."""

    @override
    def measure(self, scale: Scale) -> pa.Table:
        return table(self.runs(scale))


class OverNodes(OfRing):
    """Response time above and state below, over the number of nodes, in panels."""

    @override
    def draw(self, data: pa.Table, canvas: Canvas) -> None:
        for y, panel, axes in draw_rows(canvas, data, NODES, (RESPONSE, ROWS)):
            if y == ROWS:
                axes.set_ylim(bottom=0)
            else:
                self.mark(axes, data, panel)

    def mark(self, axes: Axes, data: pa.Table, panel: str) -> None:
        """Add marks to the response times of a panel."""
        return


def steps_of_spread(scale: Scale) -> int:
    """Count the steps of a spreading over generated streams: a window that fills, then 5 or 30, ten steps each."""
    return 10 + scale.pick(quick=50, full=300)


def observed(panel: str, case: str, nodes: int, counts: RingCounts) -> dict[str, Any]:
    """Describe a run as an observation: the mean response time of results, the mean state at the ends of cycles."""
    return {
        PANEL: panel,
        CASE: case,
        NODES: nodes,
        RESPONSE: float(np.mean(counts.latencies)) * 1e3,
        ROWS: float(np.mean(counts.state_rows)),
    }


def curves(data: pa.Table, name: str) -> Curves:
    """Split a column of the data by the panels and cases that it has."""
    return {
        (panel, case): found
        for panel in cases(data, PANEL)
        for case in cases(data, CASE)
        if len(found := column(data, name, **{PANEL: panel, CASE: case}))
    }


def values(data: pa.Table, name: str) -> dict[tuple[str, str], float]:
    """Look up the first value of a column for each panel and case, of which figures may have one row each.

    >>> values(table([{PANEL: "small", CASE: "psp", ROWS: 3}, {PANEL: "small", CASE: "atr", ROWS: 5}]), ROWS)
    {('small', 'psp'): 3.0, ('small', 'atr'): 5.0}
    """
    return {at: float(found[0]) for at, found in curves(data, name).items()}


def lengths(data: pa.Table, at: tuple[str, str]) -> list[int]:
    """List the numbers of nodes of a curve."""
    panel, case = at
    return [int(nodes) for nodes in column(data, NODES, **{PANEL: panel, CASE: case})]


def best_lengths(data: pa.Table) -> dict[tuple[str, str], int]:
    """Find for each curve the number of nodes with the least response time."""
    return {at: lengths(data, at)[int(np.argmin(curve))] for at, curve in curves(data, RESPONSE).items()}


def by_panel(told: Mapping[tuple[str, str], str]) -> str:
    """Join the texts of each panel and case, panel by panel.

    >>> by_panel({("small", "psp"): "2 ms", ("small", "atr"): "3 ms", ("large", "psp"): "4 ms"})
    'small: 2 ms, 3 ms; large: 4 ms'
    """
    panels: dict[str, list[str]] = {}
    for (panel, _), text in told.items():
        panels.setdefault(panel, []).append(text)
    return "; ".join(f"{panel}: {', '.join(texts)}" for panel, texts in panels.items())


def listed(figures: Iterable[tuple[str, float]]) -> str:
    """Format cases with their figures.

    >>> listed([("psp", 1.2345), ("atr", 244323.0)])
    'psp 1.23, atr 244,323'
    """
    return ", ".join(f"{name} {figure:,.0f}" if figure >= 100 else f"{name} {figure:.3g}" for name, figure in figures)
