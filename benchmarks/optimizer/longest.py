"""The longest push that reviews a plan, beside usual ones: joins of 3 to 60 streams."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pyarrow as pa

import midstream as ms
from benchmarks.long_pushes import collections
from midstream.model.events import PlanReviewed

SECOND = 1_000_000
STREAMS = (3, 4, 6, 8, 9, 10, 12, 14, 20, 40, 60)
STEPS, WARM, RATE, KEYS, WINDOW = 60, 12, 6, 400, 10
TIMES, MORE = 2.0, 0.005  # so many usual steps, and seconds beyond


def engine(streams: int) -> ms.Engine:
    """Make an engine that joins so many streams by their key."""
    names, made = [f"s{at:02d}" for at in range(streams)], ms.Engine(seed=1)
    for name in names:
        made.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    equal = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(names))
    made.add_query("q", f"SELECT s00.k FROM {', '.join(names)} WHERE {equal} WINDOW {WINDOW} SECONDS")
    made.optimize("q", mode="suggest", review="2 seconds", effort=1.0)
    return made


def batch(streams: int, step: int) -> dict[str, pa.Table]:
    """Return the rows of a step."""
    rng = np.random.default_rng([49, streams, step])
    found = {}
    for at in range(streams):
        times = np.sort(rng.integers(step * SECOND, (step + 1) * SECOND, RATE))
        keys = rng.integers(0, 3 if at < 3 else KEYS, RATE)
        found[f"s{at:02d}"] = pa.table({"k": keys, "ts": pa.array(times, pa.timestamp("us"))})
    return found


def main(which: str, cases: int) -> None:
    """Time pushes; those that review, or search in slices, beside the median of the others.

    Full garbage collections, which come in few pushes of either kind, stand by themselves.
    """
    print("\n| streams | usual step (ms) | longest with a review (ms) | median with a review (ms) | allowed (ms) "
          "| reviews | collections (ms) |\n|" + 7 * "---|")  # fmt: skip
    for streams in STREAMS[:cases]:
        made, usual, reviewing = engine(streams), list[float](), list[float]()
        with collections() as collected:
            for step in range(STEPS):
                rows, before = batch(streams, step), made.manifest.optimizations.get("q")
                begun, known = time.process_time(), len(collected)
                made.push(rows)
                took = time.process_time() - begun - sum(collected[known:])
                after = made.manifest.optimizations["q"]
                searched = before is not None and (after.searched or before.searched)
                if step >= WARM:
                    reviewed = any(isinstance(e, PlanReviewed) and e.step == step for e in made.events[-20:])
                    (reviewing if searched or reviewed else usual).append(took)
        typical, full = float(np.median(usual)), ", ".join(f"{1e3 * one:.0f}" for one in collected)
        print(
            f"| {streams} | {typical * 1e3:.1f} | {max(reviewing, default=0.0) * 1e3:.1f} "
            f"| {float(np.median(reviewing)) * 1e3:.1f} | {(TIMES * typical + MORE) * 1e3:.1f} | {len(reviewing)} "
            f"| {full or 'none'} |",
            flush=True,
        )
