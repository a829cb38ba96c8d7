"""One picture of the benchmark: delays around a change, and the longest gaps of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.plan_change.contestants import NEVER, RESTART
from benchmarks.plan_change.measures import GAP_ALLOWED
from benchmarks.plan_change.record import Record, Report

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLORS = {NEVER: "#9a9a9a", RESTART: "#c0392b"}
MARKS = "osD^v"
OTHERS = ("#1f6f8b", "#e08e0b", "#4c956c")


def draw(reports: Sequence[Report], path: Path) -> None:
    """Write the picture."""
    figure, axes = plt.subplots(2, len(reports), figsize=(5.6 * len(reports), 8.6), squeeze=False, height_ratios=[2, 3])
    for column, report in enumerate(reports):
        _delays(axes[0][column], report)
        _gaps(axes[1][column], report)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _delays(axis: Any, report: Report) -> None:
    """The delay of the oldest result of each output around the change; of the strategies the best and the worst."""
    shown = report.records[0].scenario
    rows = [row for row in report.of(shown) if row.measures is not None and row.outputs]
    chosen = [row for row in rows if row.contestant in (NEVER, RESTART)]
    strategies = sorted((row for row in rows if row.is_strategy), key=_ratio)
    chosen += list({row.contestant: row for row in (*strategies[:1], *strategies[-1:])}.values())
    for number, row in enumerate(chosen):
        at, delay = zip(*row.outputs, strict=True)
        axis.plot(at, delay, label=row.contestant, color=COLORS.get(row.contestant, OTHERS[number % 3]), linewidth=1.4)
    span = report.load.lead
    axis.set_xlim(-span, 4 * span)
    axis.set_ylim(bottom=0)
    axis.axvline(0, color="#bbbbbb", linestyle=":")
    axis.set_title(f"{report.host}: {shown}")
    axis.set_xlabel("seconds since the change of plan was asked for")
    axis.set_ylabel("seconds from possible to out")
    axis.legend(frameon=False, fontsize=8)


def _gaps(axis: Any, report: Report) -> None:
    """The longest gap of every run over that without a migration; a mark a scenario."""
    rows = [row for row in report.records if row.measures is not None and row.strategy != NEVER]
    names = list(dict.fromkeys(row.contestant for row in rows))
    scenarios = list(dict.fromkeys(row.scenario for row in rows))
    for mark, scenario in zip(MARKS, scenarios, strict=False):
        own = [row for row in rows if row.scenario == scenario]
        places = [len(names) - 1 - names.index(row.contestant) for row in own]
        colors = [COLORS.get(row.contestant, OTHERS[0]) for row in own]
        axis.scatter([_ratio(row) for row in own], places, marker=mark, c=colors, alpha=0.75, s=34)
        axis.scatter([], [], marker=mark, c="#555555", label=scenario)
    axis.axvline(1, color="#9a9a9a", linestyle=":")
    axis.axvline(GAP_ALLOWED, color="#c0392b", linestyle="--", linewidth=0.8)
    axis.set_xscale("log")
    ticks = [tick for tick in (0.5, 1, 1.5, 2, 3, 5, 10, 20, 50) if tick <= max([2.0, *map(_ratio, rows)]) * 1.2]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_yticks(range(len(names)), names[::-1], fontsize=8)
    axis.set_xlabel("longest output gap / gap without a migration")
    axis.legend(frameon=False, fontsize=8)


def _ratio(row: Record) -> float:
    assert row.measures is not None
    return row.measures.gap_ratio
