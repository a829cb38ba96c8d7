"""How long the optimizer searches for the best plans of a query: `python -m benchmarks.plan_search`.

Joins of 6 to 12 streams: in a chain, around one stream, and by one key that all share, where any streams can be joined.
Each search begins with an estimate that has looked nothing up. Required: 10 streams within 100 ms, 12 within
one second.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

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


def main() -> None:
    """Measure all shapes and sizes; exit code 1 where a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="show that it runs; its times mean nothing")
    quick = parser.parse_args().quick
    kept = True
    for count in SIZES[:1] if quick else SIZES:
        for shape in SHAPES:
            taken = milliseconds(shape, count, 1 if quick else 5)
            limit = LIMITS.get(count)
            kept &= limit is None or taken <= limit
            required = (
                "" if limit is None else f" (required: at most {limit:g} ms, {'met' if taken <= limit else 'NOT met'})"
            )
            print(f"{count} streams, {shape}: {taken:.1f} ms{required}")
    raise SystemExit(0 if kept or quick else 1)


if __name__ == "__main__":
    main()
