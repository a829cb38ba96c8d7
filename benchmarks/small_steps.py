"""What small steps cost an embedded engine: `python -m benchmarks.small_steps`.

Nearly all of a small step is fixed: what does not depend on its rows. Each kind is measured beside a smaller one of the
same run, in turn, and the ratio tells how its cost grows: with the rows a window holds, with joins, lanes and queries.
Beside the time of a push, of which the median is taken, stand the Python calls it makes, which no other load on the
machine changes; where there are several lanes, those of the thread that pushes.
"""

from __future__ import annotations

import argparse
import cProfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
import pyarrow as pa

import midstream as ms

DDL = "k BIGINT, ts TIMESTAMP, v BIGINT"
BETWEEN = 100_000
"""Microseconds of stream time from one push to the next."""

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Kind:
    """Pushes of `rows` rows in all into a join of all streams, whose windows hold `window` pushes.

    Of the `queries` only the first reads streams that bring rows; these have so many `keys`. Where a row goes `through`
    all joins, every stream but the first brings one in a push of its own, and the next push is the row that joins them.
    """

    rows: int
    streams: int = 3
    window: int = 200
    lanes: int = 1
    queries: int = 1
    keys: int = 1_000
    through: bool = False

    def engine(self, threads: int | None = None) -> ms.Engine:
        """An engine with the queries."""
        # Engines from before there were threads are measured too.
        made = ms.Engine(lanes=self.lanes) if threads is None else ms.Engine(lanes=self.lanes, threads=threads)
        names = [f"S{number}" for number in range(self.streams)]
        for name in (*names, "Q", "R"):
            made.create_stream(name, DDL, timestamp="ts")
        made.add_query("join", self._join(names))
        for number in range(1, self.queries):
            made.add_query(f"waits{number}", f"{self._join(['Q', 'R'])} AND Q.v > {number % 50}")
        return made

    def pushes(self) -> Iterator[Tables]:
        """Rows of every stream, as many of each as the share of one is, and one at least of the first."""
        for number in range(2**31):
            random = np.random.default_rng([7, number])
            if self.through:
                rows = {f"S{stream}": _row(number) for stream in range(self.streams)}
                last = rows.pop("S0")
                yield rows
                yield {"S0": last}
                continue
            yield {f"S{stream}": self._table(random, number, share) for stream, share in enumerate(self._shares())}

    def _shares(self) -> list[int]:
        whole, rest = divmod(self.rows, self.streams)
        return [whole + (stream < rest) for stream in range(self.streams)]

    def _join(self, names: list[str]) -> str:
        window = f"[RANGE {self.window * BETWEEN // 1000} MILLISECONDS]"
        tied = " AND ".join(f"{one}.k = {other}.k" for one, other in pairwise(names))
        return f"SELECT {names[0]}.k FROM {', '.join(f'{name} {window}' for name in names)} WHERE {tied}"

    @property
    def pushes_a_turn(self) -> int:
        """The pushes up to one that is measured, that one included."""
        return 2 if self.through else 1

    def _table(self, random: np.random.Generator, number: int, rows: int) -> pa.Table:
        times = np.sort(random.integers(number * BETWEEN, (number + 1) * BETWEEN, rows))
        keys = random.integers(0, self.keys, rows)
        return pa.table({"k": keys, "ts": pa.array(times, pa.timestamp("us", "UTC")), "v": keys})


def _row(number: int) -> pa.Table:
    """The row of this number, which only those of the same number join."""
    time_of = pa.array([number * BETWEEN], pa.timestamp("us", "UTC"))
    return pa.table({"k": [number], "ts": time_of, "v": [number]})


PAIRS: Mapping[str, tuple[Kind, Kind]] = {
    "200 pushes in a window, 2 pushes": (Kind(30), Kind(30, window=2)),
    "30 rows, no row": (Kind(30), Kind(0)),
    "10,000 rows, 10 rows": (Kind(10_000, window=4), Kind(10, window=4)),
    "a join of 16 streams, of 8": (Kind(1, streams=16), Kind(1, streams=8)),
    "16 lanes, 1 lane": (Kind(30, lanes=16), Kind(30)),
    "64 lanes, 1 lane": (Kind(30, lanes=64), Kind(30)),
    "101 queries that wait, 1": (Kind(30, queries=102), Kind(30, queries=2)),
}


def measured(kinds: Iterable[Kind], filling: int, pushes: int) -> list[tuple[float, int]]:
    """Of each kind the seconds of a push and its Python calls, once windows are full; the kinds push in turn."""
    running = [(kind.engine(), kind.pushes(), list[float]()) for kind in kinds]
    for _ in range(filling + pushes):
        for engine, tables, times in running:
            given = next(tables)
            begun = time.perf_counter()
            engine.push(given)
            times.append(time.perf_counter() - begun)
    found = []
    for engine, tables, times in running:
        found.append((median(times[filling:]), _calls(engine, tables)))
        engine.close()
    return found


def _calls(engine: ms.Engine, tables: Iterator[Tables], pushes: int = 16) -> int:
    """Python calls of a push, the mean of several: states are compacted now and then."""
    given = [next(tables) for _ in range(pushes)]
    profile = cProfile.Profile()
    profile.enable()
    for one in given:
        engine.push(one)
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats()) // pushes


def main() -> None:
    """Print a line for each pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="show that it runs; its times mean nothing")
    filling, pushes = (2, 2) if parser.parse_args().quick else (200, 100)
    for name, pair in PAIRS.items():
        (time_of, calls), (other, other_calls) = measured(pair, filling, pushes)
        print(
            f"{name}: {1e3 * time_of:.2f} and {1e3 * other:.2f} ms a push, ratio {time_of / other:.2f}; "
            f"{calls:,} and {other_calls:,} Python calls",
            flush=True,
        )


if __name__ == "__main__":
    main()
