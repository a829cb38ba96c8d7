"""One picture of the benchmark: the work of each step over a drift, and the regret of all contestants.

`python -m benchmarks.optimizer.picture` draws docs/optimizer.png, optimizer_story.png and the .svg of both again from
what was measured last.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from benchmarks.both_formats import save
from benchmarks.optimizer.contestants import SCHEDULE
from benchmarks.optimizer.record import Record, Report
from benchmarks.optimizer.scenarios import SCENARIOS, STORY
from benchmarks.optimizer.verdicts import JUDGED, OF_SCHEDULE, best, best_fixed

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLORS = {JUDGED: "#1f6f8b", SCHEDULE: "#444444", "kept": "#9a9a9a", "worst": "#c0392b", "good": "#4c956c"}
OTHERS = ("#e08e0b", "#7b5ea7", "#4c956c", "#c0392b", "#d4a5a5")
MOST = 10.0
"""Beyond this regret a mark is put at the edge."""


def draw(report: Report, path: Path) -> None:
    """Write the picture."""
    shown = next((name for name in report.scenarios if SCENARIOS[name].kind == "drifting"), report.scenarios[0])
    figure, axes = plt.subplots(1, 2, figsize=(13, 5.2), width_ratios=[1, 1])
    over_time(axes[0], report.of(shown), report)
    _regrets(axes[1], report)
    _save(figure, path)


def draw_story(report: Report, scenario: str, path: Path) -> None:
    """Write the picture of one scenario alone."""
    if not report.of(scenario):
        return
    figure, axis = plt.subplots(figsize=(8.2, 3.2))
    over_time(axis, report.of(scenario), report)
    _save(figure, path)


def over_time(axis: Any, records: Sequence[Record], report: Report) -> None:
    """The work of each step: of `adaptive`, its migrations marked, beside plans that are kept."""
    own = next((record for record in records if record.contestant == JUDGED), None)
    kept = [record for record in records if record.kind == "fixed"]
    good, bad = best_fixed(records), max(kept, key=lambda record: record.joined)
    for record, color in ((bad, COLORS["worst"]), (good, COLORS["good"])):
        said = "worst" if record is bad else "best"
        axis.plot(*_curve(record, report), color=color, linewidth=1.2, label=f"{said} plan kept, {record.contestant}")
    if own is not None:
        times, work = _curve(own, report)
        axis.plot(times, work, color=COLORS[JUDGED], linewidth=2.2, label=f"{JUDGED}")
        for number, (step, plan) in enumerate(own.switches):
            first = "it moves the query" if number == 0 else None
            axis.axvline(step * report.load.tick, color=COLORS[JUDGED], linestyle=":", linewidth=1.2, label=first)
            top = (step * report.load.tick, axis.get_ylim()[1])
            axis.annotate(f"to {plan}", top, (4, -2), textcoords="offset points", fontsize=8, va="top")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("seconds of the streams")
    axis.set_ylabel("milliseconds of work a step")
    axis.set_title(SCENARIOS[records[0].scenario].title, fontsize=9)
    axis.legend(frameon=False, fontsize=8)


def _curve(record: Record, report: Report) -> tuple[Any, Any]:
    return report.load.tick * (1 + np.arange(len(record.work))), np.array(record.work)


def _regrets(axis: Any, report: Report) -> None:
    """The regret of every contestant: a row a scenario."""
    names = report.scenarios[::-1]
    policies = list(dict.fromkeys(record.contestant for record in report.records if record.kind == "policy"))
    policies = [*(name for name in policies if name != JUDGED), JUDGED]
    colors = dict(zip((name for name in policies if name != JUDGED), OTHERS, strict=False))
    for place, name in enumerate(names):
        rows = [record for record in report.of(name) if not record.failed]
        least = best(rows)
        for record in rows:
            if record.kind == "fixed":
                axis.scatter(min(record.joined / least, MOST), place, marker="|", s=70, color=COLORS["kept"])
        for record in rows:
            if record.kind == "policy":
                size, color = (46, COLORS[JUDGED]) if record.contestant == JUDGED else (22, colors[record.contestant])
                axis.scatter(min(record.joined / least, MOST), place, s=size, color=color, zorder=3)
    axis.scatter([], [], marker="|", color=COLORS["kept"], label="a plan kept")
    for policy in policies:
        axis.scatter([], [], color=colors.get(policy, COLORS[JUDGED]), label=policy)
    axis.axvline(1, color="#bbbbbb", linestyle=":")
    axis.axvline(OF_SCHEDULE, color=COLORS["worst"], linestyle="--", linewidth=0.8)
    axis.set_xscale("log")
    ticks = [1, 1.5, 2, 3, 5, MOST]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_xlabel("work, migrations included / that of the best schedule")
    axis.legend(frameon=False, fontsize=8)


def _save(figure: Any, path: Path) -> None:
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, path)


if __name__ == "__main__":
    _root = Path(__file__).resolve().parent.parent
    if (_found := Report.load_from(_root / "results", "embedded")) is not None:
        draw(_found, _root.parent / "docs" / "optimizer.png")
        draw_story(_found, STORY, _root.parent / "docs" / "optimizer_story.png")
