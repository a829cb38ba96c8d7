"""One picture of the benchmark: rows a second on Spark, what is kept, and how even the nodes are.

`python -m benchmarks.ring.picture` draws docs/ring.png and .svg again from what was measured last.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.both_formats import save
from benchmarks.ring.contestants import NO_SPREAD, ON_SPARK, TOGETHER, Contestant
from benchmarks.ring.record import Report
from benchmarks.ring.scenarios import ALONE
from benchmarks.ring.verdicts import EVEN
from midstream.lab.drawing import INK
from midstream.ring.spreading import spreadings

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PLAIN, THEIRS = "#bbbbbb", "#c0392b"


def draw(reports: Sequence[Report], path: Path) -> None:
    """Write the picture."""
    by_host = {report.host: report for report in reports}
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.8))
    _speed(axes[0], by_host.get("spark") or reports[0])
    _copies(axes[1], by_host.get("embedded") or reports[0])
    _even(axes[2], by_host.get("embedded") or reports[0])
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, path)


def _speed(axis: Any, report: Report) -> None:
    """Rows a second against one lane: the spread that `auto` takes on two nodes, and Spark's own join."""
    names = report.scenarios
    for shift, color, label, rival in ((-0.2, "#1f6f8b", "spread over two nodes", None),
                                       (0.2, THEIRS, "Spark's own join", ON_SPARK)):  # fmt: skip
        bars = []
        for place, name in enumerate(names):
            own = rival or next((one for one in report.contestants(name) if _is_pair(one)), None)
            rate, base = report.rate(name, own) if own else None, report.rate(name, NO_SPREAD)
            if rate and base:
                bars.append((place + shift, rate / base))
        if bars:
            axis.bar(*zip(*bars, strict=True), 0.38, color=color, label=label)
    axis.axhline(1, color=PLAIN, linestyle="--", label="one lane")
    axis.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
    axis.set_ylabel("rows a second / one lane's")
    axis.set_title(f"{report.host}, against one lane")
    axis.legend(frameon=False, fontsize=8)


def _is_pair(contestant: Contestant) -> bool:
    return contestant.kind == "spread" and contestant.nodes == TOGETHER


def _copies(axis: Any, report: Report) -> None:
    """State rows against those of one node, over the number of nodes."""
    name = report.scenarios[0]
    alone = next(iter(report.rounds(name, Contestant(ALONE))), None)
    for scheme, color in _colored(report):
        own = [one for one in report.of(name) if one.is_spread_by(scheme)]
        points = [
            (one.contestant.nodes, one.state_rows[-1] / alone.state_rows[-1])
            for one in own
            if alone is not None and one.state_rows
        ]
        if points:
            axis.plot(*zip(*sorted(points), strict=True), marker="o", markersize=4, color=color, label=scheme)
    _by_nodes(axis, report)
    axis.set_ylim(bottom=0)
    axis.set_title(f"{name}: rows kept by all nodes / by one")
    axis.legend(frameon=False, fontsize=8)


def _even(axis: Any, report: Report) -> None:
    """How even the nodes of rings are."""
    for scheme, color in _colored(report):
        points = [(one.nodes, one.balance) for one in report.evenness if one.scheme == scheme]
        if points:
            axis.plot(*zip(*points, strict=True), marker="o", markersize=4, color=color, label=scheme)
    axis.axhline(EVEN, color=THEIRS, linestyle="--", linewidth=0.8, label="required")
    _by_nodes(axis, report)
    axis.set_ylim(bottom=0.9)
    axis.set_title("steady streams: busiest node / mean")
    axis.legend(frameon=False, fontsize=8)


def _by_nodes(axis: Any, report: Report) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xticks(report.load.nodes, [str(nodes) for nodes in report.load.nodes])
    axis.set_xlabel("nodes")


def _colored(report: Report) -> list[tuple[str, str]]:
    schemes = {one.contestant.name for one in report.records} | {one.scheme for one in report.evenness}
    return [(name, INK.get(name, PLAIN)) for name in spreadings() if name in schemes]


if __name__ == "__main__":
    _root = Path(__file__).resolve().parent.parent
    _found = [Report.load_from(_root / "results", host) for host in ("embedded", "spark")]
    if _reports := [report for report in _found if report is not None]:
        draw(_reports, _root.parent / "docs" / "ring.png")
