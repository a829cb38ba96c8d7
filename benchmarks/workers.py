"""What two worker processes bring an engine without Spark: `python -m benchmarks.workers [--rounds 3] [--quick]`.

W1 (b) and W2 (b) on a checkpoint that is not `durable`, with results in Parquet files, by one lane in the engine's own
process and by two workers, in turn, each in a process of its own. A time is that of the fastest step after the third,
by the clock. Asked is 1.6 times as fast on two idle cores. Ends with 1 if the counts of results differ, or if what is
asked is missed, except with `--quick`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pyarrow.parquet as pq

import midstream as ms
from benchmarks.scenarios import SCENARIOS
from benchmarks.scenarios.base import Scenario
from benchmarks.table import table
from benchmarks.verdict import Verdict, verdict_table

ASKED = 1.6
WARMING, STEPS = 3, 8
SIZES = {"w1b": (66_000, 198_000, 600_000), "w2b": (600_000,)}
"""The rows of a step of all three streams."""


def measure(scenario: Scenario, workers: int | None) -> tuple[float, int]:
    """Run the steps of a scenario; returns the seconds of the fastest step, and the number of results."""
    times = []
    with tempfile.TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
        out = Path(folder) / "out"
        with ms.Engine(checkpoint=f"{folder}/checkpoint", durable=False, threads=1, workers=workers) as engine:
            for stream in scenario.streams:
                engine.create_stream(stream, scenario.schema(stream), timestamp="ts")
            engine.add_query("answer", scenario.midstream, sink=ms.sinks.files(str(out)))
            for tables in scenario.steps():
                begun = time.perf_counter()
                engine.push(tables, returns=False)
                times.append(time.perf_counter() - begun)
        results = sum(pq.read_metadata(file).num_rows for file in out.glob("step=*/*.parquet"))
    return min(times[WARMING:] or times), results


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and say whether what is asked is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="show that it runs and agrees; its times mean nothing")
    options = parser.parse_args(arguments)
    rows, verdicts, differ = [], list[Verdict](), False
    for name, sizes in SIZES.items():
        for size in sizes[:1] if options.quick else sizes:
            whole, each = SCENARIOS[name], size // len(SCENARIOS[name].streams)
            keys, batches = whole.keys * each // whole.rows, 2 if options.quick else STEPS
            scenario = replace(whole, rows=each, keys=keys, batches=batches)
            found: dict[int | None, list[tuple[float, int]]] = {None: [], 2: []}
            for _ in range(1 if options.quick else options.rounds):
                for workers, every in found.items():
                    with ProcessPoolExecutor(1, get_context("spawn")) as process:
                        every.append(process.submit(measure, scenario, workers).result())
            alone, two = (min(took for took, _ in every) for every in found.values())
            counts = {results for every in found.values() for _, results in every}
            differ = differ or len(counts) > 1
            rows.append((name, f"{size:,}", f"{alone:.3f}", f"{two:.3f}", f"{alone / two:.2f}", f"{max(counts):,}"))
            what = f"{name}, {size:,} rows, two workers"
            verdicts.append(Verdict(what, f"{alone / two:.2f}", f"at least {ASKED}", alone / two >= ASKED))
    print(table(("work", "rows a step", "one lane, s", "two workers, s", "ratio", "results"), "lrrrrr", rows))
    print(verdict_table(verdicts))
    if differ:
        print("WRONG  the counts of results differ")
    return 1 if differ or not (options.quick or all(one.met for one in verdicts)) else 0


if __name__ == "__main__":
    sys.exit(main())
