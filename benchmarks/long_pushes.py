"""How much longer the longest pushes take than the others: `python -m benchmarks.long_pushes`.

Three streams are joined by a key; pushes of 300 rows follow each other while the state holds so many rows. One table
measures states from which rows die as others come, one those that only grow. For each push the processor time of the
process and the clock are taken: other load on the machine moves the one less than the other. Below each table stands
what Python's full garbage collections took: they come in few pushes, and take longer than any merge.

`--memory "4 GB" --state "1 million" --state "100 million"` has the engine keep that limit, with a checkpoint in a
temporary folder that takes 7 GB for 100 million rows, and prints the most memory that the process held after a push.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

import midstream as ms
from benchmarks.table import table
from midstream.storage.memory_limit import MemoryLimit

ROWS_OF_PUSH, BETWEEN = 300, 3_000
"""The rows of a push, and the microseconds of stream time from one push to the next."""

STREAMS = ("A", "B", "C")
STATES = {"30,000": 30_000, "1.5 million": 1_500_000, "15 million": 15_000_000}
LIMITED = {"1 million": 1_000_000, "100 million": 100_000_000}


def filled(rows: int, *, dying: bool, **options: Any) -> tuple[ms.Engine, int]:
    """An engine whose state holds `rows` rows, and the number of the next push; all but few came in large pushes."""
    engine = ms.Engine(**options)
    for name in STREAMS:
        engine.create_stream(name, "k BIGINT, ts TIMESTAMP, v BIGINT", timestamp="ts")
    pushes = rows // ROWS_OF_PUSH
    window = f"[RANGE {pushes * (1 if dying else 100) * BETWEEN // 1000} MILLISECONDS]"
    engine.add_query(
        "join", f"SELECT A.k FROM {', '.join(f'{s} {window}' for s in STREAMS)} WHERE A.k = B.k AND B.k = C.k"
    )
    number, last = 0, pushes + 400
    while number < last:
        # Towards the end pushes get smaller, so that chunks of every size are there.
        at_once = max(1, min((last - number) // 8, 2_000))
        engine.push(_tables(number, at_once, rows))
        number += at_once
    return engine, number


def _tables(number: int, pushes: int, rows: int) -> Mapping[str, pa.Table]:
    random, made = np.random.default_rng([7, number]), {}
    for name in STREAMS:
        count = pushes * ROWS_OF_PUSH // len(STREAMS)
        times = np.sort(random.integers(number * BETWEEN, (number + pushes) * BETWEEN, count))
        keys = random.integers(0, rows, count)
        made[name] = pa.table({"k": keys, "ts": pa.array(times, pa.timestamp("us", "UTC")), "v": keys})
    return made


def measured(rows: int, pushes: int, *, dying: bool, **options: Any) -> tuple[list[float], list[float], float]:
    """The seconds of the processor and of the clock for each push, and the most megabytes that were held after one."""
    engine, number = filled(rows, dying=dying, **options)
    processor, clock, most = [], [], 0
    for push in range(number, number + pushes):
        given = _tables(push, 1, rows)
        began, worked = time.perf_counter(), time.process_time()
        engine.push(given)
        processor.append(time.process_time() - worked)
        clock.append(time.perf_counter() - began)
        most = max(most, MemoryLimit(1).held())
    engine.close()
    return processor, clock, most / 1e6


@contextmanager
def collections() -> Iterator[list[float]]:
    """The seconds of the processor that each full garbage collection takes within this block."""
    found, began = list[float](), [0.0]

    def note(phase: str, told: Mapping[str, int]) -> None:
        if told["generation"] == 2 and phase == "start":
            began[0] = time.process_time()
        elif told["generation"] == 2:
            found.append(time.process_time() - began[0])

    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)


def shown(name: str, times: Sequence[float]) -> Iterator[str]:
    """The cells of a row: median, 99th percentile, greatest, and how often the median these are."""
    middle, most, worst = np.quantile(times, [0.5, 0.99, 1.0])
    yield name
    yield from (f"{1e3 * one:.2f}" for one in (middle, most, worst))
    yield from (f"{one / middle:.1f}" for one in (most, worst))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pushes", type=int, default=2_000)
    sizes = {**STATES, **LIMITED}
    parser.add_argument("--state", action="append", choices=sizes, help="only this size (may be repeated)")
    parser.add_argument("--memory", metavar="SIZE", help="a limit of memory, with a checkpoint")
    parser.add_argument("--quick", action="store_true", help="show that it runs; its times mean nothing")
    options = parser.parse_args(arguments)
    pushes, states = (3, ["30,000"]) if options.quick else (options.pushes, options.state or [*STATES])
    heading = ("rows of state", "median, ms", "99th", "worst", "99th / median", "worst / median")
    for dying in (True, False):
        rows, full = [], list[str]()
        for state in states:
            with collections() as collected, TemporaryDirectory(prefix="midstream-benchmarks-") as folder:
                limited = {"memory": options.memory, "checkpoint": folder, "durable": False} if options.memory else {}
                processor, clock, most = measured(sizes[state], pushes, dying=dying, **limited)
            if options.memory:
                print(f"{state} rows of state: at most {most:,.0f} MB held after a push", flush=True)
            full.append(f"{state}: {', '.join(f'{1e3 * one:.0f}' for one in sorted(collected)[-4:]) or 'none'}")
            rows.append(tuple(shown(f"{state}, processor", processor)))
            rows.append(tuple(shown(f"{state}, clock", clock)))
        print("Rows die as others come:" if dying else "Rows stay:")
        print(table(heading, "lrrrrr", rows))
        print(f"Longest full garbage collections, ms, also while states were filled: {'; '.join(full)}", flush=True)


if __name__ == "__main__":
    main()
