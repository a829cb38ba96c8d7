"""What the operations of a chain cost on this machine: `python -m benchmarks.sharing.calibrate`.

The same queries over the same rows, the chain cut at more or fewer of their windows: what one more slice costs a step,
and what each row that passes it adds. Results are few, steps are short, and the chain has lived longer than its longest
window, so that chunks lie as they do in the long run. What it costs to place a result among the windows inside its
slice is measured by itself: two ages, and a search among the windows for each. Each time is the processor's, the least
of several, for whatever disturbs it only adds. Prints what
`MEASURED` in `src/midstream/sharing/recut.py` says by default.
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
from benchmarks.sharing.workload import LONGEST, STREAMS, Feed, Workload
from midstream.sharing import recut
from midstream.sharing.schemes.mem_opt import MemOpt
from midstream.sharing.schemes.scheme_contract import Figures

WINDOWS = 36
CUTS = (1, 6, 12, 36)
RATES = (100, 1_000, 3_000)
SELECTIVITY = 1e-6
HISTORY, MEASURED = (1,) * 32, 7


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


def least(rate: int) -> dict[int, float]:
    """By number of slices: the seconds of the quickest step."""
    engines: dict[int, ms.Engine] = {}
    for slices in CUTS:
        with cut_into(slices):
            engines[slices] = engine_for("mem_opt", Workload(WINDOWS).sqls())
    feed, seconds = Feed(rate, SELECTIVITY), {slices: float("inf") for slices in CUTS}
    for number, length in enumerate((*HISTORY, *[1] * MEASURED)):
        tables: Mapping[str, pa.Table] = feed.next(length)
        for slices in CUTS:
            with cut_into(slices):
                took = worked(engines[slices], tables)
            if number >= len(HISTORY):
                seconds[slices] = min(seconds[slices], took)
    return seconds


def worked(engine: ms.Engine, tables: Mapping[str, pa.Table]) -> float:
    """The processor's seconds of a step."""
    gc.collect()
    begin = time.process_time()
    engine.push(tables)
    return time.process_time() - begin


def placing(windows: int, results: int = 1_000_000) -> float:
    """The processor's seconds to place one result among so many windows, as the chain does it for all of a step."""
    random = np.random.default_rng(0)
    ends = np.arange(1, windows + 1) * (LONGEST // windows)
    now, times = np.full(results, LONGEST), [random.integers(0, LONGEST, results) for _ in STREAMS]
    found = float("inf")
    for _ in range(MEASURED):
        begin = time.process_time()
        one, other = (np.searchsorted(ends, now - time_of, "left") for time_of in times)
        np.maximum(one, other)
        found = min(found, time.process_time() - begin)
    return found / results


def main() -> None:
    """Measure and print."""
    per_slice = []
    for rate in RATES:
        seconds = least(rate)
        slope = float(np.polyfit(CUTS, [seconds[slices] for slices in CUTS], 1)[0])
        per_slice.append(slope)
        shown = ", ".join(f"{slices}: {1000 * took:.2f} ms" for slices, took in seconds.items())
        print(f"{rate:,} rows a second, by slices: {shown}; {1e6 * slope:.1f} us a slice")
    purge, boundary = (float(c) for c in np.polyfit([len(STREAMS) * rate for rate in RATES], per_slice, 1))
    routes = {windows: placing(windows) for windows in CUTS}
    print("placing a result, by windows:", ", ".join(f"{n}: {1e9 * took:.1f} ns" for n, took in routes.items()))
    print(f"purge={max(purge, 0.0):.3g},  # seconds a row and slice")
    print(f"boundary={max(boundary, 0.0):.3g},  # seconds a slice and step")
    print(f"route={max(routes.values()):.3g},  # seconds a result, however many windows are inside its slice")


if __name__ == "__main__":
    main()
