"""Draw a migration: the work of each step before, during and after it, from a real run.

Usage: python -m benchmarks.picture OUT.png.
"""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pyarrow as pa

import midstream as ms
from midstream.model.events import MigrationEnded, StepDone

matplotlib.use("Agg")
import matplotlib.pyplot as plt

STEPS, DRIFT, MIGRATION, KEYS, ROWS, RARE = 30, 8, 16, 5_000, 5_000, 150
OLD, NEW = "((A B) C)", "(A (B C))"
SQL = "SELECT A.k, A.v, B.v AS bv, C.v AS cv FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 20 SECONDS"


def rows(random: np.random.Generator, step: int, count: int) -> pa.Table:
    """One stream's rows of a step of ten seconds."""
    times = np.sort(random.integers(step * 10_000_000, (step + 1) * 10_000_000, count))
    return pa.table(
        {"k": random.integers(0, KEYS, count), "ts": pa.array(times, pa.timestamp("us")), "v": random.random(count)}
    )


def run(migrate: bool) -> tuple[list[int], list[int], int]:
    """Comparisons and results of every step, and the comparisons the migration cost."""
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
    return [e.comparisons for e in done], [e.rows_out["q"] for e in done], cost


def draw(path: str) -> None:
    """Write the picture."""
    stay, results, _ = run(migrate=False)
    move, moved_results, cost = run(migrate=True)
    assert results == moved_results, "a migration must not change the answer"
    figure, (work, output) = plt.subplots(2, 1, figsize=(9, 5.2), sharex=True, height_ratios=[3, 1])
    work.plot(stay, color="#b0b0b0", marker="o", markersize=3, label=f"plan {OLD} throughout")
    work.plot(move, color="#1f6f8b", marker="o", markersize=3, label=f"migrated to {NEW} at step {MIGRATION}")
    work.axvline(DRIFT, color="#888888", linestyle=":")
    beside = {"textcoords": "offset points", "xytext": (6, 0)}
    work.annotate("the data drifts:\nC is rare now", (DRIFT, max(stay) * 0.42), **beside)
    work.axvline(MIGRATION, color="#1f6f8b", linestyle=":")
    work.annotate(f"moving_state:\n{cost:,} comparisons", (MIGRATION, max(stay) * 0.42), **beside)
    work.set_ylabel("comparisons a step")
    work.set_ylim(bottom=0)
    work.legend(loc="upper right", frameon=False)
    output.bar(range(STEPS), moved_results, color="#c9dbe1")
    output.set_ylabel("results")
    output.set_xlabel("step (10 s of stream time); the results are the same rows either way")
    for axis in (work, output):
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "docs/migration.png")
