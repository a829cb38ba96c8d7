"""What a checkpoint costs an embedded engine, measured beside one in memory: `python -m benchmarks.durable`.

Both take the same pushes, one after the other in one process, and their answers are compared. Required: at W1 (b) at
least half the rows a second of the engine in memory, and a push of 10 rows in at most 15 ms.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

import midstream as ms
from benchmarks.scenarios import SCENARIOS, Scenario

LEAST_RATIO, MOST_MILLISECONDS = 0.5, 15.0
SMALL_PUSHES = 400
SPAN = 100_000
"""Microseconds of stream time that a small push covers: 200 of them fill the window."""

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Pair:
    """Seconds of each push of the last half, in memory and on disk; `rows` are those of a push."""

    memory: tuple[float, ...]
    disk: tuple[float, ...]
    rows: int

    def told(self, name: str) -> str:
        """The medians in words."""
        memory, disk = median(self.memory), median(self.disk)
        rates = f"{self.rows / memory:,.0f} and {self.rows / disk:,.0f} rows a second"
        return (
            f"{name}: in memory {1e3 * memory:.1f} ms a push, on disk {1e3 * disk:.1f} ms; {rates}, "
            f"ratio {memory / disk:.2f}"
        )


def run(scenario: Scenario, pushes: Iterable[Tables]) -> Pair:
    """Push into both, in turn which is first; raises where an answer differs."""
    times: tuple[list[float], list[float]] = ([], [])
    with (
        tempfile.TemporaryDirectory() as folder,
        engine(scenario) as memory,
        engine(scenario, Path(folder) / "checkpoint") as disk,
    ):
        for number, tables in enumerate(pushes):
            answers: dict[int, pa.Table] = {}
            for which in (0, 1) if number % 2 else (1, 0):
                begun = time.perf_counter()
                answers[which] = (memory, disk)[which].push(tables)["answer"]
                times[which].append(time.perf_counter() - begun)
            assert answers[0].equals(answers[1]), f"the answers of push {number} differ"
            rows = sum(table.num_rows for table in tables.values())
    half = len(times[0]) // 2
    return Pair(tuple(times[0][half:]), tuple(times[1][half:]), rows)


def engine(scenario: Scenario, checkpoint: Path | None = None) -> ms.Engine:
    """An engine with the scenario's query."""
    made = ms.Engine(checkpoint=checkpoint)
    for stream in scenario.streams:
        made.create_stream(stream, scenario.schema(stream), timestamp="ts")
    made.add_query("answer", scenario.midstream)
    return made


def small_pushes(scenario: Scenario) -> Iterable[Tables]:
    """Pushes of 10 rows, 100 keys; the window holds 2,000 rows."""
    for number in range(SMALL_PUSHES):
        random = np.random.default_rng([scenario.seed, number])
        begin = number * SPAN
        yield {
            stream: pa.table(
                {
                    "k": random.integers(0, 100, rows),
                    "ts": pa.array(np.sort(random.integers(begin, begin + SPAN, rows)), pa.timestamp("us", "UTC")),
                    "v": random.random(rows),
                },
                schema=scenario.schema(stream),
            )
            for stream, rows in zip("ABC", (4, 3, 3), strict=True)
        }


def main() -> None:
    """Measure both and say what is required; exit code 1 where it is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="show that it runs; its times mean nothing")
    quick = parser.parse_args().quick
    scenario = SCENARIOS["w1b"].quick() if quick else SCENARIOS["w1b"]
    large, small = run(scenario, scenario.steps()), run(scenario, small_pushes(scenario))
    ratio, milliseconds = median(large.memory) / median(large.disk), 1e3 * median(small.disk)
    met = ratio >= LEAST_RATIO, milliseconds <= MOST_MILLISECONDS
    print(large.told("w1b"), f"(required: at least {LEAST_RATIO}, {'met' if met[0] else 'NOT met'})")
    print(small.told("10 rows"), f"(required: at most {MOST_MILLISECONDS} ms, {'met' if met[1] else 'NOT met'})")
    raise SystemExit(0 if all(met) or quick else 1)


if __name__ == "__main__":
    main()
