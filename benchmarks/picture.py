"""Draw a migration: work, latency and results of each step before, during and after it, from a real run.

Usage: python -m benchmarks.picture [OUT.png]; an SVG is written beside it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib
import numpy as np
import pyarrow as pa

import midstream as ms
from benchmarks.both_formats import save
from midstream.lab.drawing import number_text
from midstream.model.events import MigrationEnded, StepDone

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

STEPS, DRIFT, MIGRATION, KEYS, ROWS, RARE = 30, 8, 16, 20_000, 20_000, 600
OLD, NEW = "((A B) C)", "(A (B C))"
SQL = "SELECT A.k, A.v, B.v AS bv, C.v AS cv FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 20 SECONDS"
ROUNDS = 5
"""Of the times of so many runs the median is drawn; all else is equal in each."""

STAYS, MOVES = "#9a9a9a", "#1f6f8b"


@dataclass(frozen=True)
class Course:
    """By step the comparisons, the results and the milliseconds until they were there; what the migration cost."""

    comparisons: list[int]
    results: list[int]
    latency: list[float]
    cost: int


def rows(random: np.random.Generator, step: int, count: int) -> pa.Table:
    """One stream's rows of a step of ten seconds."""
    times = np.sort(random.integers(step * 10_000_000, (step + 1) * 10_000_000, count))
    return pa.table(
        {"k": random.integers(0, KEYS, count), "ts": pa.array(times, pa.timestamp("us")), "v": random.random(count)}
    )


def run(migrate: bool) -> Course:
    """The join over the same rows, with or without the migration."""
    random, engine = np.random.default_rng(7), ms.Engine()
    for stream in "ABC":
        engine.create_stream(stream, "k BIGINT, ts TIMESTAMP, v DOUBLE", timestamp="ts")
    engine.add_query("q", SQL, plan=OLD)
    for step in range(STEPS):
        if migrate and step == MIGRATION:
            engine.migrate("q", plan=NEW, strategy="moving_state")
        # The drift: A was the rare stream, now C is.
        counts = {"A": RARE, "B": ROWS, "C": ROWS} if step < DRIFT else {"A": ROWS, "B": ROWS, "C": RARE}
        engine.push({stream: rows(random, step, count) for stream, count in counts.items()})
    done = [e for e in engine.events if isinstance(e, StepDone)]
    cost = sum(e.comparisons for e in engine.events if isinstance(e, MigrationEnded))
    latency = [1e3 * one.seconds for one in engine.times]
    return Course([e.comparisons for e in done], [e.rows_out["q"] for e in done], latency, cost)


def median_course(migrate: bool) -> Course:
    """Several runs, with the median of the times of each step."""
    found = [run(migrate) for _ in range(ROUNDS)]
    latency = [median(times) for times in zip(*(one.latency for one in found), strict=True)]
    return Course(found[0].comparisons, found[0].results, latency, found[0].cost)


def draw(path: Path) -> None:
    """Write the picture, as PNG and as SVG."""
    run(migrate=True)  # What is imported and compiled at the first steps is not a part of the message.
    stay, move = median_course(migrate=False), median_course(migrate=True)
    assert stay.results == move.results, "a migration must not change the answer"
    figure, (work, latency, output) = plt.subplots(3, 1, figsize=(9, 7.4), sharex=True, height_ratios=[3, 2, 1.2])
    work.set_title("The data drifts, the plan is changed: work and latency fall, no result is lost", loc="left")
    for axis, of_stay, of_move in ((work, stay.comparisons, move.comparisons), (latency, stay.latency, move.latency)):
        axis.plot(of_stay, color=STAYS, marker="s", markersize=3.5, label=f"plan {OLD} throughout")
        axis.plot(of_move, color=MOVES, marker="o", markersize=3.5, label=f"migrated to {NEW} at step {MIGRATION}")
        axis.set_ylim(bottom=0)
    for axis in (work, latency, output):
        axis.axvline(DRIFT, color=STAYS, linestyle=":")
        axis.axvline(MIGRATION, color=MOVES, linestyle=":")
    beside: dict[str, Any] = {"textcoords": "offset points", "xytext": (6, 0)}
    half = max(stay.comparisons) * 0.42
    work.annotate("the data drifts:\nC is rare now", (DRIFT, half), **beside)
    work.annotate(f"moving_state:\n{move.cost:,} comparisons", (MIGRATION, half), **beside)
    work.set_ylabel("comparisons a step")
    work.legend(loc="upper right", frameon=False)
    latency.set_ylabel("latency (ms)")
    output.bar(range(STEPS), move.results, color="#c9dbe1")
    output.set_ylabel("results")
    output.set_xlabel("step (10 s of stream time); the results are the same rows either way")
    for axis in (work, latency, output):
        axis.spines[["top", "right"]].set_visible(False)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    figure.align_ylabels()
    figure.tight_layout()
    save(figure, path)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/migration.png"))
