"""One picture of the benchmark: delays around a change, and the longest gaps of all runs.

`python -m benchmarks.plan_change.picture` draws docs/plan_change.png and .svg again from what was measured last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.both_formats import save
from benchmarks.plan_change.contestants import NEVER, RESTART
from benchmarks.plan_change.measures import GAP_ALLOWED
from benchmarks.plan_change.record import Record, Report
from midstream.lab.drawing import INK

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLORS = {NEVER: "#9a9a9a", RESTART: "#222222", **{name: INK[name] for name in ("hybmig", "gpt", "jisc")}}
SHOWN = tuple(COLORS)
FEW = 20
"""Outputs up to which none is left out."""
HOSTS = {"embedded": "Embedded engine", "spark": "Spark"}
SAID = {
    NEVER: "old plan kept",
    RESTART: "restart from scratch",
    "selectivity_flip": "selectivities flip",
    "rate_flip": "rates flip",
    "gradual_drift": "gradual drift",
    "flapping": "there and back",
    "hot_key": "a hot key",
}
MARKS = "osD^v"
OTHERS = ("#1f6f8b",)


def draw(reports: Sequence[Report], path: Path) -> None:
    """Write the picture."""
    figure, axes = plt.subplots(2, len(reports), figsize=(5.6 * len(reports), 8.6), squeeze=False, height_ratios=[2, 3])
    for column, report in enumerate(reports):
        _delays(axes[0][column], report)
        _gaps(axes[1][column], report)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, path)


def _delays(axis: Any, report: Report) -> None:
    """The delay of the oldest result of each output around the change: the same contestants on each host.

    The first output is left out where it tells of the warm-up.
    """
    shown = report.records[0].scenario
    rows = [row for row in report.of(shown) if row.measures is not None and row.outputs]
    for row in (row for row in rows if row.contestant in SHOWN):
        at, delay = zip(*row.outputs[1:] if len(row.outputs) > FEW else row.outputs, strict=True)
        axis.plot(at, delay, label=_said(row.contestant), color=COLORS[row.contestant], linewidth=1.4)
    span = report.load.lead
    axis.set_xlim(-span, 4 * span)
    axis.set_ylim(bottom=0)
    axis.axvline(0, color="#bbbbbb", linestyle=":")
    axis.set_title(f"{HOSTS.get(report.host, report.host)}: {_said(shown)}")
    axis.set_xlabel("seconds since the change of plan was asked for")
    axis.set_ylabel("delay of the oldest result (s)")
    axis.set_ylim(top=1.45 * axis.get_ylim()[1])  # Room for the legend, clear of the lines.
    axis.legend(frameon=False, fontsize=8, ncols=2, loc="upper center")


def _gaps(axis: Any, report: Report) -> None:
    """The longest gap of every run over that without a migration; a mark a scenario."""
    rows = [row for row in report.records if row.measures is not None and row.strategy != NEVER]
    names = list(dict.fromkeys(row.contestant for row in rows))
    scenarios = list(dict.fromkeys(row.scenario for row in rows))
    for mark, scenario in zip(MARKS, scenarios, strict=False):
        own = [row for row in rows if row.scenario == scenario]
        places = [len(names) - 1 - names.index(row.contestant) for row in own]
        colors = [COLORS.get(row.contestant, INK.get(row.strategy, OTHERS[0])) for row in own]
        axis.scatter([_ratio(row) for row in own], places, marker=mark, c=colors, alpha=0.75, s=34)
        axis.scatter([], [], marker=mark, c="#555555", label=_said(scenario))
    axis.axvline(1, color="#9a9a9a", linestyle=":")
    axis.axvline(GAP_ALLOWED, color="#c0392b", linestyle="--", linewidth=0.8)
    axis.set_xscale("log")
    ticks = [tick for tick in (0.5, 1, 1.5, 2, 3, 5, 10, 20, 50) if tick <= max([2.0, *map(_ratio, rows)]) * 1.2]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_yticks(range(len(names)), [_said(name) for name in names[::-1]], fontsize=8)
    axis.set_xlabel("longest output gap / gap where the old plan is kept")
    axis.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.11))


def _said(name: str) -> str:
    """A contestant or scenario in words; options with separators."""
    return SAID.get(name, re.sub(r"(\w+)=(\d+)", lambda found: f"({found[1]} {int(found[2]):,})", name))


def _ratio(row: Record) -> float:
    assert row.measures is not None
    return row.measures.gap_ratio


if __name__ == "__main__":
    _root = Path(__file__).resolve().parent.parent
    _found = (Report.load_from(_root / "results", host) for host in ("embedded", "spark"))
    draw([report for report in _found if report is not None], _root.parent / "docs" / "plan_change.png")
