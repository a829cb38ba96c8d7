"""One picture of the benchmark: step times over the number of queries, state, and what a query more costs.

`python -m benchmarks.sharing.picture` draws docs/sharing.png and .svg again from what was measured last.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.both_formats import save
from benchmarks.sharing.pace import MODES
from benchmarks.sharing.record import Report
from benchmarks.sharing.scaling import ALLOWED
from benchmarks.sharing.spark import OURS, THEIRS
from benchmarks.sharing.workload import DISTRIBUTIONS, FILTERS, Workload
from midstream.lab.drawing import INK

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLORS = {mode: INK.get(mode, color) for mode, color in zip(MODES, ("#9a9a9a", *["#7b5ea7"] * 5), strict=True)}
COLORS |= {OURS: "#1f6f8b", THEIRS: "#c0392b"}
STATE_OF = 36


def draw(report: Report, path: Path) -> None:
    """Write the picture."""
    figure, axes = plt.subplots(2, 3, figsize=(14, 8))
    for axis, distribution in zip(axes[0], DISTRIBUTIONS, strict=True):
        _times(axis, report, distribution)
    _state(axes[1][0], report)
    _scaling(axes[1][1], report)
    _spark(axes[1][2], report)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, path)


def _times(axis: Any, report: Report, distribution: str) -> None:
    for mode in MODES:
        own = [
            (r.queries, 1000 * r.typical, r.rate)
            for r in report.records
            if r.mode == mode
            and r.filters == "none"
            and r.typical
            and (r.distribution == distribution or r.queries == 1)
        ]
        if own:
            full = [(queries, ms) for queries, ms, rate in own if rate == own[0][2]]
            axis.plot(*zip(*full, strict=True), marker="o", markersize=4, label=mode, color=COLORS[mode])
            for queries, ms, rate in own:
                if rate != own[0][2]:
                    axis.plot(queries, ms, marker="o", markersize=6, color=COLORS[mode], fillstyle="none")
                    slower = f"{queries:,} queries: rows come\nat {rate / own[0][2]:g} of the rate"
                    axis.annotate(slower, (0.97, 0.03), xycoords="axes fraction", fontsize=8, ha="right", va="bottom")
    axis.set_xscale("log")
    counts = sorted({r.queries for r in report.records})
    axis.set_xticks(counts, [f"{count:,}" for count in counts])
    _plain_log(axis)
    axis.set_title(f"embedded, {distribution.replace('_', ' and ' if 'large' in distribution else ' ')} windows")
    axis.set_xlabel("queries")
    axis.set_ylabel("milliseconds a step")
    axis.legend(frameon=False, fontsize=8)


def _plain_log(axis: Any) -> None:
    """A logarithmic axis whose ticks are numbers as one writes them."""
    axis.set_yscale("log")
    axis.minorticks_off()
    low, high = axis.get_ylim()
    ticks = [m * 10**e for e in range(-3, 7) for m in ((1, 2, 5) if high / low < 300 else (1,))]
    axis.set_yticks(
        shown := [tick for tick in ticks if low <= tick <= high],
        [f"{tick:,g}" if tick < 1e6 else f"{tick:,}" for tick in shown],
    )
    axis.minorticks_off()


def _state(axis: Any, report: Report) -> None:
    shown = [(f, found) for f in FILTERS if (found := report.of(Workload(STATE_OF, "uniform", f)))]
    if not shown:
        return
    modes = [mode for mode in MODES if any(mode in found and found[mode].seconds for _, found in shown)]
    for place, mode in enumerate(modes):
        at = [n + 0.8 * (place - (len(modes) - 1) / 2) / max(len(modes), 1) for n in range(len(shown))]
        heights = [found[mode].state_rows if mode in found else 0 for _, found in shown]
        axis.bar(at, heights, 0.75 / max(len(modes), 1), color=COLORS[mode], label=mode)
    axis.set_xticks(range(len(shown)), [f"filters: {name}" for name, _ in shown])
    axis.set_yscale("log")
    axis.set_title(f"{STATE_OF} queries, uniform windows")
    axis.set_ylabel("rows of state")
    axis.set_ylim(top=4 * axis.get_ylim()[1])
    _plain_log(axis)
    axis.legend(frameon=False, fontsize=8, ncols=3)


def _scaling(axis: Any, report: Report) -> None:
    for mode in dict.fromkeys(run.mode for run in report.scalings):
        own = [(run.results[0], run.ratio) for run in report.scalings if run.mode == mode]
        axis.plot(*zip(*own, strict=True), marker="o", markersize=4, label=mode, color=COLORS[mode])
    axis.axhline(ALLOWED, color="#c0392b", linestyle="--", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_xticks(totals := sorted({run.results[0] for run in report.scalings}), [f"{n:,}" for n in totals])
    axis.minorticks_off()
    axis.set_ylim(bottom=0)
    axis.set_title("1,000 queries against 10 that want as much")
    axis.set_xlabel("results a step in total")
    axis.set_ylabel("time of a step, ratio")
    axis.legend(frameon=False, fontsize=8)


def _spark(axis: Any, report: Report) -> None:
    for contender in (OURS, THEIRS):
        own = [(run.queries, run.typical) for run in report.spark if run.contender == contender and run.typical]
        if own:
            axis.plot(*zip(*own, strict=True), marker="o", markersize=4, label=contender, color=COLORS[contender])
    if report.spark:
        axis.axhline(report.spark[0].stream_seconds, color="#9a9a9a", linestyle=":", label="as fast as rows come")
        counts = sorted({run.queries for run in report.spark})
        axis.set_xscale("log")
        axis.set_xticks(counts, [f"{count:,}" for count in counts])
        _plain_log(axis)
        axis.legend(frameon=False, fontsize=8)
    axis.set_title("on Spark, local[2]")
    axis.set_xlabel("queries")
    axis.set_ylabel("seconds a step")


if __name__ == "__main__":
    _root = Path(__file__).resolve().parent.parent
    if (_found := Report.load(_root / "results" / "sharing.json")) is not None:
        draw(_found, _root.parent / "docs" / "sharing.png")
