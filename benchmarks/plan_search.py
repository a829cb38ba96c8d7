"""What the optimizer takes: searching for the best plans, and all its reviews: `python -m benchmarks.plan_search`.

Joins of 6 to 12 streams: in a chain, around one stream, and by one key that all share, where any streams can be joined.
Each search begins with an estimate that has looked nothing up. Required: 10 streams within 100 ms, 12 within
one second.

Reviews as they are made where nothing is set, statistics, search and decision together: within 10 ms where a step has
100 rows, and at 60,000 rows a step within 3 % of the steps. Both are processor time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from statistics import median

import midstream as ms
from benchmarks.optimizer.review_time import review_time
from benchmarks.scenarios import W1A
from benchmarks.small_steps import Kind, Tables
from midstream.model.events import PlanReviewed
from midstream.optimizer.cost.plan_cost import CostModel
from midstream.optimizer.estimate import Estimate
from midstream.optimizer.search.best import best_plans
from midstream.optimizer.statistics import Condition, JoinStatistics, SourceStatistics, Statistics

NAMES = "ABCDEFGHIJKL"
SIZES = (6, 8, 10, 12)
LIMITS = {10: 100.0, 12: 1000.0}
"""Milliseconds."""

WINDOW = 10.0


def conditions(shape: str, names: str) -> tuple[Condition, ...]:
    """What ties the streams."""
    if shape == "one key":
        return (Condition("hash", frozenset(names)),)
    firsts = names[:1] * (len(names) - 1) if shape == "star" else names[:-1]
    return tuple(Condition("hash", frozenset(pair)) for pair in zip(firsts, names[1:], strict=True))


SHAPES = ("chain", "star", "one key")


def figures(shape: str, count: int) -> Statistics:
    """A query of that shape whose left-deep plan runs."""
    names = NAMES[:count]
    sources = {name: SourceStatistics(10.0 + 7 * i, (10.0 + 7 * i) * WINDOW, WINDOW) for i, name in enumerate(names)}
    joins = [
        JoinStatistics(frozenset(names[:i]), frozenset(names[i]), 0.002 * (1 + i % 3), 1.0) for i in range(1, count)
    ]
    return Statistics(sources, conditions(shape, names), tuple(joins))


def milliseconds(shape: str, count: int, times: int) -> float:
    """The median of some searches."""
    taken = []
    for _ in range(times):
        live = figures(shape, count)
        begun = time.perf_counter()
        best_plans(tuple(live.sources), live.conditions, Estimate(live), CostModel())
        taken.append(time.perf_counter() - begun)
    return 1e3 * median(taken)


def searches(quick: bool) -> Iterator[tuple[str, float, float | None, str]]:
    """What was searched, what it took, what it may take at most, and the unit of both."""
    for count in SIZES[:1] if quick else SIZES:
        for shape in SHAPES:
            yield f"{count} streams, {shape}", milliseconds(shape, count, 1 if quick else 5), LIMITS.get(count), "ms"


def reviews(quick: bool) -> Iterator[tuple[str, float, float | None, str]]:
    """The same of reviews: one at small steps, and the share of all of them in large ones."""
    small, found = Kind(100), [0.0]
    engine = small.engine()
    engine.optimize(policy="static", mode="auto")
    for tables in islice(small.pushes(), 150 if quick else 1_000):
        with review_time() as spent:
            engine.push(tables)
        if any(isinstance(event, PlanReviewed) and event.step == engine.manifest.step for event in engine.events):
            found.append(1e3 * spent.seconds)
    yield "a review at steps of 100 rows", median(found), 10.0, "ms"
    large = replace(W1A, batches=4 if quick else 30, rows=2_000 if quick else W1A.rows)
    engine = ms.Engine()
    for stream in large.streams:
        engine.create_stream(stream, large.schema(stream), timestamp="ts")
    engine.add_query("q", large.midstream)
    with review_time() as spent:
        taken = _pushed(engine, large.steps())
    yield f"reviews at steps of {3 * large.rows:,} rows, of the steps' time", 100 * spent.seconds / taken, 3.0, "%"


def _pushed(engine: ms.Engine, steps: Iterable[Tables]) -> float:
    """The processor time that steps take."""
    taken = 0.0
    for tables in steps:
        begun = time.thread_time()
        engine.push(tables)
        taken += time.thread_time() - begun
    return taken


def main() -> None:
    """Measure all shapes and sizes; exit code 1 where a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="show that it runs; its times mean nothing")
    quick = parser.parse_args().quick
    kept = True
    for what, taken, limit, unit in (*searches(quick), *reviews(quick)):
        kept &= limit is None or taken <= limit
        verdict = "met" if limit is None or taken <= limit else "NOT met"
        required = "" if limit is None else f" (required: at most {limit:g} {unit}, {verdict})"
        print(f"{what}: {taken:.1f} {unit}{required}", flush=True)
    raise SystemExit(0 if kept or quick else 1)


if __name__ == "__main__":
    main()
