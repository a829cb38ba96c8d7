"""What the operations of a chain cost on this machine: `python -m benchmarks.sharing.calibrate`.

The same queries over the same rows, the chain cut at more or fewer of their windows. Few results: what one more slice
costs a step, and what each row that passes it adds. Many results: what it costs to place one of them among the windows
inside its slice. Each time is the processor's, the least of several steps, for whatever disturbs it only adds. Prints
what `src/midstream/sharing/unit_costs.py` says by default.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from typing_extensions import override

import midstream as ms
from benchmarks.sharing.embedded import engine_for
from benchmarks.sharing.workload import Feed, Workload
from midstream.sharing.schemes.base import Figures
from midstream.sharing.schemes.mem_opt import MemOpt
from midstream.step import recut

WINDOWS = 36
CUTS = (1, 6, 12, 36)
RATES = (100, 1_000, 4_000)
FEW, MANY = 1e-6, 0.002
HISTORY, MEASURED = (10, 10, 10, 1, 1), 9


class Cut(MemOpt):
    """A chain of so many slices, whatever it costs."""

    def __init__(self, slices: int) -> None:
        self.slices = slices

    @override
    def cuts(self, windows: Sequence[int], figures: Figures | None, present: Sequence[int]) -> tuple[int, ...]:
        return tuple(windows[len(windows) // self.slices - 1 :: len(windows) // self.slices])


@contextmanager
def cut_into(slices: int) -> Iterator[None]:
    """Chains are cut so while this lasts."""
    before = recut.scheme
    recut.scheme = lambda name: Cut(slices)
    try:
        yield
    finally:
        recut.scheme = before


def least(rate: int, selectivity: float) -> tuple[dict[int, float], dict[int, int]]:
    """By number of slices: the seconds of the quickest step, and the results that were placed in one."""
    engines: dict[int, ms.Engine] = {}
    for slices in CUTS:
        with cut_into(slices):
            engines[slices] = engine_for("mem_opt", Workload(WINDOWS).sqls())
    feed, seconds = Feed(rate, selectivity), {slices: [float("inf")] for slices in CUTS}
    before: dict[int, int] = {}
    for number, length in enumerate((*HISTORY, *[1] * MEASURED)):
        tables: Mapping[str, pa.Table] = feed.next(length)
        for slices in CUTS:
            if number == len(HISTORY):
                before[slices] = placed(engines[slices])
            with cut_into(slices):
                took = worked(engines[slices], tables)
            seconds[slices].append(took if number >= len(HISTORY) else float("inf"))
    found = {slices: (placed(engine) - before[slices]) // MEASURED for slices, engine in engines.items()}
    del engines
    gc.collect()
    return {slices: min(took) for slices, took in seconds.items()}, found


def worked(engine: ms.Engine, tables: Mapping[str, pa.Table]) -> float:
    """The processor's seconds of a step."""
    gc.collect()
    begin = time.process_time()
    engine.push(tables)
    return time.process_time() - begin


def placed(engine: ms.Engine) -> int:
    """How many results routers have placed so far."""
    operators = engine.manifest.operators
    return sum(counters.predicates for name, counters in operators.items() if "route " in name)


def main() -> None:
    """Measure and print."""
    per_slice = []
    for rate in RATES:
        seconds, _ = least(rate, FEW)
        slope = float(np.polyfit(CUTS, [seconds[slices] for slices in CUTS], 1)[0])
        per_slice.append(slope)
        shown = ", ".join(f"{slices}: {1000 * took:.2f} ms" for slices, took in seconds.items())
        print(f"{rate:,} rows a second, few results, by slices: {shown}; {1e6 * slope:.1f} us a slice")
    purge, boundary = (float(c) for c in np.polyfit([2 * rate for rate in RATES], per_slice, 1))
    seconds, found = least(RATES[1], MANY)
    for slices, took in seconds.items():
        print(
            f"{RATES[1]:,} rows a second, many results, {slices} slices: {1000 * took:.2f} ms, {found[slices]:,} placed"
        )
    most, fewest = CUTS[-1], CUTS[0]
    spared = seconds[fewest] - seconds[most] + (most - fewest) * (boundary + purge * 2 * RATES[1])
    route = spared / max(found[fewest] - found[most], 1)
    print(f"purge={max(purge, 0.0):.3g} (s a row and slice)")
    print(f"boundary={max(boundary, 0.0):.3g} (s a slice and step)")
    print(f"route={max(route, 0.0):.3g} (s a result that is placed among the windows of its slice, however many)")


if __name__ == "__main__":
    main()
