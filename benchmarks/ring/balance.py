"""How even the work of nodes is on steady streams, and in a burst: `python -m benchmarks.ring.balance [--burst 10]`.

Three streams with rows at random times and a window of 16 seconds. The first window is not counted: while windows fill,
nodes wait for their first rows. Prints for each spread and number of nodes the comparisons of the busiest node against
the mean, over all that is counted and on average over steps.

With `--burst` so many times the rows come for a quarter of a window, amid steady streams; what is counted is the burst
and the window behind it, in which its rows are still met. Slices have no bound, then bounds by count: as many rows as
a node has in the steady streams, and a half of that (Wang §14.1).

With `--disorder` rows come up to so many seconds late, and as much lateness is allowed.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import midstream as ms

STREAMS, SECOND, WINDOW = "ABC", 1_000_000, 16
CONDITIONS = {
    "any condition": "(A.x + B.y) % 41 < 1 AND (B.x + C.y) % 41 < 1",
    "two keys": "A.x = B.x AND B.y = C.y",
}
KEYS = 1_000

Compared = npt.NDArray[np.float64]
"""Pairs compared: steps down, nodes across."""


def engine_for(scheme: str, nodes: int, conditions: str, bound: int | None = None, lateness: float = 0.0) -> ms.Engine:
    """An engine with one query, spread so, and so many seconds of lateness."""
    engine = ms.Engine(seed=3)
    for name in STREAMS:
        columns, late = "x BIGINT, y BIGINT, ts TIMESTAMP", f"{1000 * lateness:.0f} milliseconds"
        engine.create_stream(name, columns, timestamp="ts", lateness=late)
    sql = f"SELECT A.x FROM A, B, C WHERE {conditions} WINDOW {WINDOW} SECONDS"
    engine.add_query(
        "q", sql, spread=scheme, nodes=nodes, spread_options={} if bound is None else {"count_bound": bound}
    )
    return engine


def compared(engine: ms.Engine, rates: list[float], step: float, seed: int = 1, disorder: float = 0.0) -> Compared:
    """What each node compares in each step of so many seconds, with so many rows a second of each stream in each, which
    are up to so many seconds late.
    """
    random, found = np.random.default_rng(seed), []
    for number, rate in enumerate(rates):
        begin, end = int(number * step * SECOND), int((number + 1) * step * SECOND)
        early = int(disorder * SECOND)
        engine.push({name: rows(random, random.poisson(rate * step), begin, end, early) for name in STREAMS})
        spread = engine.manifest.queries["q"].nodes
        assert spread is not None
        found.append([node.comparisons for node in spread.work])
    return np.diff(np.array(found, np.float64), axis=0, prepend=0.0)


def rows(random: np.random.Generator, count: int, begin: int, end: int, early: int = 0) -> pa.Table:
    """So many rows at random times, each earlier by some of so many microseconds."""
    times = np.sort(random.integers(begin, end, count))
    if early:
        times = np.maximum(times - random.integers(0, early, count), 0)
    x, y = random.integers(0, KEYS, count), random.integers(0, KEYS, count)
    return pa.table({"x": x, "y": y, "ts": pa.array(times, pa.timestamp("us"))})


def busiest(work: Compared) -> tuple[float, float]:
    """The busiest node against the mean: in all, and on average over steps."""
    whole = work.sum(axis=0)
    each = work[work.sum(axis=1) > 0]
    return float(whole.max() / whole.mean()), float((each.max(axis=1) / each.mean(axis=1)).mean())


def in_a_burst(conditions: str, nodes: int, rate: float, times: float, step: float, bound: int | None) -> Compared:
    """What the nodes of `psp_d` compare from the beginning of a burst until its rows are gone."""
    before, burst, after = int(1.25 * WINDOW / step), int(WINDOW / 4 / step), int(WINDOW / step)
    rates = [rate] * before + [rate * times] * burst + [rate] * after
    return compared(engine_for("psp_d", nodes, conditions, bound), rates, step)[before:]


def bounds(rate: float, nodes: int) -> tuple[int | None, ...]:
    """No bound, then as many rows as a node has in steady streams, and a half of that."""
    fair = max(int(rate * WINDOW) // nodes, 2)
    return None, fair, fair // 2


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--schemes", default="psp,psp_i,psp_d")
    asked.add_argument("--nodes", default="2,4,8,16")
    asked.add_argument("--conditions", default="any condition", choices=CONDITIONS)
    asked.add_argument("--rate", type=float, default=40)
    asked.add_argument("--step", type=float, default=0.5)
    asked.add_argument("--windows", type=int, default=2, help="how many windows are counted")
    asked.add_argument("--burst", type=float, metavar="TIMES", help="so many times the rows, for a quarter of a window")
    asked.add_argument("--disorder", type=float, default=0.0, metavar="SECONDS", help="how late rows come at most")
    said = asked.parse_args()
    if said.burst is not None:
        for nodes in map(int, said.nodes.split(",")):
            for bound in bounds(said.rate, nodes):
                work = in_a_burst(CONDITIONS[said.conditions], nodes, said.rate, said.burst, said.step, bound)
                whole, by_step = busiest(work)
                print(f"{nodes:3} nodes, at most {bound or 'any':>3} rows: {whole:.3f} in all, {by_step:.3f} by step")
        return
    for scheme in said.schemes.split(","):
        for nodes in map(int, said.nodes.split(",")):
            engine = engine_for(scheme, nodes, CONDITIONS[said.conditions], lateness=said.disorder)
            filling = int(WINDOW / said.step)
            rates = [said.rate] * (filling * (1 + said.windows))
            work = compared(engine, rates, said.step, disorder=said.disorder)[filling:]
            whole, by_step = busiest(work)
            print(f"{scheme:10} {nodes:3} nodes: {whole:.3f} in all, {by_step:.3f} by step; {work.sum():,.0f} pairs")


if __name__ == "__main__":
    main()
